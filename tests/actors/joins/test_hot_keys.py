"""What is kept of one key is looked through seldom: the work for a record does not grow with the records of its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from understudy import KeyedOperator
from understudy.actors.joins import record_top_n
from understudy.actors.joins.interval_join import TimeInterval
from understudy.actors.joins.record_interval_join import RecordIntervalJoin
from understudy.actors.joins.record_join import RecordJoin
from understudy.actors.joins.record_temporal_join import RecordTemporalJoin
from understudy.actors.joins.record_top_n import RecordTopN
from understudy.actors.joins.time_to_live import TimeToLive
from understudy.runtime.simulation.harness.harness import OperatorHarness
from understudy.state.backends.heap_accessors import HeapList

RECORDS = 2_000
END = 10**9


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items were read from lists in state, and written as a whole, call by call."""
    found: list[int] = []
    get, update = HeapList.get, HeapList.update

    def counted_get(state: HeapList) -> list[Any]:
        items = get(state)
        found.append(len(items))
        return items

    def counted_update(state: HeapList, items: Iterable[Any]) -> None:
        held = list(items)
        found.append(len(held))
        update(state, held)

    monkeypatch.setattr(HeapList, "get", counted_get)
    monkeypatch.setattr(HeapList, "update", counted_update)
    return found


def sides(operator: KeyedOperator, *inputs: int, lag_ms: int | None = None) -> list[Any]:
    """Play records of one key, at a time of its own each; a lag: with watermarks behind them. Gives what comes out."""
    with OperatorHarness(operator, key_by=lambda _: 0, key_by_2=lambda _: 0) as harness:
        for start in range(0, RECORDS, 50):
            times = range(start, start + 50)
            for side in inputs:
                harness.process([f"{side} {time_ms}" for time_ms in times], side, timestamps=times)
            if lag_ms is not None:
                for side in (0, 1):
                    harness.watermark(start + 49 - lag_ms, side)
        for side in (0, 1):
            harness.watermark(END, side)
        return harness.output()


def interval(how: Any, kept_ms: int) -> Callable[[], KeyedOperator]:
    return lambda: RecordIntervalJoin(how, TimeInterval(-kept_ms, kept_ms))


@pytest.mark.parametrize(
    ("make", "inputs", "lag_ms"),
    [
        (lambda: RecordTemporalJoin(True), (1, 0), None),
        (lambda: RecordTemporalJoin(True), (1, 0), 0),
        (lambda: RecordTemporalJoin(True), (1,), 0),
        (interval("inner", 10), (0,), None),
        (interval("left", 10), (0,), None),
        (interval("inner", 500), (0,), 0),
        (lambda: RecordJoin("inner", TimeToLive(10**6, "event")), (0,), None),
        (lambda: RecordJoin("inner", TimeToLive(500, "event")), (0,), 0),
    ],
)
def test_few_items_are_moved_for_each_record(
    moved: list[int], make: Callable[[], KeyedOperator], inputs: tuple[int, ...], lag_ms: int | None
) -> None:
    sides(make(), *inputs, lag_ms=lag_ms)
    assert sum(moved) < 50 * RECORDS


@pytest.mark.parametrize("lag_ms", [None, 0, 300])
def test_each_record_has_the_version_of_its_time(lag_ms: int | None) -> None:
    found = sides(RecordTemporalJoin(False), 1, 0, lag_ms=lag_ms)
    assert found == [(f"0 {time_ms}", f"1 {time_ms}") for time_ms in range(RECORDS)]


def test_a_version_that_comes_out_of_order_has_its_place_among_many() -> None:
    with OperatorHarness(RecordTemporalJoin(False), key_by=lambda _: 0, key_by_2=lambda _: 0) as harness:
        times = [*range(0, 1_000, 10), 505, 995]
        for time_ms in times:
            harness.process([time_ms], 1, timestamps=[time_ms])
        harness.process([504, 507, 999], timestamps=[504, 507, 999])
        for side in (0, 1):
            harness.watermark(END, side)
        assert harness.output() == [(504, 500), (507, 505), (999, 995)]


@pytest.mark.parametrize("lag_ms", [None, 0, 300])
def test_what_found_no_match_comes_at_its_time(lag_ms: int | None) -> None:
    with OperatorHarness(interval("left", 20)(), key_by=lambda _: 0, key_by_2=lambda _: 0) as harness:
        times = range(0, 500)
        harness.process([f"0 {time_ms}" for time_ms in times], 0, timestamps=times)
        for until_ms in range(0, 600, 7) if lag_ms is not None else (END,):
            for side in (0, 1):
                harness.watermark(until_ms, side)
        assert harness.timed_output() == [((f"0 {time_ms}", None), time_ms + 20) for time_ms in times]
        assert not harness.operator.timers.queues.event


def test_rows_whose_life_is_over_go(moved: list[int]) -> None:
    with OperatorHarness(RecordJoin("inner", TimeToLive(160, "processing")), key_by=lambda _: 0) as harness:
        for number in range(1_000):
            harness.process([number])
            harness.advance(1)
        harness.operator._enter_key(0)
        assert 159 <= len(harness.operator._left.get()) <= 170
        harness.operator._leave_key()
    assert sum(moved) < 50 * 1_000


def test_a_place_among_many_is_found_with_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    compare = record_top_n._compared

    def counted(value: Any, held: Any, *, descending: bool) -> int:
        compared.append(held)
        return compare(value, held, descending=descending)

    monkeypatch.setattr(record_top_n, "_compared", counted)
    with OperatorHarness(RecordTopN(1_000, lambda record: record, True, ranked=False), key_by=lambda _: 0) as harness:
        harness.process(list(range(1_000)))
        compared.clear()
        harness.process([*range(1_000, 1_100), *range(-100, 0)])
    assert 0 < len(compared) < 200 * 15
