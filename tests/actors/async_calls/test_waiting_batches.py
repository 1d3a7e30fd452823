"""Batches that wait: a snapshot divides them by key group, and a restore takes them up in their order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import KeyedOperator, Operator
from understudy.actors.async_calls.frozen_calls import CallInFlight
from understudy.actors.async_calls.waiting_batches import WaitingBatch, waiting_calls
from understudy.actors.flow.elements import NO_WATERMARK, TimedBatch, Watermark
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.operators.collector import Collector
from understudy.state.keys.key_groups import key_group

from ..operators.conftest import context
from .async_stage import ByKey, Stage, WithTimers, in_flight

MAX_PARALLELISM = 16


class Keyed(KeyedOperator):
    async def process(self, record: Any, out: Collector) -> None: ...


class Records(Operator):
    async def process(self, record: Any, out: Collector) -> None: ...


def placed(operator: Operator) -> Operator:
    operator.context = replace(context(), max_parallelism=MAX_PARALLELISM)
    if isinstance(operator, KeyedOperator):
        operator._selectors = (KeySelector("key"),)
    return operator


def parts_of(operator: Operator, *batches: Any) -> list[CallInFlight]:
    return list(waiting_calls([WaitingBatch(each, 0, 5, NO_WATERMARK) for each in batches], placed(operator), 100))


def rows(batch: Any) -> list[tuple[Any, Any]]:
    if isinstance(batch, TimedBatch):
        return [(each, time_ms) for (each, _), time_ms in zip(rows(batch.records), batch.times.tolist(), strict=True)]
    records = batch.to_pylist() if isinstance(batch, pa.RecordBatch) else batch
    return [((each["key"], each["n"]), None) for each in records]


FORMS = {
    "records": lambda records: records,
    "columns": lambda records: pa.RecordBatch.from_pylist(records),
    "records with times": lambda records: TimedBatch(records, np.array([each["n"] for each in records])),
    "columns with times": lambda records: TimedBatch(
        pa.RecordBatch.from_pylist(records), np.array([each["n"] for each in records])
    ),
}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(FORMS)), st.lists(st.integers(0, 30), min_size=1)), min_size=1, max_size=5
    )
)
def test_each_part_lies_in_one_key_group_and_keys_keep_their_order(batches: list[tuple[str, list[int]]]) -> None:
    numbers = iter(range(1_000))
    made = [FORMS[form]([{"key": key, "n": next(numbers)} for key in keys]) for form, keys in batches]
    found: dict[int, list[Any]] = defaultdict(list)
    parts = sorted(parts_of(Keyed(), *made), key=lambda each: each.number)
    for part in parts:
        group = key_group(part.key, MAX_PARALLELISM)
        for (key, number), time_ms in rows(part.record):
            assert key_group(key, MAX_PARALLELISM) == group
            assert time_ms in (None, number)
            found[key].append(number)

    wanted = defaultdict(list)
    for batch in made:
        for (key, number), _ in rows(batch):
            wanted[key].append(number)
    assert found == wanted
    assert len({each.number for each in parts}) == len(parts)


@pytest.mark.usual_sizes
@pytest.mark.parametrize("count", [1, 63, 64, 65, 5_000])
def test_without_keys_parts_are_so_many_that_each_key_group_may_have_one(count: int) -> None:
    parts = parts_of(Records(), list(range(count)))

    assert [record for part in parts for record in part.record] == list(range(count))
    assert [each.number for each in parts] == [each.key for each in parts]
    assert len(parts) == min(-(-count // 64), MAX_PARALLELISM)


def test_batches_that_wait_together_are_one() -> None:
    columns = [pa.RecordBatch.from_pylist([{"key": 1, "n": number}]) for number in range(5)]

    (part,) = parts_of(Keyed(), *columns)

    assert part.record.column("n").to_pylist() == [0, 1, 2, 3, 4]


# ---- and back


def with_timers() -> WithTimers:
    operator = WithTimers()
    operator.seen = []
    return operator


def waiting(number: int, *records: Any, **changes: Any) -> CallInFlight:
    return in_flight(number, records[0], **changes)._replace(kind="waiting", record=list(records))


def test_what_waited_comes_behind_what_had_begun_and_no_more_begins_than_may() -> None:
    running = in_flight(3, ("a", 0), identity="paid")
    stage = Stage(
        ByKey(), [waiting(4, *((f"key {number}", number) for number in range(50))), running], max_in_flight=10
    )
    stage.turn()

    assert stage.hand.records() == [("a", 0), *((f"key {number}", number) for number in range(9))]
    assert len(stage.frozen()) == 51


def test_what_waits_before_a_watermark_of_another_subtask_goes_before_it() -> None:
    """After a rescale: one subtask had calls behind a watermark that the other one's batches had not seen."""
    stage = Stage(with_timers(), [in_flight(9, ("b", 1), behind_ms=40), waiting(4, ("a", 1), ("a", 2))])
    stage.watermark(100)
    assert stage.hand.records() == [("a", 1)]

    for record in (("a", 1), ("a", 2), ("b", 1)):
        stage.hand.end(record, record)
        stage.turn()

    assert stage.emitted() == [("a", 1), ("a", 2), Watermark(40), ("b", 1), Watermark(100)]


def test_what_waits_behind_a_watermark_waits_for_it_again() -> None:
    stage = Stage(with_timers(), [waiting(4, ("a", 1)), waiting(5, ("a", 2), behind_ms=40)])
    stage.watermark(100)
    assert stage.hand.records() == [("a", 1)]

    stage.hand.end(("a", 1), 1)
    stage.turn()
    assert stage.emitted() == [1, Watermark(40)]
    assert stage.hand.records() == [("a", 2)]
