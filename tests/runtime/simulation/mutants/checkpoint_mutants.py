"""Mutants of barriers, snapshots, and of what becomes of checkpoints."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest

from understudy.actors.barriers.barrier_buffer import BarrierBuffer
from understudy.actors.barriers.barrier_handler import Aligned
from understudy.actors.barriers.barrier_tracker import BarrierTracker
from understudy.actors.checkpoints.checkpoint_coordinator import CheckpointCoordinator
from understudy.actors.checkpoints.checkpoint_effects import CheckpointEffect, Discard, Schedule, StoreMetadata
from understudy.actors.checkpoints.checkpoint_requests import CheckpointRequests
from understudy.actors.checkpoints.pending_checkpoint import PendingCheckpoint
from understudy.actors.flow.elements import CheckpointBarrier
from understudy.actors.flow.outputs import TaskOutputs
from understudy.actors.jobs.job_ending import JobEnding
from understudy.actors.tasks import task_setup
from understudy.actors.tasks.task import Task
from understudy.actors.tasks.task_checkpoints import Progress, TaskCheckpoints
from understudy.actors.tasks.task_state import TaskState
from understudy.messages import AcknowledgeCheckpoint, StateHandle, SubtaskState
from understudy.runtime.simulation.world.faults import FailingStorage, SlowStorage
from understudy.state import CheckpointStorage
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.completed_checkpoints import StandaloneCompletedCheckpointStore

from .mutant import (
    CUT,
    EARLY,
    IDS,
    KEPT,
    LEAKED,
    LIVENESS,
    LOST,
    OUTPUT,
    Patch,
    also,
    mutant,
    no_effects,
    nothing,
    storage_in_trouble,
)

FINAL_IN_TROUBLE = also(lambda at_ms: SlowStorage(at_ms, 3_000, 25_000.0), since=0.9, until=1.0)
"""The final checkpoint takes longer than it may."""

# ---- barriers and snapshots


@mutant(CUT, within=60)
def alignment_is_skipped(patch: Patch) -> None:
    """Barriers are counted, and no channel waits for the others."""
    patch.setattr(task_setup, "BarrierBuffer", lambda channels, _feedback: BarrierTracker(channels))


@mutant(CUT, within=40)
def the_first_barrier_is_enough(patch: Patch) -> None:
    def on_barrier(self: BarrierBuffer, _channel: int, barrier: CheckpointBarrier, events: list[Any]) -> None:
        if barrier.checkpoint_id > self._current:
            self._advance(barrier.checkpoint_id)
            events.append(Aligned(barrier))

    patch.setattr(BarrierBuffer, "_on_barrier", on_barrier)


@mutant(CUT, within=60)
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


@mutant(CUT, within=20)
def the_barrier_goes_on_before_the_snapshot(patch: Patch) -> None:
    """It is sent on at once, and the snapshot is taken a while later."""
    checkpoint, handle, broadcast = TaskCheckpoints.take, Task._handle, TaskOutputs.broadcast

    def forward(self: TaskCheckpoints, barrier: CheckpointBarrier, _progress: Progress, **_more: Any) -> None:
        self._parts.outputs.broadcast(barrier)
        later = self._context.run_blocking(lambda: None)
        self._context.pipe_to_self(later, lambda _: barrier, lambda _: barrier)

    def take(self: Task, message: Any) -> None:
        if not isinstance(message, CheckpointBarrier):
            handle(self, message)
            return
        outputs, loop = self._running_parts().outputs, self._own_loop()
        outputs.broadcast = nothing
        checkpoint(loop.checkpoints, message, loop.progress())
        outputs.broadcast = broadcast.__get__(outputs)

    patch.setattr(TaskCheckpoints, "take", forward)
    patch.setattr(Task, "_handle", take)


@mutant(OUTPUT, within=40)
def the_snapshot_shows_what_came_after_the_barrier(patch: Patch) -> None:
    """Keyed state is looked at when it is written."""

    def late(take: Callable[[HeapBackend, Any], Any]) -> Callable[[HeapBackend, Any], Any]:
        return lambda self, checkpoint_id: lambda target: take(self, checkpoint_id)(target)

    for each in ("snapshot", "increment"):
        patch.setattr(HeapBackend, each, late(getattr(HeapBackend, each)))


@mutant(LOST, within=20)
def the_snapshot_is_acknowledged_before_it_is_written(patch: Patch) -> None:
    """Its file is written a while later, unless something comes in between."""
    snapshot = TaskState.snapshot
    write = CheckpointStorage.write

    def promising(self: TaskState, *args: Any, **kwargs: Any) -> Callable[[], tuple[SubtaskState, int]]:
        finish = snapshot(self, *args, **kwargs)

        def promise(*channels: Any) -> tuple[SubtaskState, int]:
            with pytest.MonkeyPatch.context() as only_here:
                only_here.setattr(CheckpointStorage, "write", _promised)
                return finish(*channels)

        return promise

    def written(self: TaskCheckpoints, *args: Any) -> None:
        acknowledge(self, *args)
        while _PROMISES:
            storage, path, data = _PROMISES.pop()
            self._context.run_blocking(lambda at=storage, to=path, what=data: write(at, to, what))

    acknowledge = TaskCheckpoints.acknowledge
    _PROMISES.clear()
    patch.setattr(TaskState, "snapshot", promising)
    patch.setattr(TaskCheckpoints, "acknowledge", written)


_PROMISES: list[tuple[CheckpointStorage, str, bytes]] = []


def _promised(self: CheckpointStorage, path: str, chunks: Any, **_: Any) -> StateHandle:
    data = chunks if isinstance(chunks, bytes) else b"".join(chunks)
    _PROMISES.append((self, path, data))
    return StateHandle(self.resolve(path), None, len(data), zlib.crc32(data))


@mutant(OUTPUT, within=250, scenarios=also(lambda at_ms: FailingStorage(at_ms, 4_000, 0.2)))
def a_snapshot_that_failed_is_acknowledged(patch: Patch) -> None:
    def decline(self: TaskCheckpoints, checkpoint_id: Any, *_: Any, **_more: Any) -> None:
        self._owner.tell(
            AcknowledgeCheckpoint(self._deployment.job_id, self._deployment.attempt_id, checkpoint_id, None, 0)
        )

    patch.setattr(TaskCheckpoints, "decline", decline)


# ---- completing checkpoints


@mutant(OUTPUT, CUT, within=20)
def a_checkpoint_completes_with_one_task_missing(patch: Patch) -> None:
    few = property(lambda self: len(self._acknowledged) >= len(self.attempts) - 1 and not self.is_storing)
    patch.setattr(PendingCheckpoint, "is_fully_acknowledged", few)
    patch.setattr(PendingCheckpoint, "finalize", _finalize_anyway)


def _finalize_anyway(self: PendingCheckpoint, vertices: Any, completed_ms: int, **options: Any) -> Any:
    class Full(dict[Any, Any]):
        def __len__(self) -> int:
            return 0

    taken, self.attempts = self.attempts, Full(self.attempts)
    acknowledged, self._acknowledged = self._acknowledged, Full(self._acknowledged)
    try:
        return FINALIZE(self, vertices, completed_ms, **options)
    finally:
        self.attempts, self._acknowledged = taken, acknowledged


FINALIZE = PendingCheckpoint.finalize


@mutant(EARLY, LIVENESS, within=20)
def completion_is_told_before_the_metadata_is_written(patch: Patch) -> None:
    acknowledge = CheckpointCoordinator._acknowledge

    def hasty(self: CheckpointCoordinator, ack: AcknowledgeCheckpoint) -> list[CheckpointEffect]:
        effects = acknowledge(self, ack)
        drafts = [effect.draft for effect in effects if isinstance(effect, StoreMetadata)]
        return [*effects, *(told for draft in drafts for told in self._tasks.notify_complete(draft, None))]

    patch.setattr(CheckpointCoordinator, "_acknowledge", hasty)


@mutant(LOST, EARLY, within=20)
def the_metadata_is_not_written(patch: Patch) -> None:
    patch.setattr(CheckpointStorage, "write_sealed", nothing)


@mutant(IDS, CUT, within=40)
def checkpoint_ids_are_used_again_after_a_restart(patch: Patch) -> None:
    restarting = CheckpointCoordinator._region_restarting

    def restart(self: CheckpointCoordinator) -> list[CheckpointEffect]:
        effects = restarting(self)
        latest = self.store.latest()
        self._ids._next = latest.checkpoint_id + 1 if latest else 1  # type: ignore[attr-defined]
        return effects

    patch.setattr(CheckpointCoordinator, "_region_restarting", restart)


@mutant(OUTPUT, KEPT, LOST, LIVENESS, within=60)
def an_aborted_checkpoint_counts_as_completed(patch: Patch) -> None:
    """The next restore is from the newest checkpoint, instead of from the newest one that is complete."""
    abort = CheckpointCoordinator._abort

    def keep(
        self: CheckpointCoordinator, pending: PendingCheckpoint, failure: Any, *more: Any
    ) -> list[CheckpointEffect]:
        if pending.acknowledged and not pending.is_storing and not self._requests.are_closed:
            draft = _finalize_anyway(pending, self._vertices, self._wall_ms)
            pending.draft = None
            latest = self.store.latest()
            if latest is None or latest.checkpoint_id < draft.checkpoint_id:
                self.store.add(draft)
                pending._acknowledged.clear()
        return abort(self, pending, failure, *more)

    patch.setattr(CheckpointCoordinator, "_abort", keep)


@mutant(LIVENESS, within=60, scenarios=also(lambda at_ms: FailingStorage(at_ms, 6_000, 0.1), since=0.85, until=0.98))
def a_checkpoint_that_was_given_up_blocks_the_next(patch: Patch) -> None:
    """Declined and expired ones stay pending for ever."""
    patch.setattr(CheckpointCoordinator, "_decline", no_effects)
    patch.setattr(CheckpointCoordinator, "_expire", no_effects)


@mutant(LIVENESS, within=40, scenarios=FINAL_IN_TROUBLE)
def the_final_checkpoint_is_not_tried_again(patch: Patch) -> None:
    no_checkpoint_for = CheckpointRequests._no_checkpoint_for

    def once(self: CheckpointRequests, *args: Any) -> list[Any]:
        return [each for each in no_checkpoint_for(self, *args) if not isinstance(each, Schedule)]

    patch.setattr(CheckpointRequests, "_no_checkpoint_for", once)


@mutant(OUTPUT, within=20)
def the_final_checkpoint_comes_when_one_task_has_ended(patch: Patch) -> None:
    patch.setattr(JobEnding, "data_ended", lambda self, attempt_id: True)


# ---- what is kept, and what is discarded


@mutant(KEPT, LEAKED, within=30)
def subsumed_checkpoints_are_not_discarded(patch: Patch) -> None:
    add = StandaloneCompletedCheckpointStore.add

    def hoard(self: Any, completed: Any) -> list[Any]:
        add(self, completed)
        return []

    patch.setattr(StandaloneCompletedCheckpointStore, "add", hoard)


@mutant(KEPT, within=40, scenarios=storage_in_trouble)
def aborted_checkpoints_are_not_discarded(patch: Patch) -> None:
    abort = CheckpointCoordinator._abort

    def leak(self: CheckpointCoordinator, *args: Any) -> list[CheckpointEffect]:
        return [effect for effect in abort(self, *args) if not isinstance(effect, Discard)]

    patch.setattr(CheckpointCoordinator, "_abort", leak)


@mutant(KEPT, within=40, scenarios=storage_in_trouble)
def the_state_of_late_acknowledgements_is_not_discarded(patch: Patch) -> None:
    patch.setattr(CheckpointCoordinator, "_discard_state_of", no_effects)


@mutant(LOST, LEAKED, within=20)
def the_newest_checkpoint_is_discarded(patch: Patch) -> None:
    """Instead of the oldest."""
    add = StandaloneCompletedCheckpointStore.add

    def confuse(self: Any, completed: Any) -> list[Any]:
        return [completed] if add(self, completed) else []

    patch.setattr(StandaloneCompletedCheckpointStore, "add", confuse)
