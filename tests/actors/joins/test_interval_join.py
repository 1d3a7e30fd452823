"""Interval joins, over columns and per record, against loops over the records that were not late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.errors import NoEventTime, UserCodeError
from understudy.actors.joins.interval_join import IntervalJoin, TimeInterval
from understudy.actors.joins.joined_columns import How
from understudy.actors.joins.late_records import LATE
from understudy.actors.joins.record_interval_join import RecordIntervalJoin
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.runtime.simulation.harness.harness import OperatorHarness

from ...examples import examples
from .join_stage import LEFT, RIGHT, Advance, Arrive, Cut, Step, batch_of, flat, play, scripts

HOWS: list[How] = ["inner", "left", "right", "full"]


def operators(how: How, interval: TimeInterval, is_columnar: bool) -> Callable[[], Operator]:
    if is_columnar:
        return lambda: IntervalJoin(["key"], ["key"], how, "_right", interval)
    return lambda: RecordIntervalJoin(how, interval)


def not_late(script: Sequence[Step]) -> tuple[list[tuple[int, Any]], list[tuple[int, Any]]]:
    """(input, row) of the records in time, and of the late ones."""
    marks, in_time, late = [-(2**63)] * 2, [], []
    for step in script:
        if isinstance(step, Advance):
            marks[step.side] = max(marks[step.side], step.to_ms)
        elif isinstance(step, Arrive):
            for row in step.rows:
                (late if row[2] <= min(marks) else in_time).append((step.side, row))
    return in_time, late


intervals = st.tuples(st.integers(-12, 12), st.integers(0, 12)).map(lambda at: TimeInterval(at[0], at[0] + at[1]))


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("how", HOWS)
@given(script=scripts(), interval=intervals)
@examples(60)
def test_whatever_the_order_and_the_cuts_the_results_are_those_of_loops(
    how: How, is_columnar: bool, script: list[Step], interval: TimeInterval
) -> None:
    played = play(operators(how, interval, is_columnar), script, is_columnar=is_columnar, late=LATE)
    in_time, late = not_late(script)
    left, right = ([row for at, row in in_time if at == side] for side in (0, 1))

    def match(one: Any, other: Any) -> bool:
        return one[0] == other[0] and interval.lower_ms <= other[2] - one[2] <= interval.upper_ms

    wanted = [((a[0], a[1], str(b[1])), max(a[2], b[2])) for a in left for b in right if match(a, b)]
    if how in ("left", "full"):
        alone = (a for a in left if not any(match(a, b) for b in right))
        wanted += [((a[0], a[1], None), max(a[2], a[2] + interval.upper_ms)) for a in alone]
    if how in ("right", "full"):
        alone = (b for b in right if not any(match(a, b) for a in left))
        wanted += [((b[0], None, str(b[1])), max(b[2], b[2] - interval.lower_ms)) for b in alone]
    found = [(record if is_columnar else flat(record), time) for record, time, _ in played.results]
    assert Counter(found) == Counter(wanted)
    assert all(time is not None and time > watermark for _, time, watermark in played.results), "none is late behind it"
    assert sorted(side for side, _ in played.late) == sorted(side for side, _ in late)


@pytest.mark.parametrize("is_columnar", [True, False])
def test_bounds_are_included(is_columnar: bool) -> None:
    right = Arrive(1, ((1, 1, 94), (1, 2, 95), (1, 3, 100), (1, 4, 105), (1, 5, 106)))
    make = operators("inner", TimeInterval(-5, 5), is_columnar)
    played = play(make, [Arrive(0, ((1, 0, 100),)), Cut(1), right], is_columnar=is_columnar)
    results = played.records() if is_columnar else [flat(record) for record in played.records()]
    assert sorted(result[2] for result in results) == ["2", "3", "4"]


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_without_a_match_comes_in_time_though_later_rows_came_behind_it(
    side: int, is_columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of state that is large enough to be looked through at each watermark one could not tell."""
    from understudy.actors.joins import interval_join

    monkeypatch.setattr(interval_join, "_FEWEST_ROWS", 1_000)
    make = operators("full", TimeInterval(-5, 5), is_columnar)
    arrived = [Arrive(side, ((1, 0, 10),)), Arrive(side, ((1, 1, 1_000),))]
    played = play(make, [*arrived, Advance(0, 15), Advance(1, 15)], is_columnar=is_columnar, ends=False)
    assert [time for _, time, _ in played.results] == [15]


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_without_a_match_comes_in_time_though_it_was_restored(
    side: int, is_columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from understudy.actors.joins import interval_join

    monkeypatch.setattr(interval_join, "_FEWEST_ROWS", 1_000)
    make = operators("full", TimeInterval(-5, 5), is_columnar)
    script = [Arrive(side, ((1, 0, 10),)), Cut(2), Advance(0, 15), Advance(1, 15)]
    played = play(make, script, is_columnar=is_columnar, ends=False)
    assert [time for _, time, _ in played.results] == [15]


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("side", [0, 1])
def test_rows_without_a_match_come_in_time_though_others_wait_for_longer(
    side: int, is_columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each at its own end, though what is left is looked through at the end of the one before."""
    from understudy.actors.joins import interval_join

    monkeypatch.setattr(interval_join, "_FEWEST_ROWS", 1_000)
    make = operators("full", TimeInterval(-5, 5), is_columnar)
    script: list[Step] = [Arrive(side, ((1, 0, 10), (1, 1, 20), (2, 2, 1_000)))]
    for to_ms in (15, 25):
        script += [Advance(0, to_ms), Advance(1, to_ms)]
    played = play(make, script, is_columnar=is_columnar, ends=False)
    assert [(time, watermark < 20) for _, time, watermark in played.results] == [(15, True), (25, True)]


@pytest.mark.parametrize("is_columnar", [True, False])
@pytest.mark.parametrize("how", ["inner", "full"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_stays_when_one_goes_that_is_a_millisecond_older(side: int, how: How, is_columnar: bool) -> None:
    make = operators(how, TimeInterval(-5, 5), is_columnar)
    script: list[Step] = [Arrive(side, ((1, 0, 100), (1, 1, 101))), Advance(0, 105), Advance(1, 105)]
    script.append(Arrive(1 - side, ((1, 2, 106),)))
    played = play(make, script, is_columnar=is_columnar, ends=False)
    matched = [record if is_columnar else flat(record) for record, time, _ in played.results if time == 106]
    assert matched == [(1, 1, "2") if side == 0 else (1, 2, "1")]


def test_a_row_is_late_by_the_watermark_of_its_own_split() -> None:
    operator, out = IntervalJoin(["key"], ["key"], "inner", "_right", TimeInterval(-5, 5)), Collector()
    operator.watermark, operator.split_watermarks = 4, np.array([10, 4, 10], np.int64)
    batch = batch_of(0, [(1, 0, 5), (1, 1, 5), (1, 2, 20)], True, (LEFT, RIGHT))
    kept, times = operator._in_time(batch, np.array([5, 5, 20], np.int64), LATE[0], out)
    assert (kept.column("a").to_pylist(), times.tolist()) == ([1, 2], [5, 20])
    assert (operator.late_records, operator.most_late_ms) == (1, 5)


@pytest.mark.parametrize("is_columnar", [True, False])
def test_what_nothing_can_match_any_more_is_forgotten(is_columnar: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.actors.joins import interval_join

    monkeypatch.setattr(interval_join, "_FEWEST_ROWS", 10)
    operator = operators("inner", TimeInterval(-5, 5), is_columnar)()
    schemas = (LEFT, RIGHT) if is_columnar else ()
    with OperatorHarness(operator, key_by="key", key_by_2="key", schemas=schemas) as harness:
        sizes = []
        for at in range(0, 4000, 20):
            for side in (0, 1):
                several = [(at + each, 1, at + each) for each in range(20)]
                harness.process(
                    batch_of(side, several, is_columnar, (LEFT, RIGHT)), side, timestamps=[row[2] for row in several]
                )
                harness.watermark(at, side)
            harness.take_output()
            sizes.append(harness._attempt.state._states["operator-1"].keyed.entry_count())  # type: ignore[index,union-attr]
        assert max(sizes) <= 200


@pytest.mark.parametrize("is_columnar", [True, False])
def test_records_without_event_time_are_refused(is_columnar: bool) -> None:
    make = operators("inner", TimeInterval(0, 1), is_columnar)
    with pytest.raises(UserCodeError) as raised:
        play(make, [Arrive(0, ((1, 1, 1),))], is_columnar=is_columnar, is_timed=False)
    assert isinstance(raised.value.__cause__, NoEventTime)
    assert "assign_timestamps" in str(raised.value.__cause__)


def test_bounds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValueError, match="wanted lower_ms at most upper_ms, found 5 and -5"):
        TimeInterval(5, -5)
