"""SplitWatermarks and ActivityClock: which split is waited for. Flink: WatermarkOutputMultiplexerTest,
WatermarksWithIdlenessTest, SourceOperatorSplitWatermarkAlignmentTest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.flow.elements import NO_WATERMARK
from understudy.actors.operators.activity_clock import ActivityClock
from understudy.actors.operators.assign_timestamps import AssignTimestamps
from understudy.actors.operators.split_watermarks import ONLY_SPLIT, SplitWatermarks
from understudy.actors.operators.watermark_generators import bounded_out_of_orderness, monotonous
from understudy.testing import OperatorHarness


def reading(*names: str, idle_after_ms: int | None = None) -> SplitWatermarks:
    splits = SplitWatermarks(monotonous(), idle_after_ms)
    splits.settle(names, 0.0, 0.0)
    return splits


def come(splits: SplitWatermarks, name: str, time_ms: int, active_ms: float = 0.0) -> None:
    """A record with this event time, and so the watermark one before it."""
    splits.on_batch(name, np.array([time_ms]), [time_ms], active_ms, active_ms)


def test_the_subtask_is_as_far_as_the_slowest_split() -> None:
    splits = reading("a", "b")
    come(splits, "a", 101)
    assert splits.watermark_ms == NO_WATERMARK

    come(splits, "b", 51)
    assert splits.watermark_ms == 50
    come(splits, "a", 201)
    assert splits.watermark_ms == 50


def test_a_split_that_has_ended_holds_nothing_back() -> None:
    splits = reading("a", "b")
    come(splits, "a", 101)
    come(splits, "b", 51)

    splits.settle(["a"], 0.0, 0.0)

    assert splits.watermark_ms == 100
    assert [name for name, _ in splits.snapshot()] == ["a"]


def test_a_new_split_is_waited_for() -> None:
    splits = reading("a")
    come(splits, "a", 101)

    splits.settle(["a", "b"], 0.0, 0.0)

    assert splits.watermark_ms == NO_WATERMARK
    come(splits, "b", 301)
    assert splits.watermark_ms == 100


def test_a_subtask_without_splits_is_idle_at_once() -> None:
    """FLINK-32414"""
    assert reading().is_idle
    assert not reading("a").is_idle


class TestIdleness:
    def test_a_split_that_brings_nothing_is_not_waited_for(self) -> None:
        splits = reading("a", "b", idle_after_ms=1_000)
        come(splits, "a", 101, active_ms=900)
        splits.look(999)
        assert splits.watermark_ms == NO_WATERMARK

        splits.look(1_000)

        assert splits.watermark_ms == 100
        assert not splits.is_idle

    def test_when_all_are_the_furthest_counts(self) -> None:
        """FLINK-38454: it does not matter which of them became idle first."""
        splits = reading("a", "b", idle_after_ms=10)
        come(splits, "a", 101)
        come(splits, "b", 51)

        splits.look(10)

        assert splits.is_idle
        assert splits.watermark_ms == 100

    def test_a_record_ends_it_and_its_watermark_goes_on_where_it_was(self) -> None:
        splits = reading("a", "b", idle_after_ms=10)
        come(splits, "b", 51)
        splits.look(10)

        come(splits, "b", 21, active_ms=11)

        assert not splits.is_idle
        assert splits.watermark_ms == 50, "a is idle, and b has not gone back"

    def test_it_says_when_to_look_again(self) -> None:
        splits = reading("a", "b", idle_after_ms=1_000)
        come(splits, "a", 1, active_ms=400)
        assert splits.idle_in_ms(600) == 400
        splits.look(1_000)
        assert splits.idle_in_ms(1_000) == 400
        splits.look(1_400)
        assert splits.idle_in_ms(1_400) is None

    def test_without_a_limit_nothing_is_ever_idle(self) -> None:
        splits = reading("a")
        splits.look(1e12)
        assert not splits.is_idle
        assert splits.idle_in_ms(0) is None


def test_of_a_large_bound_it_is_known_how_much_of_it_records_need() -> None:
    def needed(bound_ms: int, *batches: list[int]) -> int | None:
        splits = SplitWatermarks(bounded_out_of_orderness(bound_ms))
        for times in batches:
            splits.on_batch(ONLY_SPLIT, np.array(times), times, 0.0, 0.0)
        return splits.all[0].generator.most_behind_ms  # type: ignore[attr-defined, no-any-return]

    assert needed(60_000, [5, 9, 2], [20]) == 7
    assert needed(60_000, [5, 9], [20], [8, 30]) == 12
    assert needed(60_000, [20], [12], [10]) == 10
    assert needed(60_000, [-5, 9]) == 0
    assert needed(59_999, [5, 9, 2]) is None


class TestAlignment:
    def test_what_is_ahead_of_the_limit_is_paused_until_it_grows(self) -> None:
        splits = reading("a", "b")
        come(splits, "a", 101)
        come(splits, "b", 51)

        splits.align(60, 0.0)
        assert splits.paused == {"a"}
        assert not splits.is_paused

        come(splits, "b", 71)
        assert splits.paused == {"a", "b"}
        assert splits.is_paused

        splits.align(100, 0.0)
        assert not splits.paused

    def test_a_paused_split_is_never_idle(self) -> None:
        """FLINK-35886, FLINK-40093"""
        splits = reading("a", "b", idle_after_ms=10)
        come(splits, "a", 101)
        come(splits, "b", 51)
        splits.align(60, 0.0)

        splits.look(1_000)
        assert [split.name for split in splits.all if split.is_idle] == ["b"]

        splits.align(200, 1_000)
        splits.look(1_009)
        assert not splits.is_idle, "it has all its time again once it is read"
        splits.look(1_010)
        assert splits.is_idle

    def test_a_paused_split_wants_no_look_until_it_is_read_again(self) -> None:
        """Else the task would look at once, again and again, for as long as others are behind."""
        splits = reading("a", idle_after_ms=10)
        come(splits, "a", 101)
        splits.align(60, 0.0)
        assert splits.idle_in_ms(1_000) is None
        splits.align(200, 1_000)
        assert splits.idle_in_ms(1_004) == 6

    def test_a_subtask_without_splits_is_not_paused(self) -> None:
        splits = reading()
        splits.align(0, 0.0)
        assert not splits.is_paused

    def test_a_split_that_is_new_or_restored_is_paused_if_it_is_ahead(self) -> None:
        splits = SplitWatermarks(monotonous())
        splits.restore([("a", 500)], NO_WATERMARK)
        splits.align(100, 0.0)
        splits.settle(["a", "b"], 0.0, 0.0)
        assert splits.paused == {"a"}


def test_what_was_restored_goes_with_the_name_of_the_split() -> None:
    """After a rescale a subtask takes those of its splits; one that the snapshot does not know begins at the floor."""
    splits = SplitWatermarks(monotonous())
    splits.restore([("a", 500), ("b", 70)], 70)
    splits.settle(["a", "new"], 0.0, 0.0)
    assert dict(splits.snapshot()) == {"a": 500, "new": 70}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1_000, 1_000), st.integers(0, 30)), max_size=40))
def test_no_split_goes_back_and_none_that_is_waited_for_is_overtaken(come_by: list[tuple[str, int, int]]) -> None:
    splits, now_ms, newest = reading(*"abc", idle_after_ms=25), 0.0, dict.fromkeys("abc", NO_WATERMARK)
    heard = dict.fromkeys("abc", 0.0)
    for name, time_ms, pause_ms in come_by:
        now_ms += pause_ms
        splits.look(now_ms)
        come(splits, name, time_ms, now_ms)
        newest[name], heard[name] = max(newest[name], time_ms - 1), now_ms
        waited_for = [each for each in "abc" if now_ms - heard[each] < 25]
        assert splits.watermark_ms == min(newest[each] for each in waited_for)


class TestActivityClock:
    def test_it_stands_while_it_is_stopped(self) -> None:
        now = [0.0]
        clock = ActivityClock(lambda: now[0])
        now[0] = 10
        clock.stop()
        now[0] = 1_000
        clock.stop()
        assert clock.read() == 10
        clock.go_on()
        clock.go_on()
        now[0] = 1_005
        assert clock.read() == 15


def test_after_a_rescale_a_subtask_is_as_far_as_the_slowest_of_those_before() -> None:
    before = [
        OperatorHarness(AssignTimestamps("at", monotonous()), parallelism=2, subtask_index=index) for index in range(2)
    ]
    for harness, at in zip(before, (50, 10), strict=True):
        harness.process([{"at": at}])
    said = [harness.watermarks()[-1] for harness in before]
    snapshots = [harness.snapshot() for harness in before]
    for harness in before:
        harness.crash()
    with before[0].restored(snapshots, parallelism=1, subtask_index=0) as both:
        operator: Any = both.operator
        assert operator.emitted_ms == said[1] < said[0]


def test_a_split_that_nobody_had_begins_where_the_slowest_of_all_was() -> None:
    """It may be one that another subtask has not told of yet: its records are as old as any that are still to come."""
    before = [
        OperatorHarness(AssignTimestamps("at", monotonous()), parallelism=2, subtask_index=index) for index in range(2)
    ]
    for harness, split, at in zip(before, ("fast", "slow"), (50, 10), strict=True):
        source: Any = harness.operator
        source.settle([split])
        source.next_from(split)
        harness.process([{"at": at}])
    snapshots = [harness.snapshot() for harness in before]
    for harness in before:
        harness.crash()
    with before[0].restored(snapshots, parallelism=2, subtask_index=0) as fast:
        operator: Any = fast.operator
        operator.settle(["fast", "new"])
        marks = dict(operator.splits.snapshot())
        assert operator.emitted_ms == marks["fast"] > marks["new"]
        assert marks["new"] == dict(operator._watermarks.get()[1][3])["slow"]
