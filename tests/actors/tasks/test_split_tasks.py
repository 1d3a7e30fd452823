"""A source's task whose event times are assigned behind it: splits, idleness, alignment, and what it says of them.

Flink: SourceOperatorAlignmentTest, SourceOperatorWatermarksWithBackpressureTest. Each test of a bug of Flink's around
idleness, alignment and back-pressure names it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from understudy.actors.flow.elements import (
    END_OF_TIME,
    NO_WATERMARK,
    CheckpointBarrier,
    EndOfData,
    TimedBatch,
    Watermark,
    WatermarkStatus,
)
from understudy.actors.operators import END, AssignTimestamps, Collector, FromSplit, Map, Operator, Source, monotonous
from understudy.actors.operators.assign_timestamps import Alignment
from understudy.messages import (
    AcknowledgeCheckpoint,
    AnnounceWatermark,
    ChannelId,
    CheckpointId,
    ExecutionState,
    NotifyCheckpointAborted,
    ReportWatermark,
    SubtaskIndex,
    SubtaskState,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)

from .task_stage import ATTEMPT, JOB, TaskStage, deployment

OUT = ChannelId(9)


class Feed(Source):
    """Gives what a test puts in, in order, but what is of a paused split: that waits."""

    bounded = False

    def __init__(self, splits: Collection[str] | None = None) -> None:
        self.splits = None if splits is None else list(splits)
        self.polls = 0

    def open(self) -> None:
        self.given: deque[Any] = deque()
        self.context.wake()  # as a source that says when there is something: it is not looked at before

    def current_splits(self) -> Collection[str] | None:
        return self.splits

    def poll(self) -> Any:
        self.polls += 1
        for place, each in enumerate(self.given):
            if not (isinstance(each, FromSplit) and each.split in self.paused_splits):
                del self.given[place]
                return each
        return None

    def offset(self) -> Any:
        return None

    def seek(self, offset: Any) -> None: ...

    def rescale(self, offsets: Sequence[Any]) -> None: ...


class Sieve(Operator):
    """Counts all records as late, and passes all but the first on."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        self.late_records += len(batch)
        out.emit(batch[1:])


class Start(Protocol):
    def __call__(self, feed: Feed, *, behind: Sequence[Operator] = (), **options: Any) -> TaskStage: ...


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def started(
        feed: Feed,
        *,
        behind: Sequence[Operator] = (),
        idle_after_ms: int | None = None,
        max_drift_ms: int | None = None,
        warn_ms: int | None = None,
        buffer_timeout_ms: int = 0,
        **deployed: Any,
    ) -> TaskStage:
        alignment = None if max_drift_ms is None else Alignment("g", max_drift_ms)
        assigner = AssignTimestamps(lambda record: record, monotonous(), idle_after_ms, alignment)
        chain = [feed, *behind, assigner]
        return TaskStage(chain, deployment(**deployed), str(tmp_path), buffer_timeout_ms, watermark_warn_ms=warn_ms)

    return started


def feed_of(stage: TaskStage) -> Feed:
    assert stage.task._parts is not None
    source = stage.task._parts.chain.operators[0]
    assert isinstance(source, Feed)
    return source


def gives(stage: TaskStage, *polled: Any) -> None:
    feed_of(stage).given.extend(polled)
    stage.settle()


def said(stage: TaskStage) -> list[Any]:
    """What has been sent on, records without their times."""
    return [each.records if isinstance(each, TimedBatch) else each for each in stage.emitted()]


def split(name: str, *times: int) -> FromSplit:
    return FromSplit(name, list(times))


def announce(stage: TaskStage, minimum_ms: int) -> None:
    stage.tell(AnnounceWatermark(JOB, ATTEMPT, minimum_ms))


def trigger(stage: TaskStage, number: int) -> None:
    stage.tell(TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(number), 0))


def snapshot(stage: TaskStage, number: int = 1) -> SubtaskState:
    trigger(stage, number)
    state = stage.said(AcknowledgeCheckpoint)[-1].state
    assert isinstance(state, SubtaskState)
    return state


