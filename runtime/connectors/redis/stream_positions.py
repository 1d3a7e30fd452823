"""Where one has come to in a stream of Redis, and whether anything behind that was lost before it was read.

A position is the id of the last entry that was read, and the number of entries that the stream had ever got by then.
Redis says how many it has got and how many it has, so entries that are missing in between were trimmed or deleted
unread: ids alone cannot say that. Arithmetic on what `XINFO STREAM` says; it reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

EARLIEST, LATEST = "earliest", "latest"
BEGINNING = "0-0"


class Position(NamedTuple):
    """Plain data as a list."""

    id: str
    added: int


def first_position(info: Mapping[str, Any] | None, start: str) -> Position:
    """Where to begin. `info` None: there is no such stream yet."""
    if info is None:
        return Position(BEGINNING, 0)
    if start == LATEST:
        return Position(_text(info["last-generated-id"]), info["entries-added"])
    return Position(BEGINNING, info["entries-added"] - info["length"])


def problem(at: Position, info: Mapping[str, Any] | None) -> str | None:
    """What was lost behind a position, in words; None: nothing."""
    if info is None:
        return (
            None
            if at == Position(BEGINNING, 0)
            else "the stream is gone, or its key was deleted, perhaps with entries that were not read"
        )
    added, length = info["entries-added"], info["length"]
    if _number(info["last-generated-id"]) < _number(at.id) or added < at.added:
        return (
            f"its last id is {_text(info['last-generated-id'])} with {added} entries ever added, and {at.id} was read, "
            f"with {at.added}: a replica without the newest entries has taken over, or it is another stream now. "
            "Entries may be gone before they were read"
        )
    if _number(info["max-deleted-entry-id"]) > _number(at.id):
        return f"entry {_text(info['max-deleted-entry-id'])} was deleted before it was read"
    is_behind = length == 0 or _number(info["recorded-first-entry-id"]) > _number(at.id)
    missing = added - at.added - length
    if is_behind and missing > 0:
        return f"{missing} entries were trimmed (MAXLEN, MINID) or deleted before they were read"
    return None


def after_loss(at: Position, info: Mapping[str, Any] | None, *, has_more: bool) -> Position:
    """The position from which to go on. `has_more`: whether there are entries behind `at`.

    Newest entries that were read and are gone, as a replica that took over may lack them, leave those before them: none
    is read again. A stream that was made again has only entries behind `at`, and is read from its first.
    """
    if info is None:
        return first_position(info, EARLIEST)
    if _number(info["last-generated-id"]) < _number(at.id):
        return Position(_text(info["last-generated-id"]), info["entries-added"])
    if info["entries-added"] < at.added:
        is_made_again = not info["length"] or _number(info["recorded-first-entry-id"]) > _number(at.id)
        if is_made_again:
            return first_position(info, EARLIEST)
        return Position(at.id, info["entries-added"] - info["length"])
    if not has_more:
        return Position(_text(info["last-generated-id"]), info["entries-added"])
    return Position(at.id, max(at.added, info["entries-added"] - info["length"]))


def _number(entry_id: Any) -> tuple[int, int]:
    milliseconds, _, sequence = _text(entry_id).partition("-")
    return int(milliseconds), int(sequence or 0)


def _text(entry_id: Any) -> str:
    return entry_id.decode() if isinstance(entry_id, bytes) else str(entry_id)
