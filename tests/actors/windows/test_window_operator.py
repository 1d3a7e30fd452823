"""WindowOperator: lateness, modes, evictors, sessions, functions with state, and that it leaves nothing behind. What
Flink's WindowOperatorTest says is played by tests/conformance/windows.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from understudy import (
    AggregateFunction,
    Change,
    Count,
    Evictor,
    FoldingState,
    InvalidWindow,
    ListState,
    Max,
    NoEventTime,
    OutputTag,
    ProcessWindowFunction,
    StateIncompatible,
    Sum,
    TimedRecord,
    TimeWindow,
    Trigger,
    TriggerContext,
    UnwantedResult,
    ValueState,
    any_of,
    count,
    count_window,
    event_time,
    global_window,
    keep_last,
    keep_newest,
    purging,
    session,
    sliding,
    tumbling,
)
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import NO_WATERMARK, TimedBatch
from understudy.actors.windows.record_aggregation import RecordAggregation
from understudy.actors.windows.window_contents import Aggregated, AllRecords, Reduced
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.testing import OperatorHarness

from .window_stage import WindowStage, windowed


def total(key: Any, window: Any, records: Sequence[Any], out: Any) -> None:
    out.collect((key, tuple(window), sum(value for _, value in records)))


def summed(assigner: Any, **settings: Any) -> WindowStage:
    """Windows of (key, number), whose numbers are added up."""
    return WindowStage(windowed(assigner, Reduced(lambda a, b: (a[0], a[1] + b[1])), total, **settings))


# -- time


def test_a_result_has_the_last_time_of_its_window_also_when_it_is_early_or_late() -> None:
    stage = summed(tumbling(10), trigger=count(1), allowed_lateness_ms=100)
    stage.put(("a", 1), ("a", 2), at=[3, 14])
    stage.put_watermark(50)
    stage.put(("a", 4), at=[5])
    assert stage.taken() == [(("a", (0, 10), 1), 9), (("a", (10, 20), 2), 19), (("a", (0, 10), 5), 9)]


def test_a_record_without_event_time_is_refused_by_a_window_that_goes_by_it() -> None:
    with pytest.raises(UserCodeError) as refused:
        summed(tumbling(10)).feed(("a", 1))
    assert isinstance(refused.value.__cause__, NoEventTime)


def test_windows_of_processing_time_take_records_without_event_time_and_go_by_the_clock() -> None:
    stage = summed(tumbling(10, time="processing"))
    stage.clock(3)
    stage.put(("a", 1), ("a", 2))
    assert stage.clock(8) == []
    assert stage.clock(9) == [("a", (0, 10), 3)]
    assert stage.holds() == (0, 0)


def test_windows_of_processing_time_fire_when_the_data_ends() -> None:
    """Nothing can come into them any more, and nobody waits for the clock. Flink drops them."""
    stage = summed(session(1000, time="processing"))
    stage.put(("a", 1), ("b", 2), ("a", 4))
    assert sorted((key, number) for key, _, number in stage.end()) == [("a", 5), ("b", 2)]
    assert stage.holds() == (0, 0)


def test_a_window_of_which_a_trigger_never_fired_does_not_fire_at_the_end() -> None:
    stage = summed(tumbling(10), trigger=count(3))
    stage.put(("a", 1), at=[1])
    assert stage.end() == []
    assert stage.holds() == (0, 0)


# -- late records


def test_late_records_are_counted_and_go_to_the_side_output() -> None:
    stage = summed(tumbling(10), allowed_lateness_ms=5)
    stage.put_watermark(14)
    stage.put(("a", 1), ("a", 2), ("b", 3), at=[9, 10, 0])
    assert stage.late() == [("a", 1), ("b", 3)]
    assert stage.operator.late_records == 2
    assert stage.advance(19) == [("a", (10, 20), 2)]


@pytest.mark.filterwarnings("ignore:sliding")
def test_a_record_in_a_gap_between_windows_is_dropped_and_not_late() -> None:
    stage = summed(sliding(10, 25))
    stage.put(("a", 1), at=[15])
    assert (stage.late(), stage.operator.late_records, stage.holds()) == ([], 0, (0, 0))


@pytest.mark.filterwarnings("ignore:sliding")
def test_a_record_in_a_gap_is_late_when_a_window_at_its_time_would_be_over_with_its_lateness() -> None:
    stage = summed(sliding(10, 25), allowed_lateness_ms=5)
    stage.put_watermark(20)
    stage.put(("a", 1), ("a", 2), at=[15, 16])
    assert (stage.late(), stage.operator.late_records) == ([("a", 1)], 1)


def test_a_record_behind_its_own_split_is_late_by_that_and_windows_fire_by_the_watermark_of_all() -> None:
    """A slower split has not come as far, so nothing fires before it has."""
    stage = summed(tumbling(10), allowed_lateness_ms=5)
    marks = np.array([12, 14, NO_WATERMARK], np.int64)
    records = [("a", 1), ("a", 2), ("a", 4)]
    stage.harness._attempt.process(TimedBatch(records, np.array([3, 4, 5], np.int64), None, marks), 0)
    assert stage.taken() == []
    assert stage.late() == [("a", 2)]
    assert stage.advance(9) == [("a", (0, 10), 5)]


def test_what_is_late_is_decided_the_same_after_a_restore() -> None:
    """Flink's watermark is not in its checkpoints: there this record would make a window of its own."""
    stage = summed(tumbling(10))
    stage.put_watermark(100)
    stage = stage.restored()
    stage.put(("a", 1), at=[50])
    assert stage.late() == [("a", 1)]


