"""Joins say so, once, where no key of the one input can equal one of the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from understudy.actors.joins import keys_of_sides
from understudy.actors.joins.interval_join import TimeInterval
from understudy.actors.joins.keys_of_sides import MOST_LOOKED_AT
from understudy.actors.joins.record_interval_join import RecordIntervalJoin
from understudy.actors.joins.record_join import RecordJoin
from understudy.actors.joins.record_temporal_join import RecordTemporalJoin
from understudy.actors.joins.time_to_live import TimeToLive
from understudy.testing import OperatorHarness

JOINS = {
    "regular": lambda: RecordJoin("inner", TimeToLive()),
    "interval": lambda: RecordIntervalJoin("inner", TimeInterval(-5, 5)),
    "temporal": lambda: RecordTemporalJoin(True),
}
UID = UUID(int=7)


@pytest.fixture(autouse=True)
def _nothing_is_said() -> Iterator[None]:
    keys_of_sides._SAID.clear()
    yield
    keys_of_sides._SAID.clear()


def harness_of(name: str) -> OperatorHarness:
    return OperatorHarness(JOINS[name](), key_by=0, key_by_2=0)


def fed(harness: OperatorHarness, left: list[Any], right: list[Any]) -> None:
    for side, keys in enumerate((left, right)):
        harness.process([(key, "value") for key in keys], side, timestamps=[10] * len(keys))


@pytest.mark.parametrize("name", JOINS)
def test_keys_of_two_types_are_named_when_the_data_ends(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with harness_of(name) as harness:
        fed(harness, [5, 6], ["5", "6"])
        assert caplog.messages == []
        harness.end()
    (said,) = caplog.messages
    assert "no key of its first input equals one of its second" in said
    assert "keys of the first are numbers, as 5, and keys of the second are texts, as '5'" in said
    assert "key_by" in said


@pytest.mark.parametrize("name", JOINS)
def test_where_the_data_does_not_end_a_hundred_of_each_are_enough(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with harness_of(name) as harness:
        fed(harness, [5] * (MOST_LOOKED_AT + 1), ["5"] * (MOST_LOOKED_AT - 1))
        assert caplog.messages == []
        fed(harness, [], ["5"] * 3)
        assert len(caplog.messages) == 1
        harness.end()
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1], [2.5]),
        ([1], [Decimal(2)]),
        ([1], [True]),
        ([1, "2"], ["3"]),
        ([], ["3"]),
        ([1], []),
        ([("a", 1)], [("b", 2)]),
        ([("a", None)], [("b", 2)]),
    ],
)
def test_keys_that_may_be_equal_are_not(left: list[Any], right: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    with harness_of("regular") as harness:
        fed(harness, left, right)
        harness.end()
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        (("a", 1), ("a", "1"), "tuples of texts, numbers, as ('a', 1)"),
        (UID, str(UID), "UUIDs, as UUID("),
        (date(2024, 1, 1), datetime(2024, 1, 1), "datetimes, as datetime.datetime(2024, 1, 1"),
        (b"a", "a", "bytes, as b'a'"),
        ((1,), 1, "tuples of numbers, as (1,)"),
    ],
)
def test_types_that_are_never_equal(left: Any, right: Any, said: str, caplog: pytest.LogCaptureFixture) -> None:
    with harness_of("regular") as harness:
        fed(harness, [left], [right])
        harness.end()
        assert harness.output() == []
    (message,) = caplog.messages
    assert said in message
