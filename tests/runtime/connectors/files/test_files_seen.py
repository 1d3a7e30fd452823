"""FilesSeen: what a subtask knows of files, over a restore."""

from __future__ import annotations

from understudy.runtime.connectors.files.file_look import FoundFile
from understudy.runtime.connectors.files.files_seen import FilesSeen


def restored(seen: FilesSeen) -> FilesSeen:
    again = FilesSeen(0, 1, settle_ms=0)
    again.restore([seen.to_plain()])
    return again


def test_a_file_that_was_gone_stays_gone_after_a_restore_that_finds_an_empty_folder() -> None:
    seen = FilesSeen(0, 1, settle_ms=0)
    seen.take([FoundFile("/in/a", "1 bytes, x", 0)], 0)
    assert seen.next() is not None
    seen.has_read()
    for now_ms in (1, 2):
        seen.take([], now_ms)
    again = restored(seen)
    again.take([], 3)
    again.take([FoundFile("/in/a", "2 bytes, y", 0)], 4)
    found = again.next()
    assert found is not None
    assert found.version == "2 bytes, y"


A, B = FoundFile("/in/a", "1 bytes, x", 0), FoundFile("/in/b", "1 bytes, x", 1)


def looked(seen: FilesSeen, *there: FoundFile) -> list[str]:
    """Look, and read all that is to be read: the names."""
    seen.take(there, 0)
    read = []
    while (file := seen.next()) is not None:
        read.append(file.name)
        seen.has_read()
    return read


def test_each_offset_has_all_that_was_read() -> None:
    seen = FilesSeen(0, 1, settle_ms=0)
    for there in ((A,), (A, B)):
        looked(seen, *there)
        assert looked(restored(seen), *there) == []


def test_a_file_that_one_look_does_not_find_is_not_read_again_and_one_that_two_do_not_find_is() -> None:
    """A listing may miss a file while it is moved, or others are."""
    seen = FilesSeen(0, 1, settle_ms=0)
    assert looked(seen, A, B) == ["/in/a", "/in/b"]
    for _ in range(3):
        assert looked(seen, B) == []
        assert looked(seen, A, B) == []
    assert looked(seen, B) + looked(seen, B) == []
    assert looked(seen, A, B) == ["/in/a"]


def test_a_file_that_was_forgotten_is_in_no_offset() -> None:
    seen = FilesSeen(0, 1, settle_ms=0)
    looked(seen, A, B)
    assert looked(restored(seen), A, B) == []
    assert looked(seen, B) + looked(seen, B) == []
    assert looked(restored(seen), FoundFile(A.name, "2 bytes, y", 0), B) == ["/in/a"]