# -- sessions


def test_a_late_record_bridges_two_sessions_that_have_fired() -> None:
    stage = summed(session(10), allowed_lateness_ms=100)
    stage.put(("a", 1), ("a", 2), at=[0, 15])
    assert sorted(stage.advance(50)) == [("a", (0, 10), 1), ("a", (15, 25), 2)]
    assert stage.feed(("a", 4), at=[8]) == [("a", (0, 25), 7)]
    assert stage.advance(124) == []
    assert stage.holds() == (0, 0)


def test_a_record_whose_own_session_is_over_joins_an_open_one() -> None:
    """Late is what belongs to no open window: not what would make a window that is over."""
    stage = summed(session(10))
    stage.put(("a", 1), at=[12])
    assert stage.advance(15) == []
    stage.put(("a", 2), at=[3])
    assert stage.late() == []
    assert stage.advance(30) == [("a", (3, 22), 3)]


def test_of_a_key_with_many_sessions_one_that_is_over_takes_no_more() -> None:
    """What is kept of a crowded key beside its state goes with the state."""
    stage = summed(session(10))
    stage.put(*[("a", 1)] * 20, at=list(range(0, 2_000, 100)))
    assert stage.advance(9) == [("a", (0, 10), 1)]
    stage.put(("a", 5), at=[10])
    assert stage.advance(19) == [("a", (10, 20), 5)]


def test_triggers_of_sessions_that_merge_are_merged_too() -> None:
    """Flink: WindowOperatorTest.testSessionWindowsWithCountTrigger."""
    stage = summed(session(3000), trigger=purging(count(4)))
    assert stage.feed(*[("b", n) for n in (1, 2, 3, 4)], at=[0, 1000, 2500, 3500]) == [("b", (0, 6500), 10)]
    stage.put(("a", 1), ("a", 2), at=[10, 1000])
    stage = stage.restored()
    assert stage.feed(*[("a", n) for n in (3, 1, 2, 3)], at=[2500, 6000, 6500, 7000]) == []
    assert stage.feed(("a", 10), at=[4500]) == [("a", (10, 10000), 22)]


def test_an_open_session_has_one_timer_however_often_it_grows() -> None:
    stage = summed(session(10))
    stage.put(*[("a", 1)] * 20, at=list(range(0, 100, 5)))
    assert stage.holds() == (2, 1)  # the sum, and which windows are open
    stage = summed(session(10), allowed_lateness_ms=5)
    stage.put(*[("a", 1)] * 20, at=list(range(0, 100, 5)))
    assert stage.holds() == (2, 2)  # to fire, and to be forgotten


def test_records_of_merged_sessions_come_session_by_session() -> None:
    stage = WindowStage(windowed(session(10)))
    stage.put(("a", 1), ("a", 2), ("a", 3), at=[20, 0, 10])
    assert stage.advance(100) == [("a", (0, 30), [("a", 2), ("a", 1), ("a", 3)])]


def test_a_session_has_a_gap_per_record() -> None:
    stage = summed(session(lambda record: record[1]))
    stage.put(("a", 5), ("a", 50), ("a", 1), at=[0, 6, 56])
    assert stage.advance(1000) == [("a", (0, 5), 5), ("a", (6, 57), 51)]


# -- what a later firing has


def test_discarding_windows_begin_with_nothing_again() -> None:
    stage = summed(tumbling(10), trigger=count(2), mode="discarding")
    assert stage.feed(*[("a", n) for n in (1, 2, 4, 8)], at=[1] * 4) == [("a", (0, 10), 3), ("a", (0, 10), 12)]