class TestSplits:
    def test_that_are_interleaved_have_a_watermark_each(self, start: Start) -> None:
        stage = start(Feed("ab"))
        gives(stage, split("a", 101, 102), split("b", 11), split("a", 201), split("b", 151))
        assert said(stage) == [[101, 102], [11], Watermark(10), [201], [151], Watermark(150)]

    def test_hold_nothing_back_once_they_have_ended(self, start: Start) -> None:
        stage = start(Feed("ab"))
        gives(stage, split("a", 101), split("b", 11))
        feed_of(stage).splits = ["a"]
        stage.settle()
        assert said(stage)[-1] == Watermark(100)

    def test_are_known_behind_what_keeps_nothing_back(self, start: Start) -> None:
        stage = start(Feed("ab"), behind=[Map(lambda record: record + 1)])
        gives(stage, split("a", 100), split("b", 10))
        assert said(stage) == [[101], [11], Watermark(10)]

    def test_a_source_that_has_none_is_idle_at_once(self, start: Start) -> None:
        """FLINK-32414"""
        stage = start(Feed([]))
        assert said(stage) == [WatermarkStatus(True)]
        feed_of(stage).splits = ["a"]
        gives(stage, split("a", 101))
        assert said(stage) == [WatermarkStatus(False), [101], Watermark(100)]

    @pytest.mark.parametrize(
        ("feed", "polled", "error"),
        [
            (Feed("ab"), [1], r"does not say which split it comes from.*return FromSplit\(split, batch\)"),
            (Feed(), split("a", 1), "records of split 'a', but Feed.current_splits returns None"),
            (Feed("a"), split("a", 1), None),
        ],
    )
    def test_batches_without_a_split_are_refused(
        self, start: Start, feed: Feed, polled: Any, error: str | None
    ) -> None:
        stage = start(feed)
        gives(stage, polled)
        failed = [each for each in stage.said(UpdateTaskExecutionState) if each.state is ExecutionState.FAILED]
        assert len(failed) == (error is not None)
        if error is not None:
            with pytest.raises(RuntimeError, match=error):
                raise RuntimeError(failed[0].failure)

    def test_one_name_in_place_of_a_list_of_names_is_refused(self, start: Start) -> None:
        stage = start(Feed([""]))
        assert "wanted the ids of the splits" in str(stage.said(UpdateTaskExecutionState)[-1].failure)

    def test_keep_their_watermarks_over_a_restore_and_a_rescale(self, start: Start) -> None:
        before = start(Feed("abc"))
        gives(before, split("a", 101), split("b", 51), split("c", 71))
        state = snapshot(before)

        restored = {"restored": (state,), "restored_checkpoint_id": CheckpointId(1)}
        rescaled = {"parallelism": 2, "subtask_index": SubtaskIndex(1)}
        same = start(Feed("abc"), **restored)
        gives(same, split("b", 61))
        assert said(same) == [[61], Watermark(60)]

        moved = start(Feed("ac"), **restored, **rescaled)
        gives(moved, split("c", 65))
        assert said(moved) == [Watermark(70), [65]], "c goes on where it was, and b is another subtask's now"

        new = start(Feed("an"), **restored, **rescaled)
        gives(new, split("a", 201))
        assert said(new) == [[201]], "a split that the snapshot does not know begins at the least: 50"
        gives(new, split("n", 61))
        assert said(new) == [[61], Watermark(60)]


