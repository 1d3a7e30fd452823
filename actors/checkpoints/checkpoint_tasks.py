"""CheckpointTasks: which attempts run a plan's subtasks now, and the messages about checkpoints to them.

Belongs to the CheckpointCoordinator, which gets every change from the JobMaster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...messages import (
    CheckpointId,
    ExecutionAttemptId,
    ExpectBarrier,
    JobId,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    SwitchToUnaligned,
    TriggerCheckpoint,
)
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ..job_graph import SubtaskKey
from .checkpoint_effects import Send
from .checkpoint_plan import CheckpointPlan
from .pending_checkpoint import CheckpointKind, PendingCheckpoint


class CheckpointTasks:
    """The current attempts of one job."""

    def __init__(self, plan: CheckpointPlan) -> None:
        self._plan = plan
        self._sources, self._expecting = frozenset(plan.trigger), frozenset(plan.expect)
        self._attempts: dict[SubtaskKey, ExecutionAttemptId] = {}
        self._running: set[ExecutionAttemptId] = set()
        self.places: dict[ExecutionAttemptId, str] = {}
        """Where they run, in words, as far as it is known."""

    @property
    def are_ready(self) -> bool:
        """Whether a checkpoint can start: the tasks that it starts at are RUNNING, and an attempt stands for each that
        acknowledges. Barriers wait for one that is still being deployed.
        """
        return all(self._attempts.get(subtask) in self._running for subtask in self._plan.trigger) and all(
            subtask in self._attempts for subtask in self._plan.acknowledge
        )

    def not_ready(self) -> str:
        """A readable text: which tasks keep checkpoints from starting; empty when `are_ready`."""
        idle = [subtask for subtask in self._plan.trigger if self._attempts.get(subtask) not in self._running]
        gone = [subtask for subtask in self._plan.acknowledge if subtask not in self._attempts]
        parts = (_listed(idle, "not running"), _listed(gone, "not deployed"))
        told = [part for part in parts if part]
        return "; ".join([*told, "ask again when all tasks run (job.ready())"]) if told else ""

    def all_run(self, subtasks: Iterable[SubtaskKey]) -> bool:
        """Whether each has an attempt that is RUNNING."""
        return all(self._attempts.get(subtask) in self._running for subtask in subtasks)

    def to_acknowledge(self) -> dict[ExecutionAttemptId, SubtaskKey]:
        return {self._attempts[subtask]: subtask for subtask in self._plan.acknowledge}

    def change(
        self, subtask: SubtaskKey, attempt_id: ExecutionAttemptId | None, is_running: bool, place: str = ""
    ) -> None:
        """This attempt stands for the subtask from now on; None: none does."""
        replaced = self._attempts.pop(subtask, None)
        if replaced is not None:
            self._running.discard(replaced)
            self.places.pop(replaced, None)
        if attempt_id is not None:
            if place:
                self.places[attempt_id] = place
            self._attempts[subtask] = attempt_id
            if is_running:
                self._running.add(attempt_id)

    def fail(self, attempt_id: ExecutionAttemptId) -> None:
        self._running.discard(attempt_id)

    def trigger(self, pending: PendingCheckpoint) -> Iterator[Send]:
        stop, whole = _is_stop(pending), _is_whole(pending)
        for subtask in self._plan.trigger:
            attempt_id = self._attempts[subtask]
            message = TriggerCheckpoint(
                pending.job_id, attempt_id, pending.checkpoint_id, pending.timestamp_ms, stop, whole
            )
            yield Send(attempt_id, message)
        if not _may_be_held_back(pending):
            yield from self._expect(pending)

    def acknowledged(self, pending: PendingCheckpoint, by: ExecutionAttemptId) -> Iterator[Send]:
        """A checkpoint that sources may hold back is expected once all of them have passed it."""
        if not _may_be_held_back(pending) or pending.attempts[by] not in self._sources:
            return
        if not any(
            pending.is_waiting_for(each) for each, subtask in pending.attempts.items() if subtask in self._sources
        ):
            yield from self._expect(pending)

    def _expect(self, pending: PendingCheckpoint) -> Iterator[Send]:
        """To those that keep records in flight."""
        for attempt_id, subtask in pending.attempts.items():
            if subtask in self._expecting and pending.is_waiting_for(attempt_id):
                yield Send(attempt_id, ExpectBarrier(pending.job_id, attempt_id, pending.checkpoint_id))

    def switch_to_unaligned(self, pending: PendingCheckpoint) -> Iterator[Send]:
        """To the attempts that run and have not acknowledged."""
        for attempt_id in pending.attempts:
            if attempt_id in self._running and pending.is_waiting_for(attempt_id):
                message = SwitchToUnaligned(pending.job_id, attempt_id, pending.checkpoint_id, pending.timestamp_ms)
                yield Send(attempt_id, message)

    def notify_complete(self, done: CompletedCheckpoint, oldest_needed: CheckpointId | None) -> Iterator[Send]:
        """To the attempts of now, running or about to be."""
        for subtask in self._plan.notify:
            attempt_id = self._attempts.get(subtask)
            if attempt_id is not None:
                message = NotifyCheckpointComplete(
                    done.job_id, attempt_id, done.checkpoint_id, done.timestamp_ms, done.is_final, oldest_needed
                )
                yield Send(attempt_id, message)

    def notify_aborted(self, pending: PendingCheckpoint, reason: str) -> Iterator[Send]:
        """To the attempts that took part, as far as they still run."""
        for attempt_id in pending.attempts:
            if attempt_id in self._running:
                message = NotifyCheckpointAborted(pending.job_id, attempt_id, pending.checkpoint_id, reason)
                yield Send(attempt_id, message)

    def notify_lost(self, job_id: JobId, checkpoint_id: CheckpointId) -> Iterator[Send]:
        """To all that run: its coordinator is gone, and with it the checkpoint, if it was under way."""
        for attempt_id in self._attempts.values():
            if attempt_id in self._running:
                reason = "the JobManager that took it is gone"
                yield Send(attempt_id, NotifyCheckpointAborted(job_id, attempt_id, checkpoint_id, reason))


def _listed(subtasks: list[SubtaskKey], what: str) -> str:
    """The first three by name, and how many more."""
    named = ", ".join(f"{vertex_id}/{index}" for vertex_id, index in subtasks[:3])
    more = f" and {len(subtasks) - 3} more" if len(subtasks) > 3 else ""
    return f"{named}{more} {what}" if subtasks else ""


def _is_stop(pending: PendingCheckpoint) -> bool:
    return pending.kind is CheckpointKind.STOP


def _is_whole(pending: PendingCheckpoint) -> bool:
    is_kept = pending.kind in (CheckpointKind.SAVEPOINT, CheckpointKind.FINAL)
    return is_kept or any(request.is_full for request in pending.requests)


def _may_be_held_back(pending: PendingCheckpoint) -> bool:
    """Whether sources may wait long before they pass its barrier, and give records meanwhile: a savepoint or stop."""
    return _is_stop(pending) or _is_whole(pending)