def test_retracting_windows_take_back_what_they_emitted() -> None:
    stage = summed(tumbling(10), trigger=count(1), mode="retracting")
    first, second = ("a", (0, 10), 1), ("a", (0, 10), 3)
    assert stage.feed(("a", 1), at=[1]) == [Change("+I", first)]
    stage = stage.restored()
    assert stage.feed(("a", 2), at=[2]) == [Change("-U", first), Change("+U", second)]
    assert stage.feed(("a", 0), at=[3]) == []
    stage.put_watermark(9)
    assert stage.holds() == (0, 0)


def test_a_session_that_bridges_two_takes_both_back() -> None:
    stage = summed(session(10), allowed_lateness_ms=100, mode="retracting")
    stage.put(("a", 1), ("a", 2), at=[0, 15])
    stage.advance(50)
    assert stage.feed(("a", 4), at=[8]) == [
        Change("-U", ("a", (0, 10), 1)),
        Change("-U", ("a", (15, 25), 2)),
        Change("+U", ("a", (0, 25), 7)),
    ]


def test_retracting_windows_keep_side_outputs() -> None:
    def function(key: Any, window: Any, records: Any, out: Any) -> None:
        out.collect_to(OutputTag("side"), ("side", key))

    stage = WindowStage(windowed(tumbling(10), function=function, mode="retracting"))
    stage.put(("a", 1), at=[1])
    stage.advance(9)
    assert stage.late(OutputTag("side")) == [("side", "a")]


# -- counts and evictors


def test_a_count_window_takes_so_many_records_and_begins_again() -> None:
    stage = summed(count_window(2))
    records = [("a", 1), ("b", 2), ("a", 4), ("a", 8), ("b", 16)]
    assert [result[2] for result in stage.feed(*records)] == [5, 18]


def test_a_sliding_count_window_has_the_last_records_after_each_few() -> None:
    stage = summed(count_window(3, slide=2))
    assert [result[2] for result in stage.feed(*[("a", 10**n) for n in range(6)])] == [11, 1110, 111000]


def test_an_evictor_may_leave_nothing_and_then_nothing_is_emitted() -> None:
    class Drop(Evictor):
        def before(self, records: Sequence[TimedRecord], window: Any) -> Sequence[TimedRecord]:
            return [each for each in records if each.record[1] > 0]

    stage = summed(tumbling(10), evictor=Drop(), trigger=count(1))
    assert stage.feed(("a", 0), ("a", 5), at=[1, 2]) == [("a", (0, 10), 5)]


def test_what_went_before_a_firing_is_not_there_at_the_next_one() -> None:
    class WithoutOldest(Evictor):
        def before(self, records: Sequence[TimedRecord], window: Any) -> Sequence[TimedRecord]:
            return records[1:]

    stage = summed(tumbling(10), evictor=WithoutOldest(), trigger=count(2))
    found = stage.feed(("a", 1), ("a", 2), ("a", 4), ("a", 8), at=[1, 2, 3, 4])
    assert [result[2] for result in found] == [2, 12]


@pytest.mark.parametrize("evictor", [keep_last(2), keep_newest(ms=5, when="after")])
def test_evicting_windows_leave_nothing_behind_and_can_merge(evictor: Any) -> None:
    stage = summed(session(10), evictor=evictor)
    stage.put(*[("a", n) for n in (1, 2, 4)], at=[0, 20, 10])
    stage = stage.restored()
    assert len(stage.advance(100)) == 1
    assert stage.holds() == (0, 0)


# -- functions


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return [0, 0]

    def add(self, accumulator: Any, record: Any) -> Any:
        accumulator[0] += record[1]
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, one: Any, other: Any) -> Any:
        return [a + b for a, b in zip(one, other, strict=True)]


def test_an_aggregate_function_sees_no_other_windows_accumulator() -> None:
    stage = WindowStage(windowed(sliding(20, 10), Aggregated(Mean()), None))
    stage.put(("a", 1), ("a", 3), ("a", 8), at=[0, 5, 15])
    stage = stage.restored()
    assert stage.advance(100) == [2.0, 4.0, 8.0]


def test_accumulators_of_sessions_merge() -> None:
    stage = WindowStage(windowed(session(10), Aggregated(Mean())))
    stage.put(("a", 1), ("a", 2), ("a", 9), at=[0, 20, 10])
    assert stage.advance(100) == [("a", (0, 30), [4.0])]