class TestIdleness:
    def test_a_silent_source_is_idle_until_a_record_comes(self, start: Start) -> None:
        stage = start(Feed(), idle_after_ms=1_000)
        gives(stage, [101])
        said(stage)
        assert stage.task.idle_ms == 1_000
        stage.passes(999)
        assert said(stage) == []
        stage.passes(1)
        assert said(stage) == [WatermarkStatus(True)]
        assert stage.task.idle_ms is None
        gives(stage, [51])
        assert said(stage) == [WatermarkStatus(False), [51]]
        gives(stage, [151])
        assert said(stage) == [[151], Watermark(150)]

    def test_a_silent_split_is_not_waited_for_while_another_is_busy(self, start: Start) -> None:
        stage = start(Feed("ab"), idle_after_ms=1_000)
        for second in range(4):
            gives(stage, split("a", second * 1_000 + 1))
            stage.passes(400)
        assert said(stage) == [[1], [1001], [2001], Watermark(2000), [3001], Watermark(3000)]

    def test_when_all_splits_are_idle_the_furthest_counts(self, start: Start) -> None:
        """FLINK-38454"""
        stage = start(Feed("ab"), idle_after_ms=1_000)
        gives(stage, split("a", 101), split("b", 51))
        said(stage)
        stage.passes(1_000)
        assert said(stage) == [Watermark(100), WatermarkStatus(True)]

    @pytest.mark.parametrize("feed", [Feed(), Feed("a")], ids=["no splits", "one split"])
    def test_the_clock_stands_while_outputs_hold_the_source_back(self, start: Start, feed: Feed) -> None:
        """FLINK-35886; FLINK-36751: with one split, too."""
        stage = start(feed, idle_after_ms=1_000)
        stage.passes(600)
        stage.plane.wires[OUT].has_credit = False
        stage.settle()
        stage.passes(60_000)
        stage.plane.wires[OUT].has_credit = True
        stage.settle()
        assert said(stage) == []
        stage.passes(399)
        assert said(stage) == []
        stage.passes(1)
        assert said(stage) == [WatermarkStatus(True)]

    def test_the_clock_stands_from_the_moment_at_which_the_last_credit_was_used(self, start: Start) -> None:
        """The task sleeps until the split would be idle, and finds only then that it is held back."""
        stage = start(Feed("ab"), idle_after_ms=1_000, buffer_timeout_ms=5)
        wire = stage.plane.wires[OUT]
        wire.send = lambda element: (wire.elements.append(element), setattr(wire, "has_credit", False))  # type: ignore[method-assign]
        gives(stage, split("a", 101))
        stage.passes(5_000)
        wire.has_credit = True
        stage.settle()
        assert WatermarkStatus(True) not in said(stage)
        assert Watermark(100) not in said(stage)

    def test_the_clock_stands_while_the_source_is_held_for_a_savepoint(self, start: Start) -> None:
        stage = start(Feed(), idle_after_ms=1_000)
        stage.tell(TriggerCheckpoint(JOB, ATTEMPT, CheckpointId(1), 0, stop=True))
        stage.passes(60_000)
        assert said(stage) == [CheckpointBarrier(CheckpointId(1), 0, stop=True)]
        stage.tell(NotifyCheckpointAborted(JOB, ATTEMPT, CheckpointId(1), "expired"))
        stage.passes(999)
        assert said(stage) == []
        stage.passes(1)
        assert said(stage) == [WatermarkStatus(True)]

    def test_nothing_is_idle_after_the_end_of_data(self, start: Start) -> None:
        stage = start(Feed(), idle_after_ms=1_000)
        gives(stage, [1], END)
        stage.passes(5_000)
        assert said(stage) == [[1], Watermark(0), Watermark(END_OF_TIME), EndOfData()]

    def test_restored_after_the_end_of_data_neither(self, start: Start) -> None:
        stage = start(Feed(), idle_after_ms=10, restored=(SubtaskState({}, data_ended=True),))
        stage.passes(5_000)
        assert said(stage) == [Watermark(END_OF_TIME), EndOfData()]


