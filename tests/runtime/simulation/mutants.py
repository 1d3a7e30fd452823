"""Mutants: our own protocol, broken on purpose in one place each. The simulator must notice every one of them.

A mutant is a function that patches product code; its name says what is broken, its docstring how. `within`: in so
many histories at most it must be caught. Some need a fault that is rare in standard histories, and add it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from understudy.actors import restore_points, task_setup
from understudy.actors.barrier_buffer import BarrierBuffer
from understudy.actors.barrier_handler import Aligned
from understudy.actors.barrier_tracker import BarrierTracker
from understudy.actors.checkpoint_coordinator import CheckpointCoordinator
from understudy.actors.checkpoint_effects import RetryFinal, ScheduleTimer, StoreMetadata
from understudy.actors.elements import CheckpointBarrier, EndOfData, EndOfPartition
from understudy.actors.job_ending import JobEnding
from understudy.actors.job_manager import JobManager
from understudy.actors.job_master import JobMaster
from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from understudy.actors.outputs import TaskOutputs
from understudy.actors.partitioner import HashByKey
from understudy.actors.pending_checkpoint import PendingCheckpoint
from understudy.actors.restore_points import RestorePoints
from understudy.actors.slot_pool import SlotPool
from understudy.actors.task import Task
from understudy.actors.task_manager import TaskManager
from understudy.actors.task_manager_roster import TaskManagerRoster
from understudy.actors.task_state import TaskState
from understudy.messages import AcknowledgeCheckpoint, StateHandle, SubtaskState
from understudy.runtime.connectors.file_sink import FileSink
from understudy.runtime.simulation.faults import JOB_MANAGER, FailingOperator, Fault, KillProcess, PowerFailure, RottenFile
from understudy.runtime.simulation.scenario import Scenario
from understudy.runtime.transport.frames import FrameKind
from understudy.runtime.transport.remote_input import RemoteInputChannel
from understudy.runtime.transport.remote_output import RemoteOutputChannel
from understudy.state import CheckpointStorage
from understudy.state.completed_checkpoints import StandaloneCompletedCheckpointStore
from understudy.state.durable_files import DurableFiles
from understudy.state.heap_states import HeapState

Patch = pytest.MonkeyPatch
Scenarios = Callable[[int], Scenario]




@dataclass(frozen=True)
class Mutant:
    """`scenarios` gives a history for each seed."""

    name: str
    apply: Callable[[Patch], None]
    within: int
    scenarios: Scenarios


MUTANTS: list[Mutant] = []


def mutant(within: int, scenarios: Scenarios = Scenario.of) -> Callable[[Callable[[Patch], None]], None]:
    def add(apply: Callable[[Patch], None]) -> None:
        MUTANTS.append(Mutant(apply.__name__, apply, within, scenarios))

    return add


def also(make: Callable[[float], Fault], since: float = 0.3, until: float = 0.9) -> Scenarios:
    """Standard histories with one more fault, at some time between these shares of the run."""

    def scenario(seed: int) -> Scenario:
        standard = Scenario.of(seed)
        at_ms = round(random.Random(seed).uniform(since, until) * standard.workload.duration_ms, 1)
        faults = sorted([*standard.faults, make(at_ms)], key=lambda fault: fault.at_ms)
        return replace(standard, faults=tuple(faults))

    return scenario


def nothing(*_args: Any, **_kwargs: Any) -> Any:
    """What is done instead of something."""


# ---- barriers and snapshots


@mutant(within=20)
def alignment_is_skipped(patch: Patch) -> None:
    """Barriers are counted, and no channel waits for the others."""
    patch.setattr(task_setup, "BarrierBuffer", BarrierTracker)


@mutant(within=20)
def the_first_barrier_is_enough(patch: Patch) -> None:
    def on_barrier(self: BarrierBuffer, _channel: int, barrier: CheckpointBarrier, events: list[Any]) -> None:
        if barrier.checkpoint_id > self._current:
            self._advance(barrier.checkpoint_id)
            events.append(Aligned(barrier))

    patch.setattr(BarrierBuffer, "_on_barrier", on_barrier)


@mutant(within=30)
def one_channel_is_not_aligned(patch: Patch) -> None:
    """What comes on the first channel passes, even behind its barrier."""
    take = BarrierBuffer._take

    def unaligned(self: BarrierBuffer, channel: int, element: Any, events: list[Any]) -> None:
        if channel == 0 and channel in self._blocked and hasattr(element, "__len__"):
            events.append((channel, element))
        else:
            take(self, channel, element, events)

    patch.setattr(BarrierBuffer, "_take", unaligned)
    patch.setattr(BarrierBuffer, "is_blocked", lambda self, channel: channel != 0 and channel in self._blocked)


@mutant(within=20)
def the_barrier_goes_on_before_the_snapshot(patch: Patch) -> None:
    """It is sent on at once, and the snapshot is taken a while later."""
    checkpoint, handle, broadcast = Task._checkpoint, Task._handle, TaskOutputs.broadcast

    def forward(self: Task, barrier: CheckpointBarrier) -> None:
        self._running_parts().outputs.broadcast(barrier)
        later = self.context.run_blocking(lambda: None)
        self.context.pipe_to_self(later, lambda _: barrier, lambda _: barrier)

    def take(self: Task, message: Any) -> None:
        if not isinstance(message, CheckpointBarrier):
            handle(self, message)
            return
        outputs = self._running_parts().outputs
        outputs.broadcast = nothing
        checkpoint(self, message)
        outputs.broadcast = broadcast.__get__(outputs)

    patch.setattr(Task, "_checkpoint", forward)
    patch.setattr(Task, "_handle", take)


@mutant(within=40)
def the_snapshot_shares_the_state(patch: Patch) -> None:
    """What is written to the file is the state as it is then, not as it was at the barrier."""
    patch.setattr(HeapState, "view", lambda self: self.namespaces)


@mutant(within=20)
def the_snapshot_is_acknowledged_before_it_is_written(patch: Patch) -> None:
    """Its file is written a while later, unless something comes in between."""
    snapshot = TaskState.snapshot
    write = CheckpointStorage.write

    def promising(self: TaskState, *args: Any, **kwargs: Any) -> Callable[[], tuple[SubtaskState, int]]:
        finish = snapshot(self, *args, **kwargs)

        def promise() -> tuple[SubtaskState, int]:
            with pytest.MonkeyPatch.context() as only_here:
                only_here.setattr(CheckpointStorage, "write", _promised)
                return finish()

        return promise

    def written(self: Task, *args: Any) -> None:
        acknowledge(self, *args)
        while _PROMISES:
            storage, path, data = _PROMISES.pop()
            self.context.run_blocking(lambda at=storage, to=path, what=data: write(at, to, what))

    acknowledge = Task._acknowledge
    _PROMISES.clear()
    patch.setattr(TaskState, "snapshot", promising)
    patch.setattr(Task, "_acknowledge", written)


_PROMISES: list[tuple[CheckpointStorage, str, bytes]] = []


def _promised(self: CheckpointStorage, path: str, chunks: Any) -> StateHandle:
    import zlib

    data = b"".join(chunks)
    _PROMISES.append((self, path, data))
    return StateHandle(self.resolve(path), None, len(data), zlib.crc32(data))


@mutant(within=40)
def a_snapshot_that_failed_is_acknowledged(patch: Patch) -> None:
    def decline(self: Task, checkpoint_id: Any, _reason: str) -> None:
        self._owner.tell(
            AcknowledgeCheckpoint(self.deployment.job_id, self.deployment.attempt_id, checkpoint_id, None, 0)
        )

    patch.setattr(Task, "_decline", decline)


# ---- completing checkpoints


@mutant(within=20)
def a_checkpoint_completes_with_one_task_missing(patch: Patch) -> None:
    few = property(lambda self: len(self._acknowledged) >= len(self.attempts) - 1 and not self.is_storing)
    patch.setattr(PendingCheckpoint, "is_fully_acknowledged", few)
    patch.setattr(PendingCheckpoint, "finalize", _finalize_anyway)


def _finalize_anyway(self: PendingCheckpoint, vertices: Any, completed_ms: int) -> Any:
    class Full(dict[Any, Any]):
        def __len__(self) -> int:
            return 0

    taken, self.attempts = self.attempts, Full(self.attempts)
    acknowledged, self._acknowledged = self._acknowledged, Full(self._acknowledged)
    try:
        return FINALIZE(self, vertices, completed_ms)
    finally:
        self.attempts, self._acknowledged = taken, acknowledged


FINALIZE = PendingCheckpoint.finalize


@mutant(within=10)
def completion_is_told_before_the_metadata_is_written(patch: Patch) -> None:
    acknowledge = CheckpointCoordinator._acknowledge

    def hasty(self: CheckpointCoordinator, ack: AcknowledgeCheckpoint) -> None:
        acknowledge(self, ack)
        for effect in list(self._effects):
            if isinstance(effect, StoreMetadata):
                self._effects.extend(self._tasks.notify_complete(effect.draft))

    patch.setattr(CheckpointCoordinator, "_acknowledge", hasty)


@mutant(within=10)
def the_metadata_is_not_written(patch: Patch) -> None:
    patch.setattr(CheckpointStorage, "write_sealed", nothing)


@mutant(within=60)
def checkpoint_ids_are_used_again_after_a_restart(patch: Patch) -> None:
    restarting = CheckpointCoordinator._region_restarting

    def restart(self: CheckpointCoordinator) -> None:
        restarting(self)
        latest = self.store.latest()
        self._ids._next = latest.checkpoint_id + 1 if latest else 1

    patch.setattr(CheckpointCoordinator, "_region_restarting", restart)


@mutant(within=60)
def an_aborted_checkpoint_counts_as_completed(patch: Patch) -> None:
    """The next restore is from the newest checkpoint, instead of from the newest one that is complete."""
    abort = CheckpointCoordinator._abort

    def keep(self: CheckpointCoordinator, pending: PendingCheckpoint, failure: Any, detail: str = "") -> None:
        if pending.acknowledged and not pending.is_storing and not self._is_shut_down:
            draft = _finalize_anyway(pending, self._vertices, self._wall_ms)
            pending.draft = None
            latest = self.store.latest()
            if latest is None or latest.checkpoint_id < draft.checkpoint_id:
                self.store.add(draft)
        abort(self, pending, failure, detail)

    patch.setattr(CheckpointCoordinator, "_abort", keep)


@mutant(within=60)
def a_checkpoint_that_was_given_up_blocks_the_next(patch: Patch) -> None:
    """Declined and expired ones stay pending for ever."""
    patch.setattr(CheckpointCoordinator, "_decline", nothing)
    patch.setattr(CheckpointCoordinator, "_expire", nothing)


@mutant(within=100)
def the_final_checkpoint_is_not_tried_again(patch: Patch) -> None:
    emit = CheckpointCoordinator._emit

    def once(self: CheckpointCoordinator, effect: Any) -> None:
        if not (isinstance(effect, ScheduleTimer) and isinstance(effect.event, RetryFinal)):
            emit(self, effect)

    patch.setattr(CheckpointCoordinator, "_emit", once)


@mutant(within=20)
def the_final_checkpoint_comes_when_one_task_has_ended(patch: Patch) -> None:
    patch.setattr(JobEnding, "data_ended", lambda self, attempt_id, of_all: True)


# ---- what is kept, and what is discarded


@mutant(within=30)
def subsumed_checkpoints_are_not_discarded(patch: Patch) -> None:
    add = StandaloneCompletedCheckpointStore.add

    def hoard(self: Any, completed: Any) -> list[Any]:
        add(self, completed)
        return []

    patch.setattr(StandaloneCompletedCheckpointStore, "add", hoard)


@mutant(within=60)
def aborted_checkpoints_are_not_discarded(patch: Patch) -> None:
    abort, discard = CheckpointCoordinator._abort, CheckpointCoordinator._discard

    def leak(self: CheckpointCoordinator, *args: Any) -> None:
        self._discard = nothing
        abort(self, *args)
        self._discard = discard.__get__(self)

    patch.setattr(CheckpointCoordinator, "_abort", leak)


@mutant(within=100)
def the_state_of_late_acknowledgements_is_not_discarded(patch: Patch) -> None:
    patch.setattr(CheckpointCoordinator, "_discard_state_of", nothing)


@mutant(within=20)
def the_newest_checkpoint_is_discarded(patch: Patch) -> None:
    """Instead of the oldest."""
    add = StandaloneCompletedCheckpointStore.add

    def confuse(self: Any, completed: Any) -> list[Any]:
        return [completed] if add(self, completed) else []

    patch.setattr(StandaloneCompletedCheckpointStore, "add", confuse)


# ---- restoring


@mutant(within=10)
def nothing_is_restored(patch: Patch) -> None:
    patch.setattr(RestorePoints, "choose", nothing)


@mutant(within=20)
def keyed_state_is_not_restored(patch: Patch) -> None:
    restore = TaskState.restore

    def forget(self: TaskState) -> None:
        for state in self._states.values():
            if state.keyed is not None:
                state.keyed.restore = nothing  # type: ignore[method-assign]
        restore(self)

    patch.setattr(TaskState, "restore", forget)


@mutant(within=20)
def the_state_of_one_subtask_is_not_restored(patch: Patch) -> None:
    states = RestorePoints.states

    def all_but_one(self: RestorePoints, *args: Any) -> dict[Any, Any]:
        return {subtask: state for subtask, state in states(self, *args).items() if subtask.subtask_index != 1}

    patch.setattr(RestorePoints, "states", all_but_one)


@mutant(within=20)
def subtasks_get_each_others_state(patch: Patch) -> None:
    assign = restore_points.assign_state
    patch.setattr(restore_points, "assign_state", lambda *args: list(reversed(assign(*args))))


@mutant(within=10)
def sources_begin_anew(patch: Patch) -> None:
    patch.setattr(TaskState, "restored_offset", nothing)


@mutant(within=10)
def sources_are_one_record_ahead(patch: Patch) -> None:
    """The offset in a snapshot is that of the record after the next."""
    offset_of = Task._offset_of
    patch.setattr(
        Task,
        "_offset_of",
        lambda self, source: {**offset_of(self, source), "next": offset_of(self, source)["next"] + 1},
    )


@mutant(within=100, scenarios=also(RottenFile))
def what_came_after_the_restored_checkpoint_is_not_taken_back(patch: Patch) -> None:
    patch.setattr(FileSink, "_take_back_what_came_after", nothing)


@mutant(within=100, scenarios=also(RottenFile))
def unreadable_checkpoints_are_restored_again_and_again(patch: Patch) -> None:
    patch.setattr(RestorePoints, "failed_to_restore", nothing)


# ---- sinks


@mutant(within=10)
def sinks_commit_at_the_barrier(patch: Patch) -> None:
    on_checkpoint = TwoPhaseCommitSink.on_checkpoint

    def hasty(self: Any, checkpoint_id: Any) -> None:
        on_checkpoint(self, checkpoint_id)
        self.commit(self._pending[-1].handle)

    patch.setattr(TwoPhaseCommitSink, "on_checkpoint", hasty)


@mutant(within=60)
def sinks_commit_more_than_was_completed(patch: Patch) -> None:
    """Also what was pre-committed for later checkpoints."""
    complete = TwoPhaseCommitSink.on_checkpoint_complete
    patch.setattr(
        TwoPhaseCommitSink, "on_checkpoint_complete", lambda self, checkpoint_id: complete(self, checkpoint_id + 100)
    )


@mutant(within=100)
def sinks_do_not_commit_what_they_restored(patch: Patch) -> None:
    patch.setattr(TwoPhaseCommitSink, "_recover_and_commit", nothing)


@mutant(within=100)
def sinks_abort_what_they_restored(patch: Patch) -> None:
    patch.setattr(TwoPhaseCommitSink, "_recover_and_commit", lambda self, one: self.recover_and_abort(one.handle))


@mutant(within=100)
def sinks_forget_what_they_have_prepared(patch: Patch) -> None:
    """The transaction that a checkpoint covers is not in it."""
    patch.setattr(
        TwoPhaseCommitSink, "_uncommitted", lambda self: [] if self._current is None else [self._current]
    )


@mutant(within=60)
def sinks_commit_all_when_they_are_closed(patch: Patch) -> None:
    close = TwoPhaseCommitSink.close

    def finish(self: Any) -> None:
        for transaction in getattr(self, "_pending", ()):
            self.commit(transaction.handle)
        close(self)

    patch.setattr(TwoPhaseCommitSink, "close", finish)


@mutant(within=40)
def leftovers_of_earlier_attempts_stay(patch: Patch) -> None:
    patch.setattr(FileSink, "_remove_leftovers", nothing)


@mutant(within=100)
def leftovers_are_removed_though_they_are_needed(patch: Patch) -> None:
    remove = FileSink._remove_leftovers

    def rash(self: FileSink, _needed: set[str]) -> None:
        for name in self._opened_directory().in_progress():
            if str(name).split("-")[0] != str(self.context.subtask_index):
                self._opened_directory().remove(name)
        remove(self, set())

    patch.setattr(FileSink, "_remove_leftovers", rash)


# ---- storage


@mutant(within=60, scenarios=also(PowerFailure))
def files_are_not_synced(patch: Patch) -> None:
    patch.setattr(DurableFiles, "_flush", lambda self, file: file.flush())


@mutant(within=60, scenarios=also(PowerFailure))
def renames_are_not_synced(patch: Patch) -> None:
    patch.setattr(DurableFiles, "sync_folder", nothing)


@mutant(within=60, scenarios=also(PowerFailure))
def new_folders_are_not_synced(patch: Patch) -> None:
    patch.setattr(DurableFiles, "sync_up", nothing)


# ---- the JobManager


@mutant(within=40)
def tasks_of_a_lost_task_manager_are_not_failed(patch: Patch) -> None:
    lose = JobMaster._lose

    def overlook(self: JobMaster, event: Any) -> None:
        self._attempt_ended = nothing  # type: ignore[method-assign]
        lose(self, event)
        del self._attempt_ended

    patch.setattr(JobMaster, "_lose", overlook)


@mutant(within=40)
def the_slots_of_ended_tasks_stay_taken(patch: Patch) -> None:
    patch.setattr(SlotPool, "release", nothing)


@mutant(within=40)
def a_task_manager_that_ended_is_not_replaced(patch: Patch) -> None:
    ended = TaskManagerRoster.ended

    def forget(self: TaskManagerRoster, index: int, reason: str) -> Any:
        ended(self, index, reason)
        return ScheduleTimer(1e9, None)  # type: ignore[arg-type]

    patch.setattr(TaskManagerRoster, "ended", forget)


@mutant(within=100)
def acknowledgements_of_other_attempts_count(patch: Patch) -> None:
    """Also those of a zombie, and those that come for checkpoints of before the restart."""

    def acknowledge(self: PendingCheckpoint, ack: AcknowledgeCheckpoint) -> Any:
        if ack.attempt_id not in self.attempts:
            missing = [attempt for attempt in self.attempts if attempt not in self._acknowledged]
            ack = replace(ack, attempt_id=missing[0]) if missing else ack
        return take(self, ack)

    take = PendingCheckpoint.acknowledge
    patch.setattr(PendingCheckpoint, "acknowledge", acknowledge)
    restarting = CheckpointCoordinator._region_restarting

    def restart(self: CheckpointCoordinator) -> None:
        restarting(self)
        latest = self.store.latest()
        self._ids._next = latest.checkpoint_id + 1 if latest else 1

    patch.setattr(CheckpointCoordinator, "_region_restarting", restart)


# ---- TaskManagers


@mutant(within=40, scenarios=also(lambda at_ms: KillProcess(at_ms, JOB_MANAGER)))
def a_task_manager_goes_on_without_a_job_manager(patch: Patch) -> None:
    end = TaskManager._end

    def stay(self: TaskManager, reason: str) -> None:
        if "JobManager" not in reason:
            end(self, reason)

    patch.setattr(TaskManager, "_end", stay)


@mutant(within=10)
def task_managers_send_no_heartbeats(patch: Patch) -> None:
    patch.setattr(TaskManager, "_beat", nothing)


@mutant(within=10)
def the_partition_ends_before_the_final_checkpoint(patch: Patch) -> None:
    broadcast = TaskOutputs.broadcast

    def hasty(self: TaskOutputs, control: Any) -> None:
        broadcast(self, EndOfPartition() if isinstance(control, EndOfData) else control)

    patch.setattr(TaskOutputs, "broadcast", hasty)


# ---- channels


@mutant(within=40)
def credit_is_not_returned(patch: Patch) -> None:
    patch.setattr(RemoteInputChannel, "_return_credit", nothing)


@mutant(within=60)
def the_last_credit_is_dropped(patch: Patch) -> None:
    """Each time that credit is returned one unit is missing."""
    tell = RemoteInputChannel._tell

    def stingy(self: RemoteInputChannel, kind: FrameKind, credit: int = 0) -> None:
        if kind is not FrameKind.CREDIT:
            tell(self, kind, credit)
        elif credit > 1:
            tell(self, kind, credit - 1)

    patch.setattr(RemoteInputChannel, "_tell", stingy)


@mutant(within=40)
def a_lost_frame_is_not_noticed(patch: Patch) -> None:
    """Every tenth batch is lost on the way, and nobody looks at the numbers."""
    _unnumbered(patch)
    transmit = RemoteOutputChannel._transmit_to

    def lossy(self: RemoteOutputChannel, consumer: bytes, content: Any) -> None:
        if content.kind.is_batch and self._next_sent % 10 == 9:
            self._next_sent += 1
        else:
            transmit(self, consumer, content)

    patch.setattr(RemoteOutputChannel, "_transmit_to", lossy)


@mutant(within=40)
def a_repeated_frame_is_not_noticed(patch: Patch) -> None:
    _unnumbered(patch)
    transmit = RemoteOutputChannel._transmit_to

    def repeating(self: RemoteOutputChannel, consumer: bytes, content: Any) -> None:
        transmit(self, consumer, content)
        if content.kind.is_batch and self._next_sent % 10 == 9:
            transmit(self, consumer, content)

    patch.setattr(RemoteOutputChannel, "_transmit_to", repeating)


def _unnumbered(patch: Patch) -> None:
    problem_with = RemoteInputChannel._problem_with

    def credulous(self: RemoteInputChannel, header: Any) -> str | None:
        return problem_with(self, header._replace(sequence=self._next_received))

    patch.setattr(RemoteInputChannel, "_problem_with", credulous)


@mutant(within=60)
def the_loss_of_a_channel_is_not_told(patch: Patch) -> None:
    patch.setattr(RemoteInputChannel, "producer_lost", nothing)
    patch.setattr(RemoteOutputChannel, "consumer_lost", nothing)


@mutant(within=60)
def barriers_overtake_what_waits_for_credit(patch: Patch) -> None:
    forward = RemoteOutputChannel._forward

    def impatient(self: RemoteOutputChannel) -> None:
        forward(self)
        if self._consumer is not None:
            for content in [each for each in self._waiting if not each.kind.is_batch]:
                self._waiting.remove(content)
                self._transmit_to(self._consumer, content)

    patch.setattr(RemoteOutputChannel, "_forward", impatient)


# ---- key groups


@mutant(within=20)
def records_are_dealt_out_by_another_rule_than_state(patch: Patch) -> None:
    split = HashByKey.split

    def elsewhere(self: HashByKey, batch: Any) -> Any:
        return [((channel + 1) % self._channels, part) for channel, part in split(self, batch)]

    patch.setattr(HashByKey, "split", elsewhere)
