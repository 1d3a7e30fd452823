"""CheckpointCoordinator: decides when a checkpoint starts, completes or is given up. Flink: CheckpointCoordinator.

    trigger -> pending -> all acknowledged -> metadata stored -> completed -> tasks notified
                  \\------------- declined, expired, subsumed, ... ------------> aborted

A value machine: events in, effects out (`checkpoint_effects.py`). It touches no clock, socket, loop or disk. One
belongs to one job, for as long as the job lives, through all its restarts: ids are never used twice.

Every state that reaches it stands in a pending checkpoint, a draft that is being written, a checkpoint that the job
would restore from, a savepoint, or a `Discard`. Files may stand in several: CheckpointFiles knows who needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

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
    Discard,
    Publish,
    Schedule,
    Send,
    StoreMetadata,
)
from .checkpoint_events import (
    AlignmentOverdue,
    AttemptChanged,
    AttemptFailed,
    CheckpointEvent,
    CheckpointExpired,
    CheckpointRequested,
    FinalSavepointWanted,
    JobAdopted,
    MetadataFailed,
    MetadataStored,
    OrdersLost,
    RegionRestarting,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
    TriggerSavepointNow,
)
from .checkpoint_failures import CheckpointFailures, how_far, sooner, who_is
from .checkpoint_files import CheckpointFiles
from .checkpoint_plan import CheckpointPlan
from .checkpoint_reasons import CheckpointFailure
from .checkpoint_requests import CheckpointRequests, Decisions, Start
from .checkpoint_statistics import CheckpointStatisticsTracker
from .checkpoint_tasks import CheckpointTasks
from .finished_checkpoints import FinishedCheckpoints
from .long_waits import LongWaits
from .pending_checkpoint import AckResult, PendingCheckpoint

_HEARD_WHEN_DOWN = (
    AcknowledgeCheckpoint,
    MetadataStored,
    MetadataFailed,
    TriggerCheckpointNow,
    CheckpointRequested,
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


Effects: TypeAlias = list[CheckpointEffect]


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
        self.statistics = CheckpointStatisticsTracker(job_id, plan.vertices)
        self._job_id = job_id
        self._config = config
        self._vertices = plan.vertices
        self._predecessors = predecessors
        self._ids = ids
        self._tasks = CheckpointTasks(plan)
        self._pending: dict[CheckpointId, PendingCheckpoint] = {}
        self._abandoned: dict[CheckpointId, PendingCheckpoint] = {}
        """Given up while their metadata was being written; until that is answered, their state cannot be touched."""
        self._finished = FinishedCheckpoints(store)
        self._requests = CheckpointRequests(job_id, config, self._tasks)
        self._patience = AlignmentPatience(config)
        self._long_waits = LongWaits(config, plan.vertices)
        self._failures = CheckpointFailures(config.tolerable_failures)
        self._now_ms, self._wall_ms = 0.0, 0

    @property
    def pending(self) -> tuple[PendingCheckpoint, ...]:
        """Oldest first; for status pages and tests, to read only."""
        return tuple(self._pending.values())

    def knows(self, checkpoint_id: CheckpointId) -> bool:
        """Whether it is pending, or one of the last 16 that ended by themselves. Flink: recentPendingCheckpoints."""
        return checkpoint_id in self._pending or self._finished.is_known(checkpoint_id)

    def look(self, now_ms: float) -> str:
        """To be called now and then. A text for the log about a checkpoint that waits too long, once; or nothing."""
        return self._long_waits.look(self._pending.values(), self._tasks, now_ms)

    def on(self, event: CheckpointEvent, now_ms: float, wall_ms: int) -> Effects:
        """Take one event; returns what to do, in this order. `now_ms` never goes back, `wall_ms` is Unix time."""
        self._now_ms, self._wall_ms = now_ms, wall_ms
        is_heard = not self._requests.are_closed or isinstance(event, _HEARD_WHEN_DOWN)
        effects = self._handle(event) if is_heard else []
        effects.extend(self._patience.switches(self._pending.values(), self._tasks))
        return effects

    def _handle(self, event: CheckpointEvent) -> Effects:
        match event:
            case AcknowledgeCheckpoint():
                return self._acknowledge(event)
            case DeclineCheckpoint():
                return self._decline(event)
            case MetadataStored():
                return self._metadata_stored(event)
            case MetadataFailed():
                return self._metadata_failed(event)
            case CheckpointExpired(checkpoint_id):
                return self._expire(checkpoint_id)
            case AlignmentOverdue(checkpoint_id):
                if checkpoint_id in self._pending:
                    self._patience.overdue(checkpoint_id)
                return []
            case AttemptChanged(subtask, attempt_id, is_running, place):
                self._tasks.change(subtask, attempt_id, is_running, place)
                return []
            case AttemptFailed(attempt_id):
                return self._attempt_failed(attempt_id)
            case RegionRestarting():
                return self._region_restarting()
            case JobAdopted(given_up):
                return self._adopted(given_up)
            case OrdersLost(attempts):
                return self._orders_lost(attempts)
            case StartScheduler(keep_pending):
                return self._start_scheduler(keep_pending)
            case StopScheduler():
                return self._stop_scheduler()
            case Shutdown(status):
                return self._shut_down(status)
            case _:
                return self._carry_out(self._requests.on(event, self._pending.values(), self._now_ms))

    # ---------------------------------------------------------------------------------------------- triggering

    def _carry_out(self, decisions: Decisions) -> Effects:
        effects: Effects = []
        for decision in decisions:
            if isinstance(decision, Start):
                effects.extend(self._start(decision))
            else:
                effects.append(decision)
        return effects

    def _start_scheduler(self, keep_pending: bool) -> Effects:
        stopped = self._requests.pace.stop() if keep_pending else self._stop_scheduler()
        return [*stopped, *self._requests.pace.start()]

    def _stop_scheduler(self) -> Effects:
        failure = CheckpointFailure.SCHEDULER_STOPPED
        return [*self._requests.pace.stop(), *self._abort_all(failure), *self._requests.refuse_waiting(failure)]

    def _start(self, granted: Start) -> Effects:
        pending = PendingCheckpoint(
            self._job_id,
            self._ids.get_and_increment(),
            granted.kind,
            self._tasks.to_acknowledge(),
            timestamp_ms=self._wall_ms,
            started_ms=self._now_ms,
            savepoint=granted.savepoint,
            requests=granted.requests,
        )
        self._pending[pending.checkpoint_id] = pending
        self.statistics.triggered(pending)
        expiry = Schedule(self._config.timeout_ms, CheckpointExpired(pending.checkpoint_id))
        return [expiry, *self._patience.begin(pending), *self._tasks.trigger(pending)]

    # ------------------------------------------------------------------------------------------ acknowledgements

    def _acknowledge(self, ack: AcknowledgeCheckpoint) -> Effects:
        result, discarded = self._take(ack)
        if result is not AckResult.SUCCESS:
            return [*discarded, AckIgnored(ack.attempt_id, ack.checkpoint_id, result)]
        self.statistics.acknowledged(ack, self._now_ms)
        pending = self._pending[ack.checkpoint_id]
        if pending.is_fully_acknowledged:
            return [self._store(pending)]
        return [*self._tasks.acknowledged(pending, ack.attempt_id)]

    def _store(self, pending: PendingCheckpoint) -> StoreMetadata:
        savepoints = self._requests.promised(pending)
        draft = pending.finalize(
            self._vertices, self._wall_ms, is_savepoint=bool(savepoints), predecessors=self._predecessors
        )
        return StoreMetadata(draft, savepoints)

    def _take(self, ack: AcknowledgeCheckpoint) -> tuple[AckResult, list[Discard]]:
        if ack.job_id != self._job_id:
            return AckResult.WRONG_JOB, []  # its state is that job's to keep or discard
        pending = self._pending.get(ack.checkpoint_id)
        if pending is None:
            return self._come_late(ack)
        result = pending.acknowledge(ack)
        if result is AckResult.SUCCESS:
            self._files.acknowledged(ack.checkpoint_id, ack.state)
        return result, self._discard_state_of(ack) if result is AckResult.UNKNOWN_TASK else []

    def _come_late(self, ack: AcknowledgeCheckpoint) -> tuple[AckResult, list[Discard]]:
        """No one owns its state, unless it repeats what was settled: that may stand in a savepoint."""
        is_remembered = ack.checkpoint_id in self._finished
        is_unowned = (is_remembered or not self._requests.are_closed) and self._finished.settle(ack)
        discarded = self._discard_state_of(ack) if is_unowned else []
        if self._requests.are_closed:
            return AckResult.SHUT_DOWN, discarded
        is_known = self._finished.is_known(ack.checkpoint_id)
        return AckResult.LATE if is_known else AckResult.UNKNOWN_CHECKPOINT, discarded

    def _decline(self, message: DeclineCheckpoint) -> Effects:
        if message.job_id != self._job_id:
            return []
        pending = self._pending.get(message.checkpoint_id)
        if pending is None:
            return [*self._failures.count_decline(message, str(message.attempt_id))]
        who = who_is(message.attempt_id, pending, self._vertices, self._tasks.places)
        return [
            *self._abort(pending, CheckpointFailure.DECLINED, f"{who}: {message.text}"),
            *self._failures.count_decline(message, who),
            *self._resume_unless_newer_pending(message.checkpoint_id),
        ]

    # -------------------------------------------------------------------------------------------------- completion

    def _metadata_stored(self, stored: MetadataStored) -> Effects:
        if stored.checkpoint_id in self._abandoned:
            abandoned = self._abandoned.pop(stored.checkpoint_id)
            return [*self._give_up(abandoned, stored.path, tuple(stored.savepoints.values()))]
        pending = self._pending[stored.checkpoint_id]
        assert pending.draft is not None, "stored without a StoreMetadata"
        return self._complete(pending, replace(pending.draft, metadata_path=stored.path), stored.savepoints)

    def _complete(
        self, pending: PendingCheckpoint, completed: CompletedCheckpoint, savepoints: Mapping[str, str]
    ) -> Effects:
        finished = self._finish(pending)
        self._failures.completed()
        self._requests.pace.completed(self._now_ms)
        published = Publish(self.statistics.completed(completed, self._now_ms, self._wall_ms))
        promised = self._requests.promised(pending)
        paths = {request: savepoints.get(request.token, completed.metadata_path) for request in promised}
        self._files.completed(completed, paths.values())
        dropped = self._drop(self.store.add(completed))
        if completed.is_savepoint:
            self._finished.keep(completed.checkpoint_id)
        answers = self._carry_out(self._requests.completed(pending, completed, paths))
        subsumes = not completed.is_savepoint or completed.is_final
        subsumed = self._subsume_older_than(completed) if subsumes else []
        told = self._tasks.notify_complete(completed, self._oldest_needed())
        return [*finished, published, *dropped, *answers, *subsumed, *told, *self._resume_queued()]

    def _adopted(self, given_up: Iterable[CheckpointId]) -> Effects:
        told = self._repeat_newest()
        for checkpoint_id in given_up:
            told.extend(self._tasks.notify_lost(self._job_id, checkpoint_id))
        return [*told]

    def _repeat_newest(self) -> list[Send]:
        """Repeats are harmless: sinks commit a complete checkpoint once."""
        newest = next(self.store.restorable(), None)
        return [] if newest is None else [*self._tasks.notify_complete(newest, self._oldest_needed())]

    def _oldest_needed(self) -> CheckpointId | None:
        return min((each.checkpoint_id for each in self.store.restorable()), default=None)

    def _subsume_older_than(self, completed: CompletedCheckpoint) -> Effects:
        effects: Effects = []
        for pending in self.pending:
            if pending.checkpoint_id < completed.checkpoint_id and pending.kind.can_be_subsumed:
                effects.extend(self._requests.taken(pending, completed))
                effects.extend(self._abort(pending, CheckpointFailure.SUBSUMED))
        return effects

    # ------------------------------------------------------------------------------------------------ giving it up

    def _metadata_failed(self, failed: MetadataFailed) -> Effects:
        if failed.checkpoint_id in self._abandoned:
            return [*self._give_up(self._abandoned.pop(failed.checkpoint_id), failed.path)]
        aborted = self._abort(
            self._pending[failed.checkpoint_id], CheckpointFailure.METADATA_FAILED, failed.reason, failed.path
        )
        if failed.needs_full:  # a restart now would need the files that are gone
            return [*aborted, *self._resume_queued()]
        what = f"could not be stored: {failed.reason}"
        counted = self._failures.count(failed.checkpoint_id, what, repeatable=failed.repeatable)
        return [*aborted, *counted, *self._resume_queued()]

    def _expire(self, checkpoint_id: CheckpointId) -> Effects:
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            return []
        what = f"after {self._config.timeout_ms} ms {how_far(pending, self._vertices, self._tasks.places)}"
        advice = sooner(pending, is_unaligned=self._config.alignment_timeout_ms is not None)
        return [
            *self._abort(pending, CheckpointFailure.EXPIRED, what),
            *self._failures.count(checkpoint_id, f"expired: {what}", advice=advice),
            *self._resume_queued(),
        ]

    def _orders_lost(self, attempts: Iterable[ExecutionAttemptId]) -> Effects:
        effects: Effects = []
        for pending in self.pending:
            unheard = next((each for each in attempts if pending.is_waiting_for(each)), None)
            if unheard is not None:
                who = who_is(unheard, pending, self._vertices, self._tasks.places)
                why = f"the TaskManager of {who} was without a JobManager for a while"
                effects.extend(self._abort(pending, CheckpointFailure.ORDERS_LOST, why))
        return [*effects, *self._repeat_newest(), *(self._resume_queued() if effects else [])]

    def _attempt_failed(self, attempt_id: ExecutionAttemptId) -> Effects:
        self._tasks.fail(attempt_id)
        effects: Effects = []
        for pending in self.pending:
            if pending.is_waiting_for(attempt_id):
                who = who_is(attempt_id, pending, self._vertices, self._tasks.places)
                failure, why = CheckpointFailure.TASK_FAILED, f"{who} ended before it had acknowledged"
                if self._requests.final.is_taken:
                    failure = CheckpointFailure.JOB_IS_ENDING
                    why += ": the data has ended, and the final checkpoint is complete"
                effects.extend(self._abort(pending, failure, why))
                effects.extend(self._resume_unless_newer_pending(pending.checkpoint_id))
        return effects

    def _region_restarting(self) -> Effects:
        timers = self._requests.restarting()
        failure = CheckpointFailure.REGION_RESTARTING
        aborted = [*self._abort_all(failure), *self._requests.refuse_waiting(failure)]
        self._failures.forget_uncounted()
        return [*timers, *aborted]

    def _shut_down(self, status: JobStatus) -> Effects:
        return [
            *self._requests.close(),
            *self._abort_all(CheckpointFailure.COORDINATOR_SHUT_DOWN),
            *self._requests.refuse_waiting(CheckpointFailure.COORDINATOR_SHUT_DOWN),
            *self._requests.break_promises(f"the job is {status.value}, and took no final checkpoint"),
            *self._drop(self.store.shutdown(status)),
        ]

    def _abort_all(self, failure: CheckpointFailure) -> Effects:
        return [effect for pending in self.pending for effect in self._abort(pending, failure)]

    def _abort(
        self, pending: PendingCheckpoint, failure: CheckpointFailure, detail: str = "", metadata_path: str = ""
    ) -> Effects:
        reason = f"{failure.value}: {detail}" if detail else failure.value
        finished = self._finish(pending, is_cut_off=failure in _CUTS_OFF)
        self._failures.gave_up(pending, failure)
        discarded: list[Discard] = []
        if pending.is_storing and failure is not CheckpointFailure.METADATA_FAILED:
            self._abandoned[pending.checkpoint_id] = pending
        else:
            discarded = self._give_up(pending, metadata_path)
        published = Publish(self.statistics.failed(pending.checkpoint_id, reason, self._now_ms, self._wall_ms))
        told = self._tasks.notify_aborted(pending, reason)
        return [
            *finished,
            *discarded,
            published,
            *told,
            *self._carry_out(self._requests.given_up(pending, failure, reason)),
        ]

    def _finish(self, pending: PendingCheckpoint, *, is_cut_off: bool = False) -> list[CancelTimer]:
        del self._pending[pending.checkpoint_id]
        self._finished.add(pending, is_cut_off=is_cut_off)
        return [CancelTimer(CheckpointExpired(pending.checkpoint_id)), *self._patience.end(pending)]

    def _resume_queued(self) -> Effects:
        return self._carry_out(self._requests.resume_queued(self._pending.values(), self._now_ms))

    def _resume_unless_newer_pending(self, checkpoint_id: CheckpointId) -> Effects:
        """While a newer one is under way the queued request waits for that one, as in Flink; a client's does not."""
        if all(pending.checkpoint_id < checkpoint_id for pending in self._pending.values()):
            return self._resume_queued()
        return self._carry_out(self._requests.serve_waiting(self._pending.values()))

    # ------------------------------------------------------------------------------------------------------ state

    def _discard_state_of(self, ack: AcknowledgeCheckpoint) -> list[Discard]:
        return _those(self._files.unowned(ack.state))

    def _drop(self, dropped: Iterable[CompletedCheckpoint]) -> list[Discard]:
        """The job would restore from none of these any more, nor from savepoints that newer ones supersede; a user who
        has not disposed of his keeps it.
        """
        discards = [discard for each in dropped for discard in _those(self._files.drop(each))]
        discards += self._files.superseded({each.checkpoint_id for each in self.store.restorable()})
        self.statistics.discarded({each.metadata_path for each in discards})
        return discards

    def _give_up(
        self, pending: PendingCheckpoint, metadata_path: str = "", savepoints: tuple[str, ...] = ()
    ) -> list[Discard]:
        return _those(self._files.give_up(pending.checkpoint_id, pending.states(), metadata_path, savepoints))


def _those(discard: Discard | None) -> list[Discard]:
    return [] if discard is None else [discard]
