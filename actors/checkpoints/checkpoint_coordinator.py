"""CheckpointCoordinator: decides when a checkpoint starts, completes or is given up. Flink: CheckpointCoordinator.

    trigger -> pending -> all acknowledged -> metadata stored -> completed -> tasks notified
                  \\------------- declined, expired, subsumed, ... ------------> aborted

A value machine: events in, effects out (`checkpoint_effects.py`). It touches no clock, socket, loop or disk. One
belongs to one job, for as long as the job lives, through all its restarts: ids are never used twice.

Every state that reaches it stands in a pending checkpoint, a draft that is being written, a checkpoint that the job
would restore from, a savepoint, or a `Discard`. Files may stand in several: CheckpointFiles knows who needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from ...messages import (
    AcknowledgeCheckpoint,
    CheckpointConfig,
    CheckpointId,
    DeclineCheckpoint,
    ExecutionAttemptId,
    JobId,
    JobStatus,
    Predecessor,
)
from ...state.checkpoints.checkpoint_ids import CheckpointIdCounter
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint, CompletedCheckpointStore
from ...state.checkpoints.shared_state import SharedStateRegistry
from .alignment_patience import AlignmentPatience
from .checkpoint_effects import (
    AckIgnored,
    CancelTimer,
    CheckpointEffect,
    CheckpointFailure,
    Discard,
    Publish,
    Schedule,
    StoreMetadata,
)
from .checkpoint_events import (
    AlignmentOverdue,
    AllDataEnded,
    AttemptChanged,
    AttemptFailed,
    CheckpointEvent,
    CheckpointExpired,
    FinalSavepointWanted,
    JobStopping,
    MetadataFailed,
    MetadataStored,
    PeriodicTick,
    RegionRestarting,
    RegionRunsOn,
    RetryFinal,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
    TriggerSavepointNow,
)
from .checkpoint_failures import CheckpointFailures, how_far, who_is
from .checkpoint_files import CheckpointFiles
from .checkpoint_plan import CheckpointPlan
from .checkpoint_requests import CheckpointRequests
from .checkpoint_statistics import CheckpointStatisticsTracker
from .checkpoint_tasks import CheckpointTasks
from .finished_checkpoints import FinishedCheckpoints
from .pending_checkpoint import AckResult, CheckpointKind, PendingCheckpoint

_HEARD_WHEN_DOWN = (
    AcknowledgeCheckpoint,
    MetadataStored,
    MetadataFailed,
    TriggerCheckpointNow,
    TriggerSavepointNow,
    FinalSavepointWanted,
)
"""After Shutdown: what still has state to discard or somebody to answer."""

_CUTS_OFF = frozenset(
    {
        CheckpointFailure.SCHEDULER_STOPPED,
        CheckpointFailure.REGION_RESTARTING,
        CheckpointFailure.METADATA_FAILED,
        CheckpointFailure.COORDINATOR_SHUT_DOWN,
    }
)
"""Acknowledgements that come after these are of an unknown checkpoint, not late ones."""


class CheckpointCoordinator:
    """One job's checkpoints."""

    def __init__(
        self,
        job_id: JobId,
        config: CheckpointConfig,
        plan: CheckpointPlan,
        ids: CheckpointIdCounter,
        store: CompletedCheckpointStore,
        files: CheckpointFiles | None = None,
        predecessors: tuple[Predecessor, ...] = (),
    ) -> None:
        """`files`: who needs which of them, if that is not this job alone. `predecessors`: jobs that it continues."""
        self.store = store
        self._files = files or CheckpointFiles(job_id, config.directory, SharedStateRegistry())
        self.statistics = CheckpointStatisticsTracker(job_id)
        self._job_id = job_id
        self._config = config
        self._vertices = plan.vertices
        self._predecessors = predecessors
        self._ids = ids
        self._tasks = CheckpointTasks(plan)
        self._pending: dict[CheckpointId, PendingCheckpoint] = {}
        self._abandoned: dict[CheckpointId, PendingCheckpoint] = {}  # given up while their metadata was being written
        self._finished = FinishedCheckpoints(store)
        self._requests = CheckpointRequests(job_id, config, self._tasks, self._pending, self._start, self._emit)
        self._patience = AlignmentPatience(config, self._emit)
        self._failures = CheckpointFailures(config.tolerable_failures)
        self._now_ms, self._wall_ms = 0.0, 0
        self._effects: list[CheckpointEffect] = []

    @property
    def pending(self) -> tuple[PendingCheckpoint, ...]:
        """Oldest first; for status pages and tests, to read only."""
        return tuple(self._pending.values())

    def knows(self, checkpoint_id: CheckpointId) -> bool:
        """Whether it is pending, or one of the last 16 that ended by themselves. Flink: recentPendingCheckpoints."""
        return checkpoint_id in self._pending or self._finished.is_known(checkpoint_id)

    def on(self, event: CheckpointEvent, now_ms: float, wall_ms: int) -> list[CheckpointEffect]:
        """Take one event; returns what to do, in this order. `now_ms` never goes back, `wall_ms` is Unix time."""
        self._now_ms, self._wall_ms, self._effects = now_ms, wall_ms, []
        if not self._requests.are_closed or isinstance(event, _HEARD_WHEN_DOWN):
            self._handle(event)
        self._effects.extend(self._patience.switches(self._pending.values(), self._tasks))
        return self._effects

    def _handle(self, event: CheckpointEvent) -> None:
        match event:
            case StartScheduler(keep_pending):
                self._start_scheduler(keep_pending)
            case StopScheduler():
                self._stop_scheduler()
            case PeriodicTick():
                self._requests.tick(event, self._now_ms)
            case TriggerCheckpointNow(is_periodic):
                self._requests.wanted_now(self._now_ms, periodic=is_periodic)
            case TriggerSavepointNow():
                self._requests.savepoint_wanted(event, self._now_ms)
            case FinalSavepointWanted(token):
                self._requests.final_savepoint_wanted(token)
            case JobStopping():
                self._requests.is_stopping = True
            case AllDataEnded():
                self._requests.data_ended(self._now_ms)
            case RetryFinal():
                self._requests.try_final(self._now_ms)
            case AcknowledgeCheckpoint():
                self._acknowledge(event)
            case DeclineCheckpoint():
                self._decline(event)
            case CheckpointExpired(checkpoint_id):
                self._expire(checkpoint_id)
            case AlignmentOverdue(checkpoint_id):
                if checkpoint_id in self._pending:
                    self._patience.overdue(checkpoint_id)
            case MetadataStored():
                self._metadata_stored(event)
            case MetadataFailed():
                self._metadata_failed(event)
            case AttemptChanged(subtask, attempt_id, is_running):
                self._tasks.change(subtask, attempt_id, is_running)
            case AttemptFailed(attempt_id):
                self._attempt_failed(attempt_id)
            case RegionRestarting():
                self._region_restarting()
            case RegionRunsOn():
                self._requests.runs_on()
            case Shutdown(status):
                self._shut_down(status)
            case _:
                assert_never(event)

    # ---------------------------------------------------------------------------------------------- triggering

    def _start_scheduler(self, keep_pending: bool) -> None:
        if keep_pending:
            self._requests.pace.stop()
        else:
            self._stop_scheduler()
        self._requests.pace.start()

    def _stop_scheduler(self) -> None:
        self._requests.pace.stop()
        self._abort_all(CheckpointFailure.SCHEDULER_STOPPED)

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
        self.statistics.triggered(pending)
        self._emit(Schedule(self._config.timeout_ms, CheckpointExpired(pending.checkpoint_id)))
        self._patience.begin(pending)
        self._effects.extend(self._tasks.trigger(pending))

    # ------------------------------------------------------------------------------------------ acknowledgements

    def _acknowledge(self, ack: AcknowledgeCheckpoint) -> None:
        result = self._take(ack)
        if result is not AckResult.SUCCESS:
            self._emit(AckIgnored(ack.attempt_id, ack.checkpoint_id, result))
            return
        self.statistics.acknowledged(ack, self._now_ms)
        pending = self._pending[ack.checkpoint_id]
        if pending.is_fully_acknowledged:
            tokens = self._requests.promised(pending)
            draft = pending.finalize(
                self._vertices, self._wall_ms, is_savepoint=bool(tokens), predecessors=self._predecessors
            )
            self._emit(StoreMetadata(draft, tokens))

    def _take(self, ack: AcknowledgeCheckpoint) -> AckResult:
        if ack.job_id != self._job_id:
            return AckResult.WRONG_JOB  # its state is that job's to keep or discard
        pending = self._pending.get(ack.checkpoint_id)
        if pending is None:
            return self._come_late(ack)
        result = pending.acknowledge(ack)
        if result is AckResult.SUCCESS:
            self._files.acknowledged(ack.checkpoint_id, ack.state)
        if result is AckResult.UNKNOWN_TASK:
            self._discard_state_of(ack)
        return result

    def _come_late(self, ack: AcknowledgeCheckpoint) -> AckResult:
        """Its state is nobody's, unless it repeats what was settled: that may stand in a savepoint."""
        is_remembered = ack.checkpoint_id in self._finished
        if (is_remembered or not self._requests.are_closed) and self._finished.settle(ack):
            self._discard_state_of(ack)
        if self._requests.are_closed:
            return AckResult.SHUT_DOWN
        return AckResult.LATE if self._finished.is_known(ack.checkpoint_id) else AckResult.UNKNOWN_CHECKPOINT

    def _decline(self, message: DeclineCheckpoint) -> None:
        if message.job_id != self._job_id:
            return
        pending = self._pending.get(message.checkpoint_id)
        who = str(message.attempt_id)
        if pending is not None:
            who = who_is(message.attempt_id, pending, self._vertices)
            self._abort(pending, CheckpointFailure.DECLINED, f"{who}: {message.text}")
        self._effects.extend(self._failures.count_decline(message, who))
        if pending is not None:
            self._resume_unless_newer_pending(message.checkpoint_id)

    # -------------------------------------------------------------------------------------------------- completion

    def _metadata_stored(self, stored: MetadataStored) -> None:
        if self._discard_abandoned(stored.checkpoint_id, stored.path, tuple(stored.savepoints.values())):
            return
        pending = self._pending[stored.checkpoint_id]
        assert pending.draft is not None, "stored without a StoreMetadata"
        self._complete(pending, replace(pending.draft, metadata_path=stored.path), stored.savepoints)

    def _complete(
        self, pending: PendingCheckpoint, completed: CompletedCheckpoint, savepoints: Mapping[str, str]
    ) -> None:
        self._finish(pending)
        self._failures.completed()
        self._requests.pace.completed(self._now_ms)
        self._emit(Publish(self.statistics.completed(completed, self._now_ms, self._wall_ms)))
        promised = self._requests.promised(pending)
        paths = {token: savepoints.get(token, completed.metadata_path) for token in promised}
        self._files.completed(completed, paths.values())
        for dropped in self.store.add(completed):
            self._discard(self._files.drop(dropped))
        self._discard_superseded_savepoints()
        if completed.is_savepoint:
            self._finished.keep(completed.checkpoint_id)
        self._requests.completed(pending.kind, paths)
        if not completed.is_savepoint or completed.is_final:
            self._subsume_older_than(completed.checkpoint_id)
        self._effects.extend(self._tasks.notify_complete(completed))
        self._requests.resume_queued(self._now_ms)

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
        self._requests.resume_queued(self._now_ms)

    def _expire(self, checkpoint_id: CheckpointId) -> None:
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            what = f"after {self._config.timeout_ms} ms {how_far(pending, self._vertices)}"
            self._abort(pending, CheckpointFailure.EXPIRED, what)
            self._effects.extend(self._failures.count(checkpoint_id, f"expired: {what}"))
            self._requests.resume_queued(self._now_ms)

    def _attempt_failed(self, attempt_id: ExecutionAttemptId) -> None:
        self._tasks.fail(attempt_id)
        for pending in self.pending:
            if pending.is_waiting_for(attempt_id):
                who = who_is(attempt_id, pending, self._vertices)
                self._abort(pending, CheckpointFailure.TASK_FAILED, f"{who} ended before it had acknowledged")
                self._resume_unless_newer_pending(pending.checkpoint_id)

    def _region_restarting(self) -> None:
        self._requests.restarting()
        self._abort_all(CheckpointFailure.REGION_RESTARTING)
        self._failures.forget_uncounted()

    def _shut_down(self, status: JobStatus) -> None:
        self._requests.close()
        self._abort_all(CheckpointFailure.COORDINATOR_SHUT_DOWN)
        self._requests.break_promises(f"the job is {status.value}, and took no final checkpoint")
        for completed in self.store.shutdown(status):
            self._discard(self._files.drop(completed))
        self._discard_superseded_savepoints()

    def _abort_all(self, failure: CheckpointFailure) -> None:
        for pending in self.pending:
            self._abort(pending, failure)

    def _abort(
        self, pending: PendingCheckpoint, failure: CheckpointFailure, detail: str = "", metadata_path: str = ""
    ) -> None:
        reason = f"{failure.value}: {detail}" if detail else failure.value
        self._finish(pending, is_cut_off=failure in _CUTS_OFF)
        self._failures.gave_up(pending, failure)
        if pending.is_storing and failure is not CheckpointFailure.METADATA_FAILED:
            self._abandoned[pending.checkpoint_id] = pending
        else:
            self._discard(self._files.give_up(pending.checkpoint_id, pending.states(), metadata_path))
        self._emit(Publish(self.statistics.failed(pending.checkpoint_id, reason, self._now_ms, self._wall_ms)))
        self._effects.extend(self._tasks.notify_aborted(pending, reason))
        self._requests.given_up(pending, failure, reason)

    def _finish(self, pending: PendingCheckpoint, *, is_cut_off: bool = False) -> None:
        del self._pending[pending.checkpoint_id]
        self._emit(CancelTimer(CheckpointExpired(pending.checkpoint_id)))
        self._patience.end(pending)
        self._finished.add(pending, is_cut_off=is_cut_off)

    def _resume_unless_newer_pending(self, checkpoint_id: CheckpointId) -> None:
        """While a newer one is under way the queued request waits for that one, as in Flink."""
        if all(pending.checkpoint_id < checkpoint_id for pending in self._pending.values()):
            self._requests.resume_queued(self._now_ms)

    # ------------------------------------------------------------------------------------------------------ state

    def _discard_state_of(self, ack: AcknowledgeCheckpoint) -> None:
        self._discard(self._files.nobodys(ack.state))

    def _discard_superseded_savepoints(self) -> None:
        """The job lets go of those it would not restore from; a user who has not disposed of his keeps it."""
        for discard in self._files.superseded({each.checkpoint_id for each in self.store.restorable()}):
            self._discard(discard)

    def _discard_abandoned(
        self, checkpoint_id: CheckpointId, metadata_path: str = "", savepoints: tuple[str, ...] = ()
    ) -> bool:
        """Whether it was given up while its metadata was being written; until now its state could not be touched."""
        abandoned = self._abandoned.pop(checkpoint_id, None)
        if abandoned is not None:
            self._discard(self._files.give_up(checkpoint_id, abandoned.states(), metadata_path, savepoints))
        return abandoned is not None

    def _discard(self, discard: Discard | None) -> None:
        if discard is not None:
            self._emit(discard)

    def _emit(self, effect: CheckpointEffect) -> None:
        self._effects.append(effect)
