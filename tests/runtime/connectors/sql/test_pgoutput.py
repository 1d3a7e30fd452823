"""The messages of logical replication. PostgreSQL: Logical Replication Message Formats."""

from __future__ import annotations

import struct

import pytest

from understudy.runtime.connectors.sql.changes.lsn import lsn_of, lsn_text
from understudy.runtime.connectors.sql.changes.pgoutput import (
    EPOCH_US,
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    MalformedReplication,
    RelationColumn,
    RelationMessage,
    Truncate,
    Update,
    decode,
)


def row(*values: object) -> bytes:
    parts = [struct.pack("!h", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is UNCHANGED:
            parts.append(b"u")
        else:
            data = str(value).encode()
            parts.append(b"t" + struct.pack("!i", len(data)) + data)
    return b"".join(parts)


RELATION = struct.pack("!I", 77)

MESSAGES = {
    b"B" + struct.pack("!QqI", 500, 7, 42): Begin(500, EPOCH_US + 7, 42),
    b"C" + struct.pack("!bQQq", 0, 500, 548, 7): Commit(500, 548),
    b"I" + RELATION + b"N" + row("1", "é", None): Insert(77, ["1", "é", None]),
    b"U" + RELATION + b"N" + row("1", UNCHANGED): Update(77, None, ["1", UNCHANGED]),
    b"U" + RELATION + b"K" + row("1", None) + b"N" + row("2", ""): Update(77, ["1", None], ["2", ""]),
    b"U" + RELATION + b"O" + row("1", "a") + b"N" + row("1", "b"): Update(77, ["1", "a"], ["1", "b"]),
    b"D" + RELATION + b"K" + row("1", None): Delete(77, ["1", None]),
    b"T" + struct.pack("!ibII", 2, 0, 77, 78): Truncate((77, 78)),
    b"R"
    + RELATION
    + b"public\0t\0d"
    + struct.pack("!h", 2)
    + b"\1id\0"
    + struct.pack("!Ii", 23, -1)
    + b"\0b\0"
    + struct.pack("!Ii", 1043, 24): RelationMessage(
        77, "public", "t", "d", (RelationColumn("id", 23, -1, True), RelationColumn("b", 1043, 24, False))
    ),
}


@pytest.mark.parametrize(("data", "meant"), MESSAGES.items(), ids=lambda each: type(each).__name__)
def test_each_message_means_what_the_documentation_says(data: bytes, meant: object) -> None:
    assert decode(data) == meant


@pytest.mark.parametrize("data", [b"O" + bytes(9), b"Y" + bytes(9), b"M" + bytes(9)])
def test_what_says_nothing_about_rows_is_left_out(data: bytes) -> None:
    assert decode(data) is None


@pytest.mark.parametrize("data", MESSAGES, ids=lambda each: each[:1].decode())
def test_a_message_that_ends_too_soon_is_an_error_and_never_another_message(data: bytes) -> None:
    for end in range(1, len(data)):
        with pytest.raises(MalformedReplication):
            decode(data[:end])


def test_a_kind_that_is_not_known_is_an_error() -> None:
    with pytest.raises(MalformedReplication, match="not known"):
        decode(b"Z123")


@pytest.mark.parametrize("lsn", [0, 1, 0xFFFFFFFF, 0x16B374D848, 2**63])
def test_positions_are_written_as_postgresql_writes_them(lsn: int) -> None:
    assert lsn_of(lsn_text(lsn)) == lsn
    assert lsn_text(0x16B374D848) == "16/B374D848"
