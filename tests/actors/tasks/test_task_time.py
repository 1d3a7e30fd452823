"""What a watermark makes due fires in parts, with barriers between them; watermarks and timers are state.

Facts from Flink's InternalTimerServiceImplTest, MailboxWatermarkProcessorTest and StreamTaskTest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.actors.actor import Step
from understudy.actors.failure import tell_story
from understudy.actors.flow.elements import (
    END_OF_TIME,
    CheckpointBarrier,
    EndOfData,
    TimedBatch,
    Watermark,
    WatermarkStatus,
)
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.timers import FIRED_AT_ONCE, KeyedTimer
from understudy.actors.windows.window_makers import tumbling
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.messages import (
    AcknowledgeCheckpoint,
    ChannelId,
    CheckpointId,
    NotifyCheckpointAborted,
    SubtaskState,
    SwitchToUnaligned,
    UpdateTaskExecutionState,
)

from .task_stage import ATTEMPT, JOB, TaskStage, deployment


class Echo(KeyedOperator):
    """A timer for each record, at the time that the record names."""

    def process(self, record: dict[str, int], out: Collector) -> None:
        if "proc" in record:
            self.timers.at_processing_time(record["proc"])
        if "at" in record:
            self.timers.at_event_time(record["at"])
        if record.get("late") is not None:
            out.collect(("late" if self.timestamp <= self.watermark else "in time", self.timestamp))

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((self.key, timer.domain, timer.time_ms))


def timed(*records: dict[str, int], at: int = 0) -> TimedBatch:
    return TimedBatch(list(records), np.full(len(records), at, np.int64))


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(CheckpointId(number), 0)


Stage = Callable[..., TaskStage]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    def make(inputs: int = 1, **fields: Any) -> TaskStage:
        return TaskStage(Echo(), deployment(inputs=inputs, **fields), str(tmp_path), key="key")

    return make


def fired(elements: list[Any]) -> list[Any]:
    """What timers emitted, and controls."""
    return [
        each for element in elements for each in (element.records if isinstance(element, TimedBatch) else [element])
    ]


def acknowledged(stage: TaskStage) -> SubtaskState:
    (ack,) = stage.said(AcknowledgeCheckpoint)
    return ack.state  # type: ignore[no-any-return]


def steps(stage: TaskStage, *elements: Any) -> None:
    """Elements on the first channel, and no step yet."""
    stage.plane.wires[ChannelId(0)].elements.extend(elements)


def test_timers_fire_in_order_before_the_watermark_goes_on(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed({"key": 1, "at": 7}, {"key": 2, "at": 5}, {"key": 1, "at": 5}, {"key": 1, "at": 8}))
    task.arrives(0, Watermark(7))
    assert fired(task.emitted()) == [(2, "event", 5), (1, "event", 5), (1, "event", 7), Watermark(7)]
    task.arrives(0, Watermark(8))
    assert fired(task.emitted()) == [(1, "event", 8), Watermark(8)]


def test_behind_the_barrier_of_a_stop_nothing_fires_until_it_is_given_up(stage: Stage) -> None:
    task = stage()
    records = [{"key": key, "at": 5} for key in range(FIRED_AT_ONCE + 1)]
    task.arrives(0, timed(*records))
    steps(task, Watermark(9), CheckpointBarrier(CheckpointId(1), 0, stop=True))
    task.settle()
    before = fired(task.emitted())
    assert before[-1] == CheckpointBarrier(CheckpointId(1), 0, stop=True)
    assert len(before) <= FIRED_AT_ONCE + 1
    task.tell(NotifyCheckpointAborted(JOB, ATTEMPT, CheckpointId(1), "expired"))
    task.settle()
    after = fired(task.emitted())
    assert after[-1] == Watermark(9)
    assert len(before) + len(after) == len(records) + 2


def test_what_a_timer_emits_has_its_time(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed({"key": 1, "at": 7}, {"key": 2, "at": 5}), Watermark(9))
    (batch, _) = task.emitted()
    assert batch.times.tolist() == [5, 7]  # type: ignore[union-attr]


def test_the_same_timer_twice_is_one_and_a_deleted_one_none(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed({"key": 1, "at": 5}, {"key": 1, "at": 5}), Watermark(9))
    assert fired(task.emitted()) == [(1, "event", 5), Watermark(9)]


def test_a_barrier_passes_between_two_parts_and_the_snapshot_has_what_has_not_fired(stage: Stage) -> None:
    task, count = stage(), 2 * FIRED_AT_ONCE + 500
    task.arrives(0, timed(*({"key": n, "at": 5} for n in range(count))))
    steps(task, Watermark(7), barrier(1), timed({"key": 1, "at": 6}))

    assert task.task.step() is Step.BUSY  # the watermark, and the barrier behind it
    task.settle()
    order = fired(task.emitted())

    before, after = order[: order.index(barrier(1))], order[order.index(barrier(1)) + 1 :]
    assert after[count - len(before)] == Watermark(7)
    assert Watermark(7) not in before
    assert len(before) < count
    assert len(before) + after.index(Watermark(7)) == count

    again = stage(restored_checkpoint_id=CheckpointId(1), restored=(acknowledged(task),))
    found = fired(again.emitted())
    assert sorted(found[:-1]) == sorted(after[: after.index(Watermark(7))])
    assert found[-1] == Watermark(7)


def test_no_record_is_taken_while_a_watermark_makes_timers_due(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed(*({"key": n, "at": 5} for n in range(FIRED_AT_ONCE + 1))))
    steps(task, Watermark(7), timed({"key": 1, "late": 1}, at=7))
    task.settle()
    order = fired(task.emitted())
    assert order[-2:] == [Watermark(7), ("late", 7)]


def test_late_is_decided_as_before_after_a_restore(stage: Stage) -> None:
    task = stage(inputs=2)
    task.arrives(0, Watermark(10))
    task.arrives(1, Watermark(5), barrier(1))
    task.arrives(0, barrier(1))
    task.emitted()

    again = stage(inputs=2, restored_checkpoint_id=CheckpointId(1), restored=(acknowledged(task),))
    for each in (task, again):
        each.emitted()
        each.arrives(0, timed({"key": 1, "late": 1}, at=5), timed({"key": 1, "late": 1}, at=6))
        assert fired(each.emitted()) == [("late", 5), ("in time", 6)]
        each.arrives(1, Watermark(9), timed({"key": 1, "late": 1}, at=9))
        assert fired(each.emitted()) == [Watermark(9), ("late", 9)]


def test_a_watermark_that_a_barrier_overtakes_is_in_flight(stage: Stage) -> None:
    task = stage(inputs=2)
    task.arrives(0, Watermark(10), barrier(1), Watermark(30))
    steps_on_second = task.plane.wires[ChannelId(1)].elements
    task.tell(SwitchToUnaligned(JOB, task.task.deployment.attempt_id, CheckpointId(1), 0))
    steps_on_second.extend([Watermark(20), barrier(1), Watermark(40)])
    task.settle()
    state = acknowledged(task)
    assert task.watermark_ms == 30

    again = stage(inputs=2, restored_checkpoint_id=CheckpointId(1), restored=(state,))
    assert again.watermark_ms == 10  # the channels' are 10, and 20, which was in flight


def test_that_a_channel_has_become_idle_is_in_flight_too_so_it_holds_nothing_back_after_a_restore(
    stage: Stage,
) -> None:
    task = stage(inputs=2)
    task.arrives(0, Watermark(10), barrier(1))
    task.tell(SwitchToUnaligned(JOB, ATTEMPT, CheckpointId(1), 0))
    task.arrives(1, WatermarkStatus(True), barrier(1))

    again = stage(inputs=2, restored_checkpoint_id=CheckpointId(1), restored=(acknowledged(task),))
    again.arrives(0, Watermark(30))
    assert (task.watermark_ms, again.watermark_ms) == (10, 30)


def test_processing_time_timers_fire_by_the_clock(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed({"key": 1, "proc": 50}, {"key": 2, "proc": 40}))
    assert task.emitted() == []
    assert task.task.idle_ms == 40
    task.passes(40)
    assert fired(task.emitted()) == [[(2, "processing", 40)]]
    task.passes(40)
    assert fired(task.emitted()) == [[(1, "processing", 50)]]


def test_processing_time_timers_that_were_due_while_the_job_was_down_fire_after_a_restore(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed({"key": 1, "proc": 50}), barrier(1))
    again = stage(restored_checkpoint_id=CheckpointId(1), restored=(acknowledged(task),))
    again.emitted()
    again.passes(60)
    assert fired(again.emitted()) == [[(1, "processing", 50)]]


def test_at_the_end_of_data_all_event_time_timers_fire(stage: Stage) -> None:
    task = stage()
    task.arrives(0, timed({"key": 1, "at": 10**15}, {"key": 1, "proc": 50}), EndOfData())
    assert fired(task.emitted()) == [(1, "event", 10**15), Watermark(END_OF_TIME), EndOfData()]


def test_an_idle_channel_holds_nothing_back_and_all_idle_is_said_on(stage: Stage) -> None:
    task = stage(inputs=2)
    task.arrives(0, Watermark(10))
    task.arrives(1, WatermarkStatus(True))
    assert task.emitted() == [Watermark(10)]
    task.arrives(0, WatermarkStatus(True))
    assert task.emitted() == [WatermarkStatus(True)]
    task.arrives(1, Watermark(12))
    assert task.emitted() == [WatermarkStatus(False), Watermark(12)]


def test_the_watermark_that_becomes_due_when_all_are_idle_goes_before_the_word_of_it(stage: Stage) -> None:
    """Behind it, it would say that this task is active again, and nobody would take that back."""
    task = stage(inputs=2)
    task.arrives(0, timed({"key": 1, "at": 20}), Watermark(30))
    task.arrives(1, Watermark(10))
    assert task.emitted() == [Watermark(10)]
    task.arrives(0, WatermarkStatus(True))
    assert task.emitted() == []
    task.arrives(1, WatermarkStatus(True))
    assert fired(task.emitted()) == [(1, "event", 20), Watermark(30), WatermarkStatus(True)]
    task.arrives(1, WatermarkStatus(False))
    assert task.emitted() == [WatermarkStatus(False)]


def test_a_timer_without_on_timer_is_refused_where_it_is_set(tmp_path: Path) -> None:
    class NoHook(KeyedOperator):
        def process(self, record: Any, out: Collector) -> None:
            self.timers.at_event_time(50)

    task = TaskStage(NoHook(), deployment(inputs=1), str(tmp_path), key="key")
    task.arrives(0, timed({"key": 1}))
    cause = task.said(UpdateTaskExecutionState)[-1].failure
    assert cause is not None
    failure = tell_story(cause)
    assert "NoHook registers a timer and defines no on_timer: define `def on_timer(self, timer, out)`" in failure
    assert "self.timers.at_event_time(50)" in failure


def test_timers_of_earlier_code_can_be_deleted_without_on_timer(tmp_path: Path) -> None:
    class Deletes(KeyedOperator):
        def process(self, record: Any, out: Collector) -> None:
            out.collect(self.timers.delete_event_time(50))

    task = TaskStage(Deletes(), deployment(inputs=1), str(tmp_path), key="key")
    task.arrives(0, timed({"key": 1}), EndOfData())
    assert fired(task.emitted())[0] is False


def test_late_records_are_logged_with_their_number_and_how_late_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = WindowSettings.of(tumbling(10), None, None, 0, "accumulating")
    task = TaskStage(WindowOperator(settings), deployment(inputs=1), str(tmp_path), key="key")
    for watermark_ms in (20, 30, 40):
        task.arrives(0, timed({"key": 1}, {"key": 2}, at=5), Watermark(watermark_ms))
    late = [record.getMessage() for record in caplog.records if "late" in record.getMessage()]
    assert len(late) == 1
    assert "'op' has had its first late records: 2 of them, 15 ms behind event time at most" in late[0]
    assert all(each in late[0] for each in (".allowed_lateness", "assign_timestamps", ".late"))
    for more in range(10):
        task.arrives(0, timed({"key": 1}, {"key": 2}, at=5), Watermark(2_000 + more))
    late = [record.getMessage() for record in caplog.records if "late" in record.getMessage()]
    assert len(late) == 2, "again when there are ten times as many"
    assert "'op' has had 20 late records, 2.0 s behind event time at most" in late[1]


def test_late_records_that_a_reader_gets_are_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = WindowSettings.of(tumbling(10), None, None, 0, "accumulating")
    deployed = deployment(inputs=1)
    read = replace(deployed.outputs[0], edge=deployed.outputs[0].edge + 1, output_tag="late")
    deployed = replace(deployed, outputs=(*deployed.outputs, read))
    task = TaskStage(WindowOperator(settings), deployed, str(tmp_path), key="key")
    task.arrives(0, Watermark(20), timed({"key": 1}, at=5), Watermark(30))
    assert not [record for record in caplog.records if "late" in record.getMessage()]


def test_timers_of_processing_time_that_the_end_of_the_data_drops_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Waits(KeyedOperator):
        def process(self, record: Any, out: Collector) -> None:
            self.timers.at_processing_time(10**15)

        def on_timer(self, timer: Any, out: Collector) -> None:
            raise AssertionError("it is not due")

    task = TaskStage(Waits(), deployment(inputs=1), str(tmp_path), key="key")
    task.arrives(0, [{"key": 1}, {"key": 2}], EndOfData())
    assert "'op' (subtask 0): 2 of its timers of processing time were still to come when the data ended" in caplog.text