class TestAlignment:
    def test_a_source_that_is_ahead_polls_nothing_until_the_others_have_caught_up(self, start: Start) -> None:
        stage = start(Feed(), max_drift_ms=50)
        gives(stage, [101])
        announce(stage, 20)
        polls = feed_of(stage).polls
        gives(stage, [201])
        assert feed_of(stage).polls == polls
        assert said(stage) == [[101], Watermark(100)]

        announce(stage, 49)
        assert feed_of(stage).polls == polls
        announce(stage, 50)
        assert said(stage) == [[201], Watermark(200)]

    def test_it_takes_barriers_meanwhile(self, start: Start) -> None:
        stage = start(Feed(), max_drift_ms=50)
        gives(stage, [101])
        announce(stage, 0)
        said(stage)
        trigger(stage, 1)
        assert said(stage) == [CheckpointBarrier(CheckpointId(1), 0)]

    @pytest.mark.parametrize("feed", [Feed(), Feed("a")], ids=["no splits", "one split"])
    def test_what_is_paused_is_not_idle_and_has_all_its_time_afterwards(self, start: Start, feed: Feed) -> None:
        """FLINK-35886, FLINK-36751, FLINK-40093"""
        stage = start(feed, idle_after_ms=1_000, max_drift_ms=50)
        gives(stage, [101] if feed.splits is None else split("a", 101))
        announce(stage, 0)
        said(stage)
        stage.passes(60_000)
        assert said(stage) == []
        announce(stage, 90)
        stage.passes(999)
        assert said(stage) == []
        stage.passes(1)
        assert said(stage) == [WatermarkStatus(True)]

    def test_only_splits_that_are_ahead_are_paused(self, start: Start) -> None:
        stage = start(Feed("ab"), max_drift_ms=50)
        gives(stage, split("a", 101), split("b", 11))
        announce(stage, 10)
        gives(stage, split("a", 201), split("b", 31))
        assert said(stage) == [[101], [11], Watermark(10), [31], Watermark(30)]
        announce(stage, 60)
        assert said(stage) == [[201]]

    def test_until_it_knows_where_the_others_are_it_runs_ahead_by_a_batch_at_most(self, start: Start) -> None:
        stage = start(Feed(), max_drift_ms=50)
        gives(stage, [101], [201])
        assert said(stage) == [[101], Watermark(100)]
        announce(stage, 60)
        assert said(stage) == [[201], Watermark(200)]

    def test_without_others_to_wait_for_it_goes_on(self, start: Start) -> None:
        """FLINK-31632: all others idle; nothing overflows."""
        stage = start(Feed(), max_drift_ms=2**62)
        gives(stage, [101])
        for minimum_ms in (END_OF_TIME, NO_WATERMARK, END_OF_TIME):
            announce(stage, minimum_ms)
        gives(stage, [201])
        assert said(stage) == [[101], Watermark(100), [201], Watermark(200)]

    def test_one_that_has_no_watermark_yet_is_not_paused_when_nobody_has(self, start: Start) -> None:
        stage = start(Feed(), max_drift_ms=50)
        announce(stage, NO_WATERMARK)
        gives(stage, [101])
        gives(stage, [201])
        assert said(stage) == [[101], Watermark(100)]

    def test_it_reports_where_it_is_what_changes_and_its_end(self, start: Start) -> None:
        stage = start(Feed(), idle_after_ms=1_000, max_drift_ms=50)
        assert self._reports(stage) == [(NO_WATERMARK, True)]
        announce(stage, END_OF_TIME)
        gives(stage, [101])
        stage.passes(200)
        assert self._reports(stage)[-1] == (100, True)
        stage.passes(800)
        stage.passes(100)
        assert self._reports(stage)[-1] == (NO_WATERMARK, False)
        gives(stage, [201])
        assert self._reports(stage)[-1] == (200, True)
        gives(stage, END)
        assert self._reports(stage)[-1][1] is False
        report = stage.task.watermark_report()
        assert report is not None
        assert not report.is_waited_for

    def test_without_alignment_it_reports_nothing(self, start: Start) -> None:
        stage = start(Feed())
        gives(stage, [1])
        assert self._reports(stage) == []
        assert stage.task.watermark_report() is None

    def _reports(self, stage: TaskStage) -> list[tuple[int, bool]]:
        return [(each.watermark_ms, each.is_waited_for) for each in stage.said(ReportWatermark)]


