"""Links to files and folders in an input folder: what they lead to is read, as `cat` would."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from understudy import NoInput
from understudy.runtime.connectors import FileSource
from understudy.runtime.connectors.files.file_look import followed, look, matching, version_now
from understudy.runtime.connectors.files.file_source import find_files
from understudy.runtime.connectors.files.locations import located


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """
    in/own.txt, in/linked.txt -> kept/other.txt, in/day=1/plain.txt, in/day=2 -> kept/day
    """
    inside, kept = tmp_path / "in", tmp_path / "kept"
    for each in (inside / "day=1", kept / "day"):
        each.mkdir(parents=True)
    (inside / "own.txt").write_text("1\n")
    (kept / "other.txt").write_text("2\n")
    (inside / "day=1" / "plain.txt").write_text("3\n")
    (kept / "day" / "far.txt").write_text("4\n")
    os.symlink(kept / "other.txt", inside / "linked.txt")
    os.symlink(kept / "day", inside / "day=2")
    return inside


BOTH = {
    "in": ["linked.txt", "own.txt"],
    "in/*.txt": ["linked.txt", "own.txt"],
    "in/day=*/*.txt": ["far.txt", "plain.txt"],
}


@pytest.mark.parametrize("path", BOTH)
def test_what_links_lead_to_is_read(path: str, folder: Path) -> None:
    _, files = find_files(str(folder.parent / path))
    assert sorted(Path(each).name for each in files) == BOTH[path]
    assert len(FileSource(str(folder.parent / path), "text").splits) == 2


@pytest.mark.parametrize("path", BOTH)
def test_what_links_lead_to_is_seen_by_one_who_watches(path: str, folder: Path) -> None:
    found = look(str(folder.parent / path))
    assert sorted(Path(each.name).name for each in found) == BOTH[path]
    fs, _ = located(str(folder))
    assert all(each.version == version_now(fs, each.name) for each in found)


def test_the_version_is_that_of_the_file_and_not_of_the_link(folder: Path) -> None:
    (before,) = [each for each in look(str(folder)) if each.name.endswith("linked.txt")]
    os.utime(folder.parent / "kept" / "other.txt", (1, 1))
    (after,) = [each for each in look(str(folder)) if each.name.endswith("linked.txt")]
    assert (before.name, before.version) != (after.name, after.version)


def test_a_link_that_leads_nowhere_or_round_is_left_alone(tmp_path: Path) -> None:
    os.symlink(tmp_path / "missing", tmp_path / "a.txt")
    os.symlink(tmp_path / "b.txt", tmp_path / "b.txt")
    os.symlink(tmp_path, tmp_path / "up.txt")
    assert look(str(tmp_path)) == look(str(tmp_path / "*.txt")) == []
    for path in (tmp_path, tmp_path / "*.txt"):
        with pytest.raises(NoInput):
            find_files(str(path))


def test_a_link_to_a_file_or_folder_may_be_named_itself(folder: Path) -> None:
    for name, wanted in (("linked.txt", "linked.txt"), ("day=2", "far.txt")):
        assert [Path(each.name).name for each in look(str(folder / name))] == [wanted]
        assert [Path(each).name for each in find_files(str(folder / name))[1]] == [wanted]


def read_by(path: Path) -> list[list[str]]:
    """The names below the folder, as a bounded source has them, and as one does who watches."""
    found = find_files(str(path))[1], [each.name for each in look(str(path))]
    return [sorted(f"{Path(name).parent.name}/{Path(name).name}" for name in names) for names in found]


def test_a_file_under_two_names_is_read_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As with latest -> day=1, and current.txt -> own.txt: all its records came twice."""
    os.symlink("own.txt", folder / "current.txt")
    os.symlink("day=1", folder / "a-latest")
    assert read_by(folder) == [["in/linked.txt", "in/own.txt"]] * 2
    assert read_by(folder / "*" / "*.txt") == [["day=1/plain.txt", "day=2/far.txt"]] * 2
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"{folder}/{name} leads to the same file as {folder}/{kept}, and is left out: its records would come twice"
        for name, kept in (("current.txt", "own.txt"), ("a-latest/plain.txt", "day=1/plain.txt"))
    ]


def test_of_two_links_to_one_file_the_first_is_read_also_below_a_link(folder: Path) -> None:
    os.symlink(folder.parent / "kept" / "other.txt", folder / "again.txt")
    assert read_by(folder)[0] == ["in/again.txt", "in/own.txt"]
    os.symlink(folder, folder.parent / "input")
    assert read_by(folder.parent / "input") == [["input/again.txt", "input/own.txt"]] * 2


def test_hard_links_are_files_of_their_own(folder: Path) -> None:
    os.link(folder / "own.txt", folder / "copy.txt")
    assert read_by(folder) == [["in/copy.txt", "in/linked.txt", "in/own.txt"]] * 2


@pytest.mark.skipif(os.getuid() == 0, reason="root may look everywhere")
def test_a_link_that_may_not_be_followed_is_an_error_and_no_file_less(folder: Path) -> None:
    (folder.parent / "kept").chmod(0)
    try:
        for path in (folder, folder / "*.txt"):
            with pytest.raises(NoInput, match=r"linked\.txt cannot be looked at \(Permission denied\)"):
                find_files(str(path))
            with pytest.raises(PermissionError):
                look(str(path))
    finally:
        (folder.parent / "kept").chmod(0o755)


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_only_what_is_not_there_is_left_alone(code: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs, _ = located(str(folder))
    name = f"{folder}/linked.txt"

    def failing(_: object, path: str) -> None:
        raise OSError(code, os.strerror(code), path)

    monkeypatch.setattr(type(fs), "info", failing)
    with pytest.raises(OSError, match="linked"):
        followed(fs, {"name": name, "islink": True, "type": "other"})
    with pytest.raises(OSError, match="linked"):
        matching(fs, str(folder / "linked.*"))
