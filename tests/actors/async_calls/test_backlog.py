"""Backlog: batches and watermarks come out as records, or groups of them, in their order; the rest is in snapshots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import AsyncSettings, KeyedOperator, Operator
from understudy.actors.async_calls.backlog import Backlog
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import NO_WATERMARK, TimedBatch, Watermark
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.operators.collector import Collector

from ..operators.conftest import context


@dataclass
class Hands:
    now: float = 0.0

    def now_ms(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        raise AssertionError("the time of day may be set back")


class Records(Operator):
    async def process(self, record: Any, out: Collector) -> None: ...


class Keyed(KeyedOperator):
    async def process(self, record: Any, out: Collector) -> None: ...


class Batches(Operator):
    async def process_batch(self, batch: Any, out: Collector) -> None: ...


def backlog(operator: Operator, **settings: Any) -> tuple[Backlog, Operator, Hands]:
    clock = Hands()
    operator.context = replace(context(), clock=clock)
    if isinstance(operator, KeyedOperator):
        operator._selectors = (KeySelector("key"), KeySelector("key"))
    return Backlog(operator, AsyncSettings(**settings)), operator, clock


def taken(waiting: Backlog, most: int = 1_000) -> list[Any]:
    """Records, groups and watermarks."""
    found: list[Any] = []
    for each in waiting.taken(lambda: len(found) >= most):
        found.append(each if isinstance(each, Watermark) else each[1])  # noqa: PERF401 - it is asked how many there are
    return found


def rest(waiting: Backlog, number: int = 100, behind_ms: int = NO_WATERMARK) -> list[Any]:
    return in_records(waiting, waiting.rest(number, None, behind_ms)())


def in_records(waiting: Backlog, parts: Any) -> list[Any]:
    """Each record by itself, or each group, with the number of the first one of its part."""
    return [each for part in parts for each in waiting.calls_of(part)]


@given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(1, 7), max_size=20))
def test_records_and_watermarks_come_out_in_their_order_however_many_are_taken_at_a_time(
    sizes: list[int], parts: list[int]
) -> None:
    """A size of 0 stands for a watermark."""
    waiting, _, _ = backlog(Records())
    expected: list[Any] = []
    for at, size in enumerate(sizes):
        if size:
            batch = [f"{at}/{number}" for number in range(size)]
            waiting.add_batch(list(batch), 0)
            expected += batch
        else:
            waiting.add_watermark(at)
            expected.append(Watermark(at))
    found: list[Any] = []
    for part in parts:
        found += taken(waiting, part)
        left = [each.record for each in rest(waiting)]
        assert [*(each for each in found if not isinstance(each, Watermark)), *left] == [
            each for each in expected if not isinstance(each, Watermark)
        ]
    found += taken(waiting)

    assert found == expected
    assert not waiting


def test_columns_come_out_as_rows_with_their_keys() -> None:
    waiting, _, _ = backlog(Keyed())
    waiting.add_batch(pa.record_batch({"key": ["a", "b"], "n": [1, 2]}), 0)

    found = list(waiting.taken(lambda: False))

    assert [(each[0], each[1].n) for each in found if not isinstance(each, Watermark)] == [("a", 1), ("b", 2)]


def test_a_record_without_its_key_is_named_by_its_place() -> None:
    waiting, _, _ = backlog(Keyed())
    waiting.add_batch([{"key": "a"}, {"key": "b"}], 0)
    waiting.add_batch([{"key": "c"}, {"other": 1}], 0)

    with pytest.raises(UserCodeError, match="record 3"):
        taken(waiting)


def test_each_record_has_its_event_time_and_how_far_event_time_was_for_it() -> None:
    waiting, operator, _ = backlog(Records())
    operator.watermark = 10
    operator.timestamps, operator.split_watermarks = np.array([20, 15]), np.array([5, 12])
    waiting.add_batch(["a", "b"], 0)
    operator.timestamps = operator.split_watermarks = None
    operator.watermark = 30
    waiting.add_batch(["c"], 0)

    assert [each[1:4] for each in waiting.taken(lambda: False) if not isinstance(each, Watermark)] == [
        ("a", 20, 10),
        ("b", 15, 12),
        ("c", None, 30),
    ]


def test_the_rest_knows_the_watermark_that_each_waits_behind() -> None:
    waiting, _, _ = backlog(Records())
    waiting.add_batch(["a", "b"], 0)
    waiting.add_watermark(40)
    waiting.add_batch(["c"], 0)
    waiting.add_watermark(50)
    waiting.add_batch(["d"], 0)
    assert taken(waiting, 1) == ["a"]

    found = rest(waiting, behind_ms=30)

    assert [(each.record, each.behind_ms, each.number) for each in found] == [
        ("b", 30, 100),
        ("c", 40, 101),
        ("d", 50, 102),
    ]


def test_the_rest_is_what_it_was_when_the_snapshot_was_taken() -> None:
    waiting, _, _ = backlog(Records())
    waiting.add_batch(["a", "b", "c"], 0)
    calls = waiting.rest(0, None, NO_WATERMARK)
    taken(waiting)
    waiting.add_batch(["d"], 0)

    assert [each.record for each in in_records(waiting, calls())] == ["a", "b", "c"]


@pytest.mark.usual_sizes
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_rest_of_a_batch_that_was_taken_out_goes_before_the_next_one(count: int) -> None:
    """Also where nothing is left of it: a run has taken all, and its task does not know it yet."""
    waiting, _, _ = backlog(Records())
    waiting.add_batch([1, 2], 0)
    piece = waiting.take_piece()
    assert piece is not None
    waiting.add_batch([3], 0)
    piece.taken = count
    (found,) = waiting.rest(count, piece, NO_WATERMARK)()

    assert found.record == [1, 2, 3][count:]
    assert found.number == count


# ---- several records at a time


def test_a_group_is_taken_when_it_is_full_or_has_waited() -> None:
    waiting, _, clock = backlog(Batches(), batch_size=3, batch_wait_ms=10)
    waiting.add_batch([1, 2, 3, 4], 0)
    assert taken(waiting) == [[1, 2, 3]]
    assert (waiting.due_ms, waiting.has_some(9), waiting.has_some(10)) == (10, False, True)

    clock.now = 10
    assert taken(waiting) == [[4]]
    assert waiting.due_ms is None
    assert not waiting


def test_a_watermark_does_not_overtake_a_group_that_waits_for_more() -> None:
    waiting, _, _ = backlog(Batches(), batch_size=3)
    waiting.add_batch([1], 0)
    taken(waiting)
    waiting.add_watermark(50)
    waiting.add_batch([2, 3, 4], 0)

    assert taken(waiting) == [[1], Watermark(50), [2, 3, 4]]


def test_groups_keep_the_event_times_of_their_records() -> None:
    waiting, operator, _ = backlog(Batches(), batch_size=2)
    operator.watermark = 5
    for records, times in ((["a"], [10]), (["b", "c"], [20, 15])):
        operator.timestamps = np.array(times)
        waiting.add_batch(records, 0)
    first, *_ = [each[1] for each in waiting.taken(lambda: False) if not isinstance(each, Watermark)]

    assert isinstance(first, TimedBatch)
    assert (first.records, first.times.tolist()) == (["a", "b"], [10, 20])


def test_what_joins_a_group_behind_a_barrier_is_not_in_the_snapshot_that_is_written_meanwhile() -> None:
    waiting, _, _ = backlog(Batches(), batch_size=3)
    waiting.add_batch([1], 0)
    taken(waiting)
    later = waiting.rest(0, None, NO_WATERMARK)
    waiting.add_batch([2], 0)
    taken(waiting)

    assert [each.record for each in later()] == [[1]]


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 3))
def test_the_rest_holds_a_group_that_waits_and_all_behind_it(sizes: list[int], batch_size: int, some: int) -> None:
    waiting, _, _ = backlog(Batches(), batch_size=batch_size)
    numbers = iter(range(1_000))
    for size in sizes:
        waiting.add_batch([next(numbers) for _ in range(size)], 0)
    found = [record for group in taken(waiting, some) for record in group]
    left = rest(waiting)

    assert [*found, *(record for each in left for record in each.record)] == list(range(sum(sizes)))
    assert all(each.kind == "batch" and len(each.record) <= batch_size for each in left)
