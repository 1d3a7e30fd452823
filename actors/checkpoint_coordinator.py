"""CheckpointCoordinator: decides when a checkpoint starts, completes or is given up. Flink: CheckpointCoordinator.

    trigger -> pending -> all acknowledged -> metadata stored -> completed -> tasks notified
                  \\------------- declined, expired, subsumed, ... ------------> aborted

A value machine: events in, effects out (`checkpoint_effects.py`). It touches no clock, socket, loop or disk. One
belongs to one job, for as long as the job lives, through all its restarts: ids are never used twice.

Every state that reaches it is owned by exactly one: a pending checkpoint, a draft that is being written, a retained
checkpoint, a savepoint, or a `Discard`.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import assert_never

from ..messages import (
    AcknowledgeCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    JobId,
    JobStatus,
    SubtaskState,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from ..state.checkpoint_ids import CheckpointIdCounter
from ..state.completed_checkpoints import CompletedCheckpoint, CompletedCheckpointStore
from .checkpoint_effects import (
    AckIgnored,
    AllDataEnded,
    AnswerSavepoint,
    AttemptChanged,
    AttemptFailed,
    CancelTimer,
    CheckpointEffect,
    CheckpointEvent,
    CheckpointExpired,
    CheckpointFailure,
    Discard,
    MetadataFailed,
    MetadataStored,
    PeriodicTick,
    Publish,
    Refusal,
    Refused,
    RegionRestarting,
    RetryFinal,
    ScheduleTimer,
    Shutdown,
    StartScheduler,
    StopScheduler,
    StoreMetadata,
    TriggerCheckpointNow,
    TriggerSavepointNow,
)
from .checkpoint_failures import CheckpointFailures
from .checkpoint_pace import CheckpointPace
from .checkpoint_plan import CheckpointPlan
from .checkpoint_tasks import CheckpointTasks
from .finished_checkpoints import FinishedCheckpoints
from .pending_checkpoint import AckResult, CheckpointKind, PendingCheckpoint

FINAL_RETRY_MS = 1000
"""How long after a final checkpoint could not start or did not complete the next one is tried."""

_HEARD_WHEN_DOWN = (AcknowledgeCheckpoint, MetadataStored, MetadataFailed, TriggerCheckpointNow, TriggerSavepointNow)
"""After Shutdown: what still has state to discard or somebody to answer."""


class _Final(Enum):
    NOT_DUE = auto()
    DUE = auto()
    TAKEN = auto()


class CheckpointCoordinator:
    """One job's checkpoints."""

    def __init__(
        self,
        job_id: JobId,
        config: CheckpointConfig,
        plan: CheckpointPlan,
        ids: CheckpointIdCounter,
        store: CompletedCheckpointStore,
    ) -> None:
        self.store = store
        self._job_id = job_id
        self._config = config
        self._vertices = plan.vertices
        self._ids = ids
        self._tasks = CheckpointTasks(plan)
        self._pending: dict[CheckpointId, PendingCheckpoint] = {}
        self._abandoned: dict[CheckpointId, PendingCheckpoint] = {}  # given up while their metadata was being written
        self._finished = FinishedCheckpoints(store)
        self._is_shut_down = False
        self._pace = CheckpointPace(config, self._emit)
        self._final = _Final.NOT_DUE
        self._failures = CheckpointFailures(config.tolerable_failures)
        self._now_ms, self._wall_ms = 0.0, 0
        self._effects: list[CheckpointEffect] = []

    @property
    def pending(self) -> tuple[PendingCheckpoint, ...]:
        """Oldest first; for status pages and tests, to read only."""
        return tuple(self._pending.values())

    def on(self, event: CheckpointEvent, now_ms: float, wall_ms: int) -> list[CheckpointEffect]:
        """Take one event; returns what to do, in this order. `now_ms` never goes back, `wall_ms` is Unix time."""
        self._now_ms, self._wall_ms, self._effects = now_ms, wall_ms, []
        if not self._is_shut_down or isinstance(event, _HEARD_WHEN_DOWN):
            self._handle(event)
        return self._effects

    def _handle(self, event: CheckpointEvent) -> None:
        match event:
            case StartScheduler():
                self._start_scheduler()
            case StopScheduler():
                self._stop_scheduler()
            case PeriodicTick():
                self._on_tick(event)
            case TriggerCheckpointNow():
                self._trigger(CheckpointKind.CHECKPOINT)
            case TriggerSavepointNow(token):
                self._trigger(CheckpointKind.SAVEPOINT, token)
            case AllDataEnded():
                self._all_data_ended()
            case RetryFinal():
                self._trigger_final_if_due()
            case AcknowledgeCheckpoint():
                self._acknowledge(event)
            case DeclineCheckpoint():
                self._decline(event)
            case CheckpointExpired(checkpoint_id):
                self._expire(checkpoint_id)
            case MetadataStored(checkpoint_id, path):
                self._metadata_stored(checkpoint_id, path)
            case MetadataFailed():
                self._metadata_failed(event)
            case AttemptChanged(subtask, attempt_id, is_running):
                self._tasks.change(subtask, attempt_id, is_running)
            case AttemptFailed(attempt_id):
                self._attempt_failed(attempt_id)
            case RegionRestarting():
                self._region_restarting()
            case Shutdown(status):
                self._shut_down(status)
            case _:
                assert_never(event)

    # ---------------------------------------------------------------------------------------------- triggering

    def _start_scheduler(self) -> None:
        self._stop_scheduler()
        self._pace.start()

    def _stop_scheduler(self) -> None:
        self._pace.stop()
        self._abort_all(CheckpointFailure.SCHEDULER_STOPPED)

    def _on_tick(self, tick: PeriodicTick) -> None:
        if not self._pace.is_on:
            self._emit(Refused(CheckpointKind.CHECKPOINT, Refusal.PERIODIC_SCHEDULER_OFF))
        elif self._pace.take_tick(tick):
            self._trigger_periodic()

    def _trigger_periodic(self) -> None:
        if self._final is _Final.NOT_DUE:
            self._pace.schedule_next()
            self._trigger(CheckpointKind.CHECKPOINT)

    def _resume_queued(self) -> None:
        """A checkpoint is gone: the request that found no room goes now, not at the next interval."""
        if self._pace.take_queued():
            self._trigger_periodic()

    def _all_data_ended(self) -> None:
        if self._final is _Final.NOT_DUE:
            self._final = _Final.DUE
            self._pace.suspend()
            self._trigger_final_if_due()

    def _trigger_final_if_due(self) -> None:
        is_under_way = any(pending.kind is CheckpointKind.FINAL for pending in self._pending.values())
        if self._final is _Final.DUE and not is_under_way:
            self._trigger(CheckpointKind.FINAL)

    def _trigger(self, kind: CheckpointKind, token: str = "") -> None:
        refusal = self._refusal(kind)
        if refusal is None:
            self._start(kind, token)
            return
        self._emit(Refused(kind, refusal))
        self._disappoint(kind, token, f"no {kind.value} could be triggered: {refusal.value}")

    def _refusal(self, kind: CheckpointKind) -> Refusal | None:
        if self._is_shut_down:
            return Refusal.COORDINATOR_SHUT_DOWN
        if not kind.is_forced:
            refusal = self._pace.refusal(len(self._pending), self._now_ms)
            if refusal is not None:
                return refusal
        return None if self._tasks.are_ready else Refusal.TASKS_NOT_READY

    def _start(self, kind: CheckpointKind, token: str) -> None:
        pending = PendingCheckpoint(
            self._job_id,
            self._ids.get_and_increment(),
            kind,
            self._tasks.to_acknowledge(),
            timestamp_ms=self._wall_ms,
            started_ms=self._now_ms,
            token=token,
        )
        self._pending[pending.checkpoint_id] = pending
        self._emit(ScheduleTimer(self._config.timeout_ms, CheckpointExpired(pending.checkpoint_id)))
        self._effects.extend(self._tasks.trigger(pending))

    def _disappoint(self, kind: CheckpointKind, token: str, cause: str) -> None:
        """No checkpoint for whoever needs it: a savepoint's promise breaks, the final one is tried again."""
        if kind is CheckpointKind.SAVEPOINT:
            self._emit(AnswerSavepoint(token, TriggerSavepointFailure(self._job_id, cause)))
        if kind is CheckpointKind.FINAL and self._final is _Final.DUE:
            self._emit(ScheduleTimer(FINAL_RETRY_MS, RetryFinal()))

    # ------------------------------------------------------------------------------------------ acknowledgements

    def _acknowledge(self, ack: AcknowledgeCheckpoint) -> None:
        result = self._take(ack)
        if result is not AckResult.SUCCESS:
            self._emit(AckIgnored(ack.attempt_id, ack.checkpoint_id, result))
            return
        pending = self._pending[ack.checkpoint_id]
        if pending.is_fully_acknowledged:
            self._emit(StoreMetadata(pending.finalize(self._vertices, self._wall_ms)))

    def _take(self, ack: AcknowledgeCheckpoint) -> AckResult:
        if ack.job_id != self._job_id:
            return AckResult.WRONG_JOB  # its state is that job's to keep or discard
        pending = self._pending.get(ack.checkpoint_id)
        if pending is None:
            return self._come_late(ack)
        result = pending.acknowledge(ack)
        if result is AckResult.UNKNOWN_TASK:
            self._discard_state_of(ack)
        return result

    def _come_late(self, ack: AcknowledgeCheckpoint) -> AckResult:
        """Its state is nobody's, unless it repeats what was settled: that may stand in a savepoint."""
        is_known = ack.checkpoint_id in self._finished
        if (is_known or not self._is_shut_down) and self._finished.settle(ack):
            self._discard_state_of(ack)
        if self._is_shut_down:
            return AckResult.SHUT_DOWN
        return AckResult.LATE if is_known else AckResult.UNKNOWN_CHECKPOINT

    def _decline(self, message: DeclineCheckpoint) -> None:
        if message.job_id != self._job_id:
            return
        pending = self._pending.get(message.checkpoint_id)
        if pending is not None:
            self._abort(pending, CheckpointFailure.DECLINED, message.reason)
        self._effects.extend(self._failures.count_decline(message))
        if pending is not None:
            self._resume_unless_newer_pending(message.checkpoint_id)

    # -------------------------------------------------------------------------------------------------- completion

    def _metadata_stored(self, checkpoint_id: CheckpointId, path: str) -> None:
        if self._discard_abandoned(checkpoint_id, path):
            return
        pending = self._pending[checkpoint_id]
        assert pending.draft is not None, "stored without a StoreMetadata"
        self._complete(pending, replace(pending.draft, metadata_path=path))

    def _complete(self, pending: PendingCheckpoint, completed: CompletedCheckpoint) -> None:
        self._finish(pending)
        self._failures.completed()
        self._pace.completed(self._now_ms)
        self._publish_completed(pending, completed)
        for dropped in self.store.add(completed):
            self._discard(dropped.states(), dropped.metadata_path)
        if pending.kind is CheckpointKind.SAVEPOINT:
            self._finished.keep(completed.checkpoint_id)
            self._emit(AnswerSavepoint(pending.token, TriggerSavepointSuccess(self._job_id, completed.metadata_path)))
        if pending.kind is CheckpointKind.FINAL:
            self._final = _Final.TAKEN
        self._subsume_older_than(completed.checkpoint_id)
        self._effects.extend(self._tasks.notify_complete(completed))
        self._resume_queued()

    def _publish_completed(self, pending: PendingCheckpoint, completed: CompletedCheckpoint) -> None:
        message = CheckpointCompleted(
            self._job_id,
            completed.checkpoint_id,
            duration_ms=round(self._now_ms - pending.started_ms),
            state_size_bytes=completed.state_size_bytes,
            timestamp_ms=self._wall_ms,
            path=completed.metadata_path,
            final=completed.is_final,
        )
        self._emit(Publish(message))

    def _subsume_older_than(self, checkpoint_id: CheckpointId) -> None:
        for pending in self.pending:
            if pending.checkpoint_id < checkpoint_id and pending.kind.can_be_subsumed:
                self._abort(pending, CheckpointFailure.SUBSUMED)

    # ------------------------------------------------------------------------------------------------ giving it up

    def _metadata_failed(self, failed: MetadataFailed) -> None:
        if self._discard_abandoned(failed.checkpoint_id, failed.path):
            return
        pending = self._pending[failed.checkpoint_id]
        self._abort(pending, CheckpointFailure.METADATA_FAILED, failed.reason, failed.path)
        self._effects.extend(self._failures.count(failed.checkpoint_id, f"could not be stored: {failed.reason}"))
        self._resume_queued()

    def _expire(self, checkpoint_id: CheckpointId) -> None:
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            self._abort(pending, CheckpointFailure.EXPIRED)
            self._effects.extend(self._failures.count(checkpoint_id, f"expired after {self._config.timeout_ms} ms"))
            self._resume_queued()

    def _attempt_failed(self, attempt_id: ExecutionAttemptId) -> None:
        self._tasks.fail(attempt_id)
        for pending in self.pending:
            if pending.is_waiting_for(attempt_id):
                self._abort(pending, CheckpointFailure.TASK_FAILED)
                self._resume_unless_newer_pending(pending.checkpoint_id)

    def _region_restarting(self) -> None:
        self._final = _Final.NOT_DUE
        self._abort_all(CheckpointFailure.REGION_RESTARTING)
        self._failures.forget_uncounted()
        self._pace.suspend()
        self._pace.schedule_next()

    def _shut_down(self, status: JobStatus) -> None:
        self._is_shut_down = True
        self._final = _Final.NOT_DUE
        self._pace.stop()
        self._abort_all(CheckpointFailure.COORDINATOR_SHUT_DOWN)
        for completed in self.store.shutdown(status):
            self._discard(completed.states(), completed.metadata_path)

    def _abort_all(self, failure: CheckpointFailure) -> None:
        for pending in self.pending:
            self._abort(pending, failure)

    def _abort(
        self, pending: PendingCheckpoint, failure: CheckpointFailure, detail: str = "", metadata_path: str = ""
    ) -> None:
        reason = f"{failure.value}: {detail}" if detail else failure.value
        self._finish(pending)
        self._failures.gave_up(pending, failure)
        if pending.is_storing and failure is not CheckpointFailure.METADATA_FAILED:
            self._abandoned[pending.checkpoint_id] = pending
        else:
            self._discard(pending.states(), metadata_path)
        self._emit(Publish(CheckpointAborted(self._job_id, pending.checkpoint_id, reason, self._wall_ms)))
        self._effects.extend(self._tasks.notify_aborted(pending, reason))
        self._disappoint(pending.kind, pending.token, f"the {pending.kind.value} was given up: {reason}")

    def _finish(self, pending: PendingCheckpoint) -> None:
        del self._pending[pending.checkpoint_id]
        self._emit(CancelTimer(CheckpointExpired(pending.checkpoint_id)))
        self._finished.add(pending)

    def _resume_unless_newer_pending(self, checkpoint_id: CheckpointId) -> None:
        """While a newer one is under way the queued request waits for that one, as in Flink."""
        if all(pending.checkpoint_id < checkpoint_id for pending in self._pending.values()):
            self._resume_queued()

    # ------------------------------------------------------------------------------------------------------ state

    def _discard_state_of(self, ack: AcknowledgeCheckpoint) -> None:
        if ack.state is not None:
            self._discard((ack.state,))

    def _discard_abandoned(self, checkpoint_id: CheckpointId, metadata_path: str = "") -> bool:
        """Whether it was given up while its metadata was being written; until now its state could not be touched."""
        abandoned = self._abandoned.pop(checkpoint_id, None)
        if abandoned is not None:
            self._discard(abandoned.states(), metadata_path)
        return abandoned is not None

    def _discard(self, states: tuple[SubtaskState, ...], metadata_path: str = "") -> None:
        if states or metadata_path:
            self._emit(Discard(states, metadata_path))

    def _emit(self, effect: CheckpointEffect) -> None:
        self._effects.append(effect)
