"""OutputDirectory: what it says of a folder that it cannot use, and of one that is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from understudy.actors.errors import UserCodeError
from understudy.actors.passing_errors import is_repeatable
from understudy.runtime.connectors import LostTransaction, UnusableOutput
from understudy.runtime.connectors.files.output_directory import OutputDirectory


def test_a_folder_that_cannot_be_made_is_named_with_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    directory = OutputDirectory(str(tmp_path / "file" / "out"), ".understudy-1")
    with pytest.raises(UnusableOutput, match=r"output folder .*/file/out: .*Not a directory.* Wanted: a folder") as it:
        directory.create("0-0-0-a")
    assert isinstance(it.value.__cause__, NotADirectoryError)
    assert is_repeatable([UserCodeError("files", None), it.value, it.value.__cause__])


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(UnusableOutput, match=r"output folder .*/out: "):
        OutputDirectory(str(tmp_path / "out"), ".understudy-1").create("0-0-0-a")


def test_a_folder_that_is_removed_under_an_open_file_is_named(tmp_path: Path) -> None:
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    file = directory.create("0-0-0-a")
    file.write(b"records")
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(UnusableOutput, match=r"output folder .*/out: .* and that nobody moves or deletes"):
        directory.seal(file, "0-0-0-a")


@pytest.mark.parametrize("what", ["removed", "replaced", "cut off", "added to"])
def test_an_open_file_that_somebody_has_changed_is_not_sealed(what: str, tmp_path: Path) -> None:
    """Its records come again from the last checkpoint; once the next one covers them, nobody has them any more."""
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    file = directory.create("0-0-0-a")
    file.write(b"records")
    file.flush()
    path = tmp_path / "out" / ".understudy-1" / "0-0-0-a"
    match what:
        case "removed":
            path.unlink()
        case "replaced":
            path.unlink()
            path.write_text("others")
        case "cut off":
            path.write_text("")
        case "added to":
            path.write_text("records and more")
    with pytest.raises(UnusableOutput, match=r"/out/.*0-0-0-a (is gone|has .* and 7 were written): .* nobody moves"):
        directory.seal(file, "0-0-0-a")


@pytest.mark.parametrize("text", ["", "records and more"])
def test_a_sealed_file_that_somebody_has_changed_is_not_published(text: str, tmp_path: Path) -> None:
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    file = directory.create("0-0-0-a")
    file.write(b"records")
    directory.seal(file, "0-0-0-a")
    path = tmp_path / "out" / ".understudy-1" / "0-0-0-a"
    path.write_text(text)
    with pytest.raises(LostTransaction, match=rf"folder .*/out .*0-0-0-a has {len(text)} bytes, and had 7 .* Put"):
        directory.publish("0-0-0-a", "part-1", size_bytes=7)
    path.write_text("records")
    directory.publish("0-0-0-a", "part-1", size_bytes=7)
    directory.publish("0-0-0-a", "part-1", size_bytes=7)


def test_the_size_of_a_sealed_file_is_asked_of_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """open(2): who opens a file on NFS sees what was written before, on another host too; who looks at its name sees
    what was known of it for up to a minute.
    """
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    file = directory.create("0-0-0-a")
    file.write(b"records")
    directory.seal(file, "0-0-0-a")
    monkeypatch.setattr(LocalFileSystem, "info", lambda *_, **__: {"size": 3, "type": "file"})
    directory.publish("0-0-0-a", "part-1", size_bytes=7)
    assert (tmp_path / "out" / "part-1").read_bytes() == b"records"


def test_a_folder_that_was_removed_is_not_made_again_in_silence(tmp_path: Path) -> None:
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    directory.create("0-0-0-a").close()
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(UnusableOutput, match=r"output folder .*/out is gone"):
        directory.create("0-0-0-b")
    OutputDirectory(str(tmp_path / "out"), ".understudy-1").create("0-0-1-a").close()


def test_a_committed_file_that_is_gone_is_named_with_what_to_do(tmp_path: Path) -> None:
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    directory.seal(directory.create("0-0-0-a"), "0-0-0-a")
    directory.publish("0-0-0-a", "part-1")
    directory.publish("0-0-0-a", "part-1")
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        LostTransaction,
        match=r"folder .*/out .*neither .*0-0-0-a nor .*/part-1 exists.* another host, .* all of them share.* Put",
    ):
        directory.publish("0-0-0-a", "part-1")


def test_what_may_pass_by_itself_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = OutputDirectory(str(tmp_path / "out"), ".understudy-1")
    file = directory.create("0-0-0-a")

    def fails(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory._files, "seal", fails)
    with pytest.raises(OSError, match="No space left"):
        directory.seal(file, "0-0-0-a")
    file.close()