class TestMetrics:
    def test_name_the_split_that_holds_event_time_back(self, start: Start) -> None:
        stage = start(Feed("ab"), idle_after_ms=60_000)
        gives(stage, split("a", 101), split("b", 51))
        stage.passes(2_000)
        time = stage.task.metrics().event_time
        assert time is not None
        assert (time.output_watermark_ms, time.standing_ms, time.is_idle, time.is_held_back) == (
            50,
            2_000,
            False,
            False,
        )
        assert time.lag_ms == 1_950
        assert time.split is not None
        assert (time.split.split, time.split.watermark_ms, time.split.standing_ms) == ("b", 50, 2_000)
        assert (time.splits, time.idle_splits, time.paused_splits) == (2, 0, 0)
        assert time.channel is None

    def test_have_no_lag_where_event_time_is_no_date_and_the_clock_is(self, start: Start) -> None:
        """The rounds of a loop, and the small numbers of a test, are not decades behind."""
        stage = start(Feed("a"), idle_after_ms=60_000)
        stage.passes(1_700_000_000_000)
        gives(stage, split("a", 101))
        time = stage.task.metrics().event_time
        assert time is not None
        assert time.output_watermark_ms == 100
        assert time.lag_ms is None
        gives(stage, split("a", 1_700_000_000_001))
        time = stage.task.metrics().event_time
        assert time is not None
        assert time.lag_ms == 0

    def test_name_the_channel_that_does(self, tmp_path: Path) -> None:
        stage = TaskStage(Map(lambda record: record), deployment(inputs=2), str(tmp_path))
        stage.arrives(0, Watermark(5))
        stage.passes(1_000)
        stage.arrives(1, Watermark(7))
        stage.passes(500)
        time = stage.task.metrics().event_time
        assert time is not None
        assert (time.input_watermark_ms, time.output_watermark_ms, time.standing_ms) == (5, 5, 500)
        assert time.channel is not None
        assert (time.channel.producer_subtask, time.channel.watermark_ms, time.channel.standing_ms) == (0, 5, 1_500)
        assert time.split is None

    def test_count_what_came_too_late_for_any_operator(self, tmp_path: Path) -> None:
        stage = TaskStage([Sieve(), Sieve()], deployment(inputs=1), str(tmp_path))
        stage.arrives(0, [1, 2, 3])
        time = stage.task.metrics().event_time
        assert time is not None
        assert time.late_records == 3 + 2


class TestLog:
    @pytest.fixture
    def warnings(self, caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
        with caplog.at_level(logging.WARNING):
            yield caplog

    def test_a_split_that_holds_event_time_back_while_records_come_is_logged_once(
        self, start: Start, warnings: pytest.LogCaptureFixture
    ) -> None:
        stage = start(Feed("ab"), warn_ms=10_000)
        for second in range(30):
            gives(stage, split("a", second * 1_000))
            stage.passes(1_000)
        (line,) = warnings.messages
        assert line.startswith("v (subtask 0 of 1): event time has stood still for 1")
        assert "split 'b' holds it back" in line
        assert "idle_after_ms" in line

        warnings.clear()
        for second in range(30, 60):
            gives(stage, split("a", second * 1_000), split("b", second * 1_000))
            stage.passes(1_000)
        (line,) = warnings.messages
        assert "event time goes on, at " in line

    def test_so_is_a_channel(self, tmp_path: Path, warnings: pytest.LogCaptureFixture) -> None:
        stage = TaskStage(Map(lambda each: each), deployment(inputs=2), str(tmp_path), watermark_warn_ms=10_000)
        for second in range(30):
            stage.arrives(0, [second], Watermark(second))
            stage.passes(1_000)
        (line,) = warnings.messages
        assert "it waits for subtask 1 of its input, which is at no watermark yet" in line

    def test_a_job_without_event_time_hears_nothing(self, tmp_path: Path, warnings: pytest.LogCaptureFixture) -> None:
        stage = TaskStage(Map(lambda each: each), deployment(inputs=2), str(tmp_path), watermark_warn_ms=10_000)
        for second in range(30):
            stage.arrives(0, [second])
            stage.passes(1_000)
        assert warnings.messages == []

    def test_nor_does_one_of_which_a_part_has_ended(self, tmp_path: Path, warnings: pytest.LogCaptureFixture) -> None:
        stage = TaskStage(Map(lambda each: each), deployment(inputs=2), str(tmp_path), watermark_warn_ms=10_000)
        stage.arrives(1, Watermark(END_OF_TIME))
        for second in range(30):
            stage.arrives(0, [second])
            stage.passes(1_000)
        assert warnings.messages == []

    def test_a_source_that_brings_nothing_is_not_logged(self, start: Start, warnings: pytest.LogCaptureFixture) -> None:
        stage = start(Feed("ab"), warn_ms=10_000)
        gives(stage, split("a", 5))
        for _ in range(30):
            stage.passes(1_000)
        assert warnings.messages == []
