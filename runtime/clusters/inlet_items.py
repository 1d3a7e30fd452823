"""Items of an inlet: what calls of `send` have brought, and how it travels. InletSender says when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..connectors import SentRecords
from .sent import Sent


@dataclass(slots=True, eq=False)
class Item:
    """What one call of `send` has brought; without records it asks for the sender's last number."""

    sender: str
    sent: Sent
    count: int = 0
    columns: bool = False
    data: bytes = b""
    number: int = 0
    """That of the first record, once it has one; before that the one that the user wants, or 0."""
    is_probe: bool = False
    """It is the inlet's own question whether there is room, or which number is next."""

    @property
    def last(self) -> int:
        return self.number + self.count - 1


def question(sender: str) -> Item:
    """For the last number of this sender, and whether there is room."""
    return Item(sender, Sent(None, None, None), is_probe=True)


def is_same(one: Item, other: Item) -> bool:
    """Whether the last record of `other` is among those of `one`."""
    return one.sender == other.sender and bool(one.count) and one.number <= other.last <= one.last


def packed(items: Iterable[Item]) -> list[SentRecords]:
    """Records of one sender that follow each other travel as one."""
    found: list[SentRecords] = []
    before: Item | None = None
    joined: list[bytes] = []
    """The data of the last that was found, if that is of several items."""
    for item in items:
        if before is not None and _follows(before, item):
            joined = joined or [before.data]
            joined.append(item.data)
            found[-1] = found[-1]._replace(rows=found[-1].rows + item.count)
        else:
            if joined:
                found[-1] = found[-1]._replace(data=b"".join(joined))
                joined = []
            found.append(SentRecords(item.sender, item.number, item.count, item.columns, item.data))
        before = item
    if joined:
        found[-1] = found[-1]._replace(data=b"".join(joined))
    return found


def _follows(one: Item, other: Item) -> bool:
    if one.sender != other.sender or one.columns or other.columns:
        return False
    return bool(one.count and other.count) and one.number + one.count == other.number