class Alarm(ProcessWindowFunction):
    """The number of this window's firings, and of all of the key's."""

    states_of_key: ClassVar[tuple[str, ...]] = ("in_all",)
    firings = FoldingState(int, 0, lambda held, added: held + added, merge=lambda a, b: a + b)
    in_all = ValueState(int, default=0)
    cleared: ClassVar[list[Any]] = []

    def process(self, window: Any, records: Sequence[Any], out: Any) -> None:
        self.firings.add(1)
        self.in_all.update(self.in_all.value() + 1)
        out.collect((self.key, window.start, self.firings.get(), self.in_all.value(), self.watermark))

    def clear(self, window: Any) -> None:
        self.cleared.append((self.key, window, self.firings.get()))


def test_a_window_function_has_state_of_the_window_which_goes_with_it_and_of_the_key() -> None:
    Alarm.cleared.clear()
    operator = WindowOperator(WindowSettings.of(tumbling(10), count(1)), AllRecords(), Alarm())
    stage = WindowStage(operator)
    assert stage.feed(("a", 0), ("a", 0), ("a", 0), at=[1, 2, 11]) == [
        ("a", 0, 1, 1, -(2**63)),
        ("a", 0, 2, 2, -(2**63)),
        ("a", 10, 1, 3, -(2**63)),
    ]
    stage = stage.restored()
    stage.put_watermark(9)
    assert stage.operator.function.cleared == [("a", TimeWindow(0, 10), 2)]
    assert stage.feed(("a", 0), at=[12]) == [("a", 10, 2, 4, 9)]
    stage.put_watermark(100)
    assert stage.holds() == (1, 0)  # the key's own


def test_state_of_a_window_function_is_merged_with_sessions() -> None:
    stage = WindowStage(WindowOperator(WindowSettings.of(session(10), count(1)), AllRecords(), Alarm()))
    results = stage.feed(*[("a", 0)] * 3, at=[0, 20, 10])
    assert [result[1:4] for result in results] == [(0, 1, 1), (20, 1, 2), (0, 3, 3)]


def test_a_function_that_returns_something_is_told_to_emit_it() -> None:
    stage = WindowStage(windowed(tumbling(10), function=lambda key, window, records, out: len(records)))  # type: ignore[arg-type, return-value]
    stage.put(("a", 1), at=[1])
    with pytest.raises(UserCodeError) as refused:
        stage.advance(9)
    assert isinstance(refused.value.__cause__, UnwantedResult)


class Forgetful(Trigger):
    """Its `return` is missing, as in one whose timers say when it fires."""

    def on_record(self, record: Any, timestamp_ms: int | None, window: Any, context: TriggerContext) -> Any:
        context.at_event_time(window.end - 1)


@pytest.mark.parametrize(
    "trigger",
    [Forgetful(), any_of(event_time(), Forgetful()), purging(Forgetful())],
    ids=["alone", "any_of", "purging"],
)
def test_a_trigger_that_returns_nothing_is_refused_with_what_to_return(trigger: Trigger) -> None:
    with pytest.raises(UserCodeError) as refused:
        summed(tumbling(10), trigger=trigger).feed(("a", 1), at=[1])
    assert isinstance(refused.value.__cause__, UnwantedResult)
    assert "Forgetful returned None: wanted a TriggerResult, such as TriggerResult.CONTINUE" in str(
        refused.value.__cause__
    )


class InPlace(Evictor):
    """Takes records out of the list, as in Flink, and returns nothing."""

    def before(self, records: Any, window: Any) -> Any:
        records.pop(0)


class InPlaceAfter(Evictor):
    def after(self, records: Any, window: Any) -> Any: ...


@pytest.mark.parametrize(
    ("evictor", "said"),
    [(InPlace(), "InPlace.before"), (InPlaceAfter(), "InPlaceAfter.after")],
    ids=["before", "after"],
)
def test_an_evictor_that_returns_nothing_is_refused_with_what_to_return(evictor: Evictor, said: str) -> None:
    """None was taken for no records: the window gave no result."""
    with pytest.raises((UserCodeError, UnwantedResult)) as refused:
        summed(tumbling(10), evictor=evictor, trigger=count(1)).feed(("a", 1), at=[1])
    assert f"{said} returned None: wanted the records that stay" in str(refused.value.__cause__ or refused.value)


# -- refused


class Unmerged(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, accumulator: Any, record: Any) -> Any:
        return accumulator + 1


