"""Links to files and folders in an input folder: what they lead to is read, as `cat` would."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy import NoInput
from understudy.runtime.connectors import FileSource
from understudy.runtime.connectors.files.file_look import look, version_now
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
