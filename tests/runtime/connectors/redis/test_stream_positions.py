"""Where one goes on in a stream after a loss, by what XINFO STREAM says."""

from __future__ import annotations

from typing import Any

from understudy.runtime.connectors.redis.stream_positions import Position, after_loss, problem


def stream(added: int, length: int, first: str, last: str, deleted: str = "0-0") -> dict[str, Any]:
    return {
        "entries-added": added,
        "length": length,
        "recorded-first-entry-id": first,
        "last-generated-id": last,
        "max-deleted-entry-id": deleted,
    }


def test_an_unread_entry_that_was_deleted_takes_back_nothing_of_what_was_read() -> None:
    """Those that were read are there still, so the entries that are there say nothing of how many were read."""
    at, info = Position("5-0", 5), stream(added=10, length=9, first="1-0", last="10-0", deleted="7-0")
    assert problem(at, info) == "entry 7-0 was deleted before it was read"
    assert after_loss(at, info, has_more=True) == at


def test_entries_that_were_trimmed_unread_are_counted_once() -> None:
    at, info = Position("5-0", 5), stream(added=10, length=2, first="9-0", last="10-0")
    assert problem(at, info) == "3 entries were trimmed (MAXLEN, MINID) or deleted before they were read"
    left = after_loss(at, info, has_more=True)
    assert left == Position("5-0", 8)
    assert problem(left, info) is None