class Remembering(ProcessWindowFunction):
    last = ValueState(int, default=0)
    seen = ListState(int)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: WindowSettings.of("minute"), "wanted an assigner such as"),
        (lambda: WindowSettings.of(tumbling), "wanted an assigner such as"),
        (lambda: WindowSettings.of(tumbling(1), count), "wanted a trigger such as"),
        (lambda: WindowSettings.of(tumbling(1), evictor=keep_last), "wanted an evictor such as"),
        (lambda: WindowSettings.of(tumbling(1), allowed_lateness_ms=-1), "at least 0 ms"),
        (lambda: WindowSettings.of(global_window(), allowed_lateness_ms=1), "does not go by event time"),
        (lambda: WindowSettings.of(count_window(3), mode="retracting"), "a purging trigger"),
        (lambda: WindowSettings.of(tumbling(1), mode="adding"), "found 'adding'"),  # type: ignore[arg-type]
        (lambda: windowed(session(1), Aggregated(Unmerged())), r"Unmerged: .*define merge"),
        (
            lambda: WindowOperator(WindowSettings.of(session(1)), None, Remembering()),
            r"Remembering\.last: the ValueState",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_when_it_is_made(make: Any, says: str) -> None:
    with pytest.raises(InvalidWindow, match=says):
        make()


# -- state of other windows


def _refused(before: WindowOperator, after: WindowOperator) -> str:
    stage = WindowStage(before)
    stage.put(("a", 1), at=[3])
    with pytest.raises(UserCodeError) as refused:
        OperatorHarness(after, key_by=0, restore_from=stage.harness.snapshot())
    assert isinstance(refused.value.__cause__, StateIncompatible)
    return str(refused.value.__cause__)


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        ("windows: stored .*size_ms=10.*wanted .*size_ms=20", windowed(tumbling(10)), windowed(tumbling(20))),
        ("windows: stored Tumbling.*wanted Sliding", windowed(tumbling(10)), windowed(sliding(10, 5))),
        ("windows: .*gap=10.*gap=11", windowed(session(10)), windowed(session(11))),
        ("wanted Tumbling.*time='processing'", windowed(tumbling(10)), windowed(tumbling(10, time="processing"))),
        (r"wanted CountTrigger\(n=7\)", windowed(tumbling(10)), windowed(tumbling(10), trigger=count(7))),
        (
            r"n=6.*n=7",
            windowed(tumbling(10), trigger=any_of(event_time(), count(6))),
            windowed(tumbling(10), trigger=any_of(event_time(), count(7))),
        ),
        (
            r"evictor: stored None, wanted LastRecords\(limit=3\)",
            windowed(tumbling(10)),
            windowed(tumbling(10), evictor=keep_last(3)),
        ),
        (
            "firings: stored accumulating, wanted retracting",
            windowed(tumbling(10)),
            windowed(tumbling(10), mode="retracting"),
        ),
        (
            r"contents: stored count\(\*\), sum\(_2\), count\(_2\), wanted max\(_2\), count\(_2\)",
            windowed(tumbling(10), Aggregated(RecordAggregation({"all": Count(), "n": Sum("_2")}))),
            windowed(tumbling(10), Aggregated(RecordAggregation({"n": Max("_2")}))),
        ),
    ],
)
def test_windows_refuse_what_other_windows_have_stored(
    wanted: str, before: WindowOperator, after: WindowOperator
) -> None:
    assert re.search(wanted, _refused(before, after))


@pytest.mark.parametrize(("before_ms", "after_ms"), [(0, 50), (50, 0), (20, 50), (50, 20)])
@pytest.mark.parametrize("trigger", [None, count(2), any_of(event_time(), count(2))])
@pytest.mark.parametrize("assigner", [tumbling(10), session(10)])
def test_windows_go_on_with_another_allowed_lateness(
    assigner: Any, trigger: Any, before_ms: int, after_ms: int
) -> None:
    def operator(lateness_ms: int) -> WindowOperator:
        return windowed(assigner, Reduced(max), trigger=trigger, allowed_lateness_ms=lateness_ms)

    stage = WindowStage(operator(before_ms))
    stage.put(("a", 1), at=[0])
    if before_ms == 50:
        stage.put_watermark(15)
    after = OperatorHarness(operator(after_ms), key_by=0, restore_from=stage.harness.snapshot())
    restored = WindowStage.__new__(WindowStage)
    restored._be(after, 0)
    restored.put_watermark(9 + after_ms - 1)
    assert restored.holds()[0] or after_ms == 0 or before_ms == 50
    restored.put_watermark(1_000)
    assert restored.holds() == (0, 0), "nothing is left behind"
