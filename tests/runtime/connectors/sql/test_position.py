"""How far a source of changes is, when its snapshot is interrupted."""

from __future__ import annotations

import pytest

from understudy.messages import pack_plain, unpack_plain
from understudy.runtime.connectors.sql.changes.position import Position, Range

START = Position("s", 10, reading=True)


def test_a_table_that_is_read_at_once_is_one_range() -> None:
    position = START.reading_at(20)
    assert position.ranges == (Range(None, 20),)
    assert position.read() == Position("s", 10, ranges=(Range(None, 20),))


def test_what_was_read_before_a_restart_stays_a_range_with_its_own_snapshot() -> None:
    from dataclasses import replace

    position = replace(START.reading_at(20), last_key=(5,)).interrupted()
    assert position.ranges == (Range((5,), 20),)
    again = position.reading_at(30)
    assert again.ranges == (Range((5,), 20), Range(None, 30))
    assert again.last_key == (5,), "it is read on from there"


def test_a_snapshot_of_which_nothing_was_read_leaves_no_range() -> None:
    from dataclasses import replace

    assert START.reading_at(20).interrupted().ranges == ()
    position = replace(START.reading_at(20), last_key=(5,)).interrupted().reading_at(30)
    assert position.interrupted().ranges == (Range((5,), 20),)


@pytest.mark.parametrize(
    "position",
    [START, START.reading_at(20), Position("s", 10, 11, 3, (Range((1, "a"), 5), Range(None, 7)), False, None)],
)
def test_it_survives_a_checkpoint(position: Position) -> None:
    assert Position.from_plain(unpack_plain(pack_plain(position.to_plain()))) == position
