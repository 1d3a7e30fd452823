"""Position: how far a source of changes has come. Its offset, as plain data.

    snapshot: rows of the table, range by range   ->   changes: transactions, in the order of their commits

A range is a part of the key's order that was read under one snapshot of the database, which has exactly the
transactions whose commits stand before `lsn`. There is one range, and one more for each restart while the table was
read, because a snapshot ends with its connection. A change of a key counts if its commit does not stand before the
`lsn` of the key's range: then the row that was read does not have it. When all commits that come stand behind all
ranges these are forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..relation import Key


@dataclass(frozen=True, slots=True)
class Range:
    """Keys up to `high`, behind those of the range before it; None: all that are left."""

    high: Key | None
    lsn: int


@dataclass(frozen=True, slots=True)
class Position:
    """`system`: which server. `lsn`: all transactions whose commits stand before it are done. `transaction`: the commit
    of one that is not done, 0: none; `done`: how many changes of it are. `ranges`: of the snapshot. `reading`: the last
    range is being read; `last_key`: and the key of the last row that was emitted of it, or of a range before it.
    `table`: its OID, which tells it from another one of the same name; 0: of a savepoint that does not have it.
    `published`: how it is in the publication (`ChangedTable.published`); "": the same.
    """

    system: str
    lsn: int
    transaction: int = 0
    done: int = 0
    ranges: tuple[Range, ...] = ()
    reading: bool = False
    last_key: Key | None = None
    table: int = 0
    published: str = ""

    def interrupted(self) -> Position:
        """The snapshot of the last range is gone: the keys that were read are a range, the others will be another."""
        assert self.reading
        *finished, current = self.ranges
        low = finished[-1].high if finished else None
        if self.last_key is None or self.last_key == low:
            return replace(self, ranges=tuple(finished))
        return replace(self, ranges=(*finished, replace(current, high=self.last_key)))

    def reading_at(self, lsn: int) -> Position:
        """From here on under a new snapshot."""
        return replace(self, ranges=(*self.ranges, Range(None, lsn)), reading=True)

    def read(self) -> Position:
        """The table was read to its end."""
        return replace(self, reading=False, last_key=None)

    def to_plain(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "lsn": self.lsn,
            "transaction": self.transaction,
            "done": self.done,
            "ranges": [[each.high, each.lsn] for each in self.ranges],
            "reading": self.reading,
            "last_key": self.last_key,
            "table": self.table,
            "published": self.published,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Position:
        ranges = tuple(Range(_key(high), lsn) for high, lsn in plain["ranges"])
        return cls(**{**plain, "ranges": ranges, "last_key": _key(plain["last_key"])})


def _key(plain: Sequence[Any] | None) -> Key | None:
    return None if plain is None else tuple(plain)
