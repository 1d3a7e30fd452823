"""Task: a source at the barrier of a stop with savepoint, and attempts that have only to commit and finish.

Flink: stop-with-savepoint without drain emits nothing after the savepoint's barrier and calls no end-of-input hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from understudy.actors.flow.elements import END_OF_TIME, Batch, CheckpointBarrier, EndOfData, EndOfPartition, Watermark
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.source import Source, SourceState
from understudy.actors.tasks.task_setup import DoneAside
from understudy.messages import (
    AcknowledgeCheckpoint,
    CancelTask,
    ChannelId,
    ExecutionState,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    NotifyEndOfData,
    StopTask,
    SubtaskState,
    SwitchToUnaligned,
    TaskDeployment,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)

from .task_stage import ATTEMPT, JOB, TaskStage, checkpoint, deployment

WAITING: list[list[int]] = []
"""What the source finds to poll; operators travel pickled, so their tests meet them here."""

END = Watermark(END_OF_TIME)


class Waiting(Source):
    """Emits the batches that wait for it."""

    def __init__(self) -> None:
        self.taken = 0

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        if not WAITING:
            return None
        self.taken += 1
        return WAITING.pop(0)

    def offset(self) -> int:
        return self.taken

    def seek(self, offset: int) -> None:
        self.taken = offset


class Telling(Operator):
    """Passes batches on, and tells when its input has ended and what was committed."""

    def process_batch(self, batch: list[Any], out: Collector) -> None:
        out.emit(batch)

    def on_end(self, out: Collector) -> None:
        out.emit(["the end"])

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        TOLD.append(checkpoint_id)


TOLD: list[int] = []

Start = Callable[[Operator, TaskDeployment], TaskStage]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    WAITING.clear()
    TOLD.clear()
    yield lambda operator, deployed: TaskStage(operator, deployed, str(tmp_path))
    WAITING.clear()


def trigger(number: int, *, stop: bool = False) -> TriggerCheckpoint:
    return TriggerCheckpoint(JOB, ATTEMPT, checkpoint(number), 0, stop)


def completed(number: int, *, final: bool = True) -> NotifyCheckpointComplete:
    return NotifyCheckpointComplete(JOB, ATTEMPT, checkpoint(number), 0, final)


def aborted(number: int) -> NotifyCheckpointAborted:
    return NotifyCheckpointAborted(JOB, ATTEMPT, checkpoint(number), "expired")


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint(number), 0)


def stop(number: int) -> CheckpointBarrier:
    return replace(barrier(number), stop=True)


def state_of(stage: TaskStage) -> ExecutionState:
    return stage.said(UpdateTaskExecutionState)[-1].state  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------- the source


def test_a_source_emits_nothing_after_the_barrier_of_a_stop(start: Start) -> None:
    stage = start(Waiting(), deployment())
    WAITING.append([1, 2])
    stage.tell(trigger(1, stop=True))
    WAITING.append([3])
    stage.settle()
    assert stage.emitted() == [stop(1)]
    assert stage.said(NotifyEndOfData) == []
    (ack,) = stage.said(AcknowledgeCheckpoint)
    assert ack.state is not None
    assert not ack.state.data_ended


def test_a_held_source_finishes_when_the_stop_has_completed(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1, stop=True))
    WAITING.append([3])
    stage.tell(completed(1))
    assert stage.emitted() == [stop(1), EndOfPartition()]
    assert state_of(stage) is ExecutionState.FINISHED


def test_a_held_source_goes_on_where_it_was_when_the_stop_has_failed(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1, stop=True))
    WAITING.append([3])
    stage.tell(aborted(1))
    assert stage.emitted() == [stop(1), [3]]


def test_only_the_checkpoint_that_holds_it_lets_a_source_go_on(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1), trigger(2, stop=True))
    WAITING.append([3])
    stage.tell(aborted(1), completed(1, final=False), trigger(1))
    assert stage.emitted() == [barrier(1), stop(2)]
    stage.tell(aborted(2), aborted(2))
    assert stage.emitted() == [[3]]


def test_a_newer_checkpoint_shows_that_the_stop_has_failed(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1, stop=True))
    WAITING.append([3])
    stage.tell(trigger(2))
    assert stage.emitted() == [stop(1), barrier(2), [3]]


def test_a_second_stop_holds_again(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1, stop=True), aborted(1), trigger(2, stop=True), aborted(1))
    WAITING.append([3])
    stage.settle()
    assert stage.emitted() == [stop(1), stop(2)]


def test_a_held_source_that_is_told_to_end_its_data_does_so_only_when_it_goes_on(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1, stop=True), StopTask(JOB, ATTEMPT))
    assert (stage.emitted(), stage.said(NotifyEndOfData)) == ([stop(1)], [])
    WAITING.append([3])
    stage.tell(aborted(1))
    assert stage.emitted() == [END, EndOfData()]
    assert len(stage.said(NotifyEndOfData)) == 1


class Reading(Waiting):
    """Has lost what it has not read yet, once its job is gone."""

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        READING[:1] = []
        return super().poll()

    def _is_whole(self) -> bool:
        return not READING


READING: list[str] = []
"""What a source has to read before a snapshot of it is whole."""


def read_aside(stage: TaskStage) -> None:
    READING.clear()
    stage.tell(DoneAside(lambda _: None, None))


@pytest.mark.parametrize("what", ["stop", "savepoint"])
def test_the_barrier_of_a_stop_or_savepoint_waits_until_the_source_is_whole(start: Start, what: str) -> None:
    READING[:] = ["the log"]
    stage = start(Reading(), deployment())
    READING[:] = ["more", "of", "the log"]
    asked = trigger(1, stop=True) if what == "stop" else replace(trigger(1), whole=True)
    emitted = stop(1) if what == "stop" else replace(barrier(1), whole=True)
    WAITING.append([3])
    stage.tell(asked)
    assert stage.emitted() == [[3]], "it is polled meanwhile"
    stage.tell(trigger(2))
    assert stage.emitted() == [], "ids only grow"
    read_aside(stage)
    assert stage.emitted() == [emitted, barrier(2)]


def test_a_savepoint_that_is_given_up_while_it_waits_holds_nobody_up(start: Start) -> None:
    stage = start(Reading(), deployment())
    READING[:] = ["the log"] * 9
    stage.tell(trigger(1, stop=True), trigger(2))
    assert stage.emitted() == []
    stage.tell(aborted(1))
    assert stage.emitted() == [barrier(2)]
    read_aside(stage)
    assert stage.emitted() == []


def test_an_ordinary_checkpoint_waits_for_nothing(start: Start) -> None:
    stage = start(Reading(), deployment())
    READING[:] = ["the log"] * 9
    stage.tell(trigger(1))
    assert stage.emitted() == [barrier(1)]
    READING.clear()


def test_an_ordinary_checkpoint_holds_nothing(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(trigger(1))
    WAITING.append([3])
    stage.settle()
    assert stage.emitted() == [barrier(1), [3]]


def test_a_source_whose_data_has_ended_takes_part_in_a_stop(start: Start) -> None:
    stage = start(Waiting(), deployment())
    stage.tell(StopTask(JOB, ATTEMPT), trigger(1, stop=True))
    (ack,) = stage.said(AcknowledgeCheckpoint)
    assert ack.state is not None
    assert ack.state.data_ended
    stage.tell(aborted(1))
    assert stage.emitted() == [END, EndOfData(), stop(1)]
    assert len(stage.said(NotifyEndOfData)) == 1


# ------------------------------------------------------------------------------------------------- behind sources


def test_producers_that_have_finished_without_end_of_data_end_nothing(start: Start) -> None:
    stage = start(Telling(), deployment(inputs=2))
    for wire in (0, 1):
        stage.arrives(wire, ["a"], barrier(1), EndOfPartition())
    assert stage.emitted() == [["a"], ["a"], barrier(1)]
    assert (state_of(stage), stage.said(NotifyEndOfData)) == (ExecutionState.RUNNING, [])
    stage.tell(completed(1))
    assert stage.emitted() == [EndOfPartition()]
    assert (state_of(stage), TOLD) == (ExecutionState.FINISHED, [1])


def test_end_of_data_on_all_inputs_ends_the_data_once(start: Start) -> None:
    stage = start(Telling(), deployment(inputs=2))
    stage.arrives(0, EndOfData())
    assert stage.emitted() == []
    stage.arrives(1, EndOfData(), EndOfPartition())
    stage.arrives(0, EndOfPartition())
    assert stage.emitted() == [["the end"], END, EndOfData()]
    assert len(stage.said(NotifyEndOfData)) == 1


# ------------------------------------------------------------------------- restored from the last checkpoint of a job


@pytest.mark.parametrize("data_ended", [False, True])
def test_a_restored_source_that_is_finishing_polls_nothing_and_says_nothing(start: Start, data_ended: bool) -> None:
    restored = (SubtaskState({}, data_ended=data_ended),)
    stage = start(Waiting(), deployment(restored_checkpoint_id=checkpoint(4), restored=restored, finishing=True))
    WAITING.append([3])
    stage.settle()
    assert (stage.emitted(), stage.said(NotifyEndOfData)) == ([], [])
    stage.tell(StopTask(JOB, ATTEMPT), completed(4))
    assert stage.emitted() == [EndOfPartition()]
    assert state_of(stage) is ExecutionState.FINISHED


def test_a_restored_operator_that_is_finishing_commits_and_emits_no_final_results(start: Start) -> None:
    restored = (SubtaskState({}),)
    finishing = deployment(inputs=1, restored_checkpoint_id=checkpoint(4), restored=restored, finishing=True)
    stage = start(Telling(), finishing)
    stage.arrives(0, EndOfPartition())
    stage.tell(completed(4))
    assert stage.emitted() == [EndOfPartition()]
    assert (state_of(stage), TOLD) == (ExecutionState.FINISHED, [4])


def test_data_that_had_ended_before_a_restore_has_ended_in_the_next_snapshot_too(start: Start) -> None:
    """Also where the snapshot overtakes the end of data that producers say again: what `on_end` emits comes once."""
    stage = start(Telling(), deployment(inputs=1, restored=(SubtaskState({}, data_ended=True),)))
    stage.plane.wires[ChannelId(0)].elements.append(EndOfData())
    stage.task.on_receive(SwitchToUnaligned(JOB, ATTEMPT, checkpoint(1), 0))
    stage.arrives(0, barrier(1))
    assert stage.emitted() == [barrier(1), END, EndOfData()]
    (ack,) = stage.said(AcknowledgeCheckpoint)
    again = start(Telling(), deployment(inputs=1, restored=(ack.state,)))
    again.arrives(0, EndOfData())
    assert again.emitted() == [END, EndOfData()]


def test_a_source_restored_from_an_ordinary_checkpoint_polls(start: Start) -> None:
    stage = start(Waiting(), deployment(restored_checkpoint_id=checkpoint(4), restored=(SubtaskState({}),)))
    WAITING.append([3])
    stage.settle()
    assert stage.emitted() == [[3]]


STATUSES: list[str] = []


def test_a_task_that_closes_its_operators_has_not_ended_yet(tmp_path: Path) -> None:
    """Its heartbeats must not be ahead of its report: what `close` raises, prints and logs is still part of it."""

    class Closing(Telling):
        def close(self) -> None:
            STATUSES.append(stage.task.metrics().status)

    stage = TaskStage(Telling(), deployment(1), str(tmp_path))
    closing: Any = Closing()
    closing.context = stage.task._running_parts().chain.operators[0].context
    stage.task._running_parts().chain.operators = (closing,)
    stage.tell(CancelTask(JOB, ATTEMPT))
    assert STATUSES.pop() == ExecutionState.RUNNING.value
    assert stage.task.metrics().status == ExecutionState.CANCELED.value


def test_a_heartbeat_at_any_moment_of_its_end_says_no_end_that_it_has_not_reached(tmp_path: Path) -> None:
    """The TaskManager's thread reads figures while the task's thread ends it: its operators may still fail."""
    stage = TaskStage(Telling(), deployment(1), str(tmp_path))
    seen: list[str] = []
    rests = stage.task.counters.rests

    def look() -> None:
        seen.append(stage.task.metrics().status)
        rests()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(stage.task.counters), "rests", lambda _: look())
        stage.tell(CancelTask(JOB, ATTEMPT))
    assert seen == [ExecutionState.RUNNING.value]
    assert stage.task.metrics().status == ExecutionState.CANCELED.value
