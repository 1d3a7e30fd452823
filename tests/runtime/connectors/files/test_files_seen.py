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
