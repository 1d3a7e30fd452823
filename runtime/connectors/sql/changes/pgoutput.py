"""pgoutput: the messages of PostgreSQL's logical replication, decoded. Bytes in, values out; no I/O.

PostgreSQL's documentation, "Logical Replication Message Formats", protocol version 1: transactions come whole, in the
order of their commits. Values come as texts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


class Unchanged(Enum):
    """A large value that was not changed and is not sent."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Texts: TypeAlias = "list[str | Unchanged | None]"
"""One value for each column of the relation."""

EPOCH_US = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970: where PostgreSQL's time begins."""


@dataclass(frozen=True, slots=True)
class Begin:
    """`commit_lsn`: where the record of its commit stands; `commit_us`: since 1970."""

    commit_lsn: int
    commit_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """`end_lsn`: behind the record of its commit."""

    commit_lsn: int
    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    oid: int
    type_modifier: int
    in_key: bool
    """Whether it is part of the replica identity."""


@dataclass(frozen=True, slots=True)
class RelationMessage:
    """How a table's rows look from here on."""

    id: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    relation: int
    new: Texts


@dataclass(frozen=True, slots=True)
class Update:
    """`old`: the whole row (identity full), or its key where that has changed, else None."""

    relation: int
    old: Texts | None
    new: Texts


@dataclass(frozen=True, slots=True)
class Delete:
    """`old`: the whole row, or its key with None in all other columns."""

    relation: int
    old: Texts


@dataclass(frozen=True, slots=True)
class Truncate:
    relations: tuple[int, ...]


Change: TypeAlias = "Insert | Update | Delete | Truncate"
Message: TypeAlias = "Begin | Commit | RelationMessage | Change"


class MalformedReplication(ValueError):
    """Bytes that are no message of pgoutput: a bug here, or a protocol that is not known."""


_INT16, _INT32 = struct.Struct("!h"), struct.Struct("!i")
_RELATION, _BEGIN, _COMMIT = struct.Struct("!I"), struct.Struct("!QqI"), struct.Struct("!bQQq")
_COLUMN = struct.Struct("!Ii")


def decode(data: bytes) -> Message | None:
    """One message; None for those that say nothing about rows (origins, types, messages of users)."""
    kind = data[:1]
    try:
        match kind:
            case b"I":
                return Insert(_relation(data), _tuple(data, 6)[0])
            case b"U":
                return _update(data)
            case b"D":
                return Delete(_relation(data), _tuple(data, 6)[0])
            case b"B":
                commit_lsn, at, xid = _BEGIN.unpack_from(data, 1)
                return Begin(commit_lsn, at + EPOCH_US, xid)
            case b"C":
                _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
                return Commit(commit_lsn, end_lsn)
            case b"R":
                return _relation_message(data)
            case b"T":
                (number,) = _INT32.unpack_from(data, 1)
                return Truncate(tuple(_RELATION.unpack_from(data, 6 + 4 * place)[0] for place in range(number)))
    except MalformedReplication:
        raise
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedReplication(f"a message of kind {kind!r} cannot be read: {error}") from error
    if kind in (b"O", b"Y", b"M"):
        return None
    raise MalformedReplication(f"a message of kind {kind!r} is not known")


def _relation(data: bytes) -> int:
    return int(_RELATION.unpack_from(data, 1)[0])


def _update(data: bytes) -> Update:
    old: Texts | None = None
    place = 5
    if data[place : place + 1] in (b"K", b"O"):
        old, place = _tuple(data, place + 1)
    if data[place : place + 1] != b"N":
        raise MalformedReplication(f"an update without a new row: {data[place : place + 1]!r}")
    return Update(_relation(data), old, _tuple(data, place + 1)[0])


def _tuple(data: bytes, place: int) -> tuple[Texts, int]:
    """The values, and where the next part begins."""
    (number,) = _INT16.unpack_from(data, place)
    place += 2
    values: Texts = []
    for _ in range(number):
        kind = data[place]
        place += 1
        if kind == 0x74:  # t
            (size,) = _INT32.unpack_from(data, place)
            place += 4 + size
            if place > len(data):
                raise MalformedReplication("a value ends before its size")
            values.append(data[place - size : place].decode())
        elif kind == 0x6E:  # n
            values.append(None)
        elif kind == 0x75:  # u
            values.append(UNCHANGED)
        else:
            raise MalformedReplication(f"a value of kind {chr(kind)!r}")
    return values, place


def _relation_message(data: bytes) -> RelationMessage:
    schema, place = _string(data, 5)
    name, place = _string(data, place)
    identity = chr(data[place])
    (number,) = _INT16.unpack_from(data, place + 1)
    place += 3
    columns = []
    for _ in range(number):
        in_key = bool(data[place] & 1)
        column, place = _string(data, place + 1)
        oid, modifier = _COLUMN.unpack_from(data, place)
        place += 8
        columns.append(RelationColumn(column, oid, modifier, in_key))
    return RelationMessage(_relation(data), schema or "pg_catalog", name, identity, tuple(columns))


def _string(data: bytes, place: int) -> tuple[str, int]:
    end = data.index(b"\0", place)
    return data[place:end].decode(), end + 1
