"""CheckpointRequests: who wants a checkpoint, whether it may start now, and who gets the refusal when there is none.

Requests come from the clock (CheckpointPace), from people, and from the end of the data (FinalCheckpoint). One that is
granted is a `Start`; one that is refused is logged; whoever was promised a savepoint or a checkpoint is answered,
exactly once; the final checkpoint is tried again. A value machine of the CheckpointCoordinator.
Flink: CheckpointRequestDecider.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from ...messages import (
    CheckpointConfig,
    CheckpointNotTaken,
    CheckpointTaken,
    JobId,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from .checkpoint_effects import (
    AnswerCheckpoint,
    AnswerSavepoint,
    CheckpointEffect,
    Refused,
    Schedule,
)
from .checkpoint_events import (
    AllDataEnded,
    CheckpointRequested,
    FinalSavepointWanted,
    JobStopping,
    PeriodicTick,
    RegionRunsOn,
    RequestEvent,
    RetryFinal,
    TriggerCheckpointNow,
    TriggerSavepointNow,
)
from .checkpoint_pace import CheckpointPace, Timers
from .checkpoint_reasons import CheckpointFailure, Refusal
from .checkpoint_tasks import CheckpointTasks
from .final_checkpoint import FinalCheckpoint
from .pending_checkpoint import CheckpointKind, PendingCheckpoint
from .savepoint_request import Afterwards, CheckpointRequest, SavepointRequest

FINAL_RETRY_MS = 1000
"""How long after a final checkpoint could not start or did not complete the next one is tried."""

_MEANING = {
    Refusal.STOP_UNDER_WAY: "the job is being stopped with a savepoint; wait for that one",
    Refusal.JOB_IS_STOPPING: (
        "its data is being ended, and only its final checkpoint can be a savepoint: stop_with_savepoint(drain=True)"
    ),
    Refusal.JOB_IS_ENDING: "its last checkpoint has been taken, or is being stored",
    Refusal.COORDINATOR_SHUT_DOWN: "the job is over",
}
"""For those who were promised a savepoint."""

_CAUSE = {
    CheckpointFailure.REGION_RESTARTING: "tasks have failed and are restarted; ask again when all of them run",
    CheckpointFailure.SCHEDULER_STOPPED: "the job is being cancelled, or has failed",
    CheckpointFailure.COORDINATOR_SHUT_DOWN: "the job is over",
}
"""For the same, where nothing else says why."""


@dataclass(frozen=True, slots=True)
class Start:
    """A request is granted: trigger a checkpoint of this kind now, for this savepoint."""

    kind: CheckpointKind
    savepoint: SavepointRequest | None = None
    requests: tuple[CheckpointRequest, ...] = ()
    """Those that it fulfils."""


Decision: TypeAlias = Start | CheckpointEffect
Decisions: TypeAlias = list[Decision]
Pending: TypeAlias = Collection[PendingCheckpoint]


class CheckpointRequests:
    """One job's. `pending` is always what is under way now, oldest first."""

    def __init__(self, job_id: JobId, config: CheckpointConfig, tasks: CheckpointTasks) -> None:
        self.are_closed = False
        """The coordinator was shut down: everything is refused."""
        self._is_stopping = False
        """Data is being ended before its time: no savepoint but the final one."""
        self.pace = CheckpointPace(config)
        self.final = FinalCheckpoint()
        self._job_id = job_id
        self._tasks = tasks
        self._waiting: tuple[CheckpointRequest, ...] = ()
        """For the next checkpoint that begins: as many are under way as there may be."""

    # -- what is wanted

    def on(self, event: RequestEvent, pending: Pending, now_ms: float) -> Decisions:
        match event:
            case PeriodicTick():
                return self._tick(event, pending, now_ms)
            case RetryFinal():
                return self._try_final(pending, now_ms)
            case TriggerCheckpointNow(is_periodic):
                return self._wanted_now(pending, now_ms, periodic=is_periodic)
            case CheckpointRequested(request):
                self._waiting = (*self._waiting, request)
                return self.serve_waiting(pending)
            case TriggerSavepointNow(request):
                return self._savepoint_wanted(request, pending, now_ms)
            case FinalSavepointWanted(request):
                return self._final_savepoint_wanted(request, pending)
            case JobStopping():
                self._is_stopping = True
                return []
            case AllDataEnded():
                return self._data_ended(pending, now_ms)
            case RegionRunsOn():
                return [*self.pace.schedule_next()] if self.final.runs_on() else []
            case _:
                assert_never(event)

    def _wanted_now(self, pending: Pending, now_ms: float, *, periodic: bool) -> Decisions:
        """A person wants a checkpoint, or a clock that is not ours."""
        if periodic and not self.pace.is_on and not self.are_closed:
            return [Refused(CheckpointKind.CHECKPOINT, Refusal.PERIODIC_SCHEDULER_OFF)]
        return self._decide(CheckpointKind.CHECKPOINT, pending, now_ms)

    def _tick(self, tick: PeriodicTick, pending: Pending, now_ms: float) -> Decisions:
        if not self.pace.is_on:
            return [Refused(CheckpointKind.CHECKPOINT, Refusal.PERIODIC_SCHEDULER_OFF)]
        return self._decide_periodic(pending, now_ms) if self.pace.take_tick(tick) else []

    def resume_queued(self, pending: Pending, now_ms: float) -> Decisions:
        """A checkpoint is gone: the request that found no room goes now, not at the next interval."""
        periodic = self._decide_periodic(pending, now_ms) if self.pace.take_queued() else []
        return [*periodic, *self.serve_waiting(pending)]

    def serve_waiting(self, pending: Pending) -> Decisions:
        """Who has asked for a checkpoint gets one that begins now, if there is room, or hears why there is none."""
        if not self._waiting:
            return []
        kind = CheckpointKind.CHECKPOINT
        refusal = self._ruled_out(kind, pending)
        if refusal is None and not self.final.is_ahead:
            refusal = Refusal.JOB_IS_ENDING
        if refusal is None and not self._tasks.are_ready:
            refusal = Refusal.TASKS_NOT_READY
        if refusal is not None:
            cause = f"no {kind.value} could be triggered: {self._why(refusal)}"
            return [Refused(kind, refusal), *self._answer_waiting(cause)]
        return [self._start_for_waiting()] if self.pace.has_room(len(pending)) else []

    def _start_for_waiting(self) -> Start:
        return Start(CheckpointKind.CHECKPOINT, requests=self._take_waiting())

    def refuse_waiting(self, failure: CheckpointFailure) -> list[AnswerCheckpoint]:
        """No checkpoint will begin for those who wait for one."""
        return self._answer_waiting(f"no checkpoint was triggered: {_CAUSE[failure]}")

    def _answer_waiting(self, cause: str) -> list[AnswerCheckpoint]:
        return [self._not_taken(request, cause) for request in self._take_waiting()]

    def _take_waiting(self) -> tuple[CheckpointRequest, ...]:
        """They are no longer remembered."""
        waiting, self._waiting = self._waiting, ()
        return waiting

    def _data_ended(self, pending: Pending, now_ms: float) -> Decisions:
        if not self.final.data_ended():
            return []
        return [*self.pace.suspend(), *self._try_final(pending, now_ms)]

    def _try_final(self, pending: Pending, now_ms: float) -> Decisions:
        """A pending one, or a stop with savepoint in its place, must be settled first; this is tried again then."""
        is_under_way = any(each.kind.is_final for each in pending)
        if not self.final.is_due or is_under_way:
            return []
        return self._decide(CheckpointKind.FINAL, pending, now_ms)

    def _savepoint_wanted(self, request: SavepointRequest, pending: Pending, now_ms: float) -> Decisions:
        stop = request.afterwards is Afterwards.STOP
        if stop and self.final.is_due:
            return self._final_savepoint_wanted(request, pending)
        return self._decide(CheckpointKind.STOP if stop else CheckpointKind.SAVEPOINT, pending, now_ms, request)

    def _final_savepoint_wanted(self, request: SavepointRequest, pending: Pending) -> Decisions:
        refusal = Refusal.COORDINATOR_SHUT_DOWN if self.are_closed else self.final.promise_refusal(pending)
        if refusal is None:
            self.final.promise(request)
            return []
        cause = f"the job cannot be drained into a savepoint: {self._why(refusal)}"
        return [Refused(CheckpointKind.FINAL, refusal), self._broken(request, cause)]

    def _decide_periodic(self, pending: Pending, now_ms: float) -> Decisions:
        if not self.final.is_ahead:
            return []
        return [*self.pace.schedule_next(), *self._decide(CheckpointKind.CHECKPOINT, pending, now_ms)]

    def _decide(
        self, kind: CheckpointKind, pending: Pending, now_ms: float, savepoint: SavepointRequest | None = None
    ) -> Decisions:
        timers: Timers = []
        refusal = self._ruled_out(kind, pending)
        if refusal is None and not kind.is_forced:
            refusal, timers = self.pace.refusal(len(pending), now_ms)
        if refusal is None and not self._tasks.are_ready:
            refusal = Refusal.TASKS_NOT_READY
        if refusal is None:
            start = Start(kind, savepoint) if kind is not CheckpointKind.CHECKPOINT else self._start_for_waiting()
            return [*timers, start]
        cause = f"no {kind.value} could be triggered: {self._why(refusal)}"
        return [*timers, Refused(kind, refusal), *self._no_checkpoint_for(kind, savepoint, cause)]

    def _why(self, refusal: Refusal) -> str:
        meaning = self._tasks.not_ready() if refusal is Refusal.TASKS_NOT_READY else _MEANING.get(refusal, "")
        return f"{refusal.value}: {meaning}" if meaning else refusal.value

    def _ruled_out(self, kind: CheckpointKind, pending: Pending) -> Refusal | None:
        """Why no checkpoint of this kind may start now, whatever pace and tasks say."""
        if self.are_closed:
            return Refusal.COORDINATOR_SHUT_DOWN
        ending = self.final.refusal(pending)
        if ending is not None:
            return ending
        if kind.is_savepoint and (self._is_stopping or self.final.promises):
            return Refusal.JOB_IS_STOPPING
        if any(each.savepoint is not None and each.savepoint.afterwards is Afterwards.CANCEL for each in pending):
            return Refusal.STOP_UNDER_WAY
        return None

    # -- what became of it

    def promised(self, pending: PendingCheckpoint) -> tuple[SavepointRequest, ...]:
        """The savepoints that it is to be."""
        if pending.savepoint is not None:
            return (pending.savepoint,)
        return self.final.promises if pending.kind is CheckpointKind.FINAL else ()

    def completed(
        self, pending: PendingCheckpoint, completed: CompletedCheckpoint, paths: Mapping[SavepointRequest, str]
    ) -> Decisions:
        """It is stored, as these savepoints."""
        if pending.kind is CheckpointKind.FINAL:
            self.final.take_promises()
        answers: Decisions = [
            AnswerSavepoint(request, TriggerSavepointSuccess(self._job_id, path)) for request, path in paths.items()
        ]
        answers += self.taken(pending, completed)
        if not pending.kind.is_final:
            return answers
        self.final.completed()
        return [*answers, *self.pace.suspend()]

    def taken(self, pending: PendingCheckpoint, completed: CompletedCheckpoint) -> list[AnswerCheckpoint]:
        """Who asked for this one has it now, or in its place a newer one that has completed before it."""
        answer = CheckpointTaken(self._job_id, completed.checkpoint_id, completed.metadata_path)
        return [AnswerCheckpoint(request, answer) for request in pending.requests]

    def given_up(self, pending: PendingCheckpoint, failure: CheckpointFailure, reason: str) -> Decisions:
        """`reason`: as the tasks get it; whoever waits for it gets its meaning too."""
        cause = f"{reason}: {_CAUSE[failure]}" if reason == failure.value and failure in _CAUSE else reason
        cause = f"the {pending.kind.value} was given up: {cause}"
        is_replaced = failure is CheckpointFailure.SUBSUMED
        broken = [self._not_taken(request, cause) for request in pending.requests if not is_replaced]
        return [*broken, *self._no_checkpoint_for(pending.kind, pending.savepoint, cause)]

    def restarting(self) -> Timers:
        """Attempts are about to be replaced: data has to end again, and the interval begins again."""
        self.final.restarting()
        return [*self.pace.suspend(), *self.pace.schedule_next()]

    def close(self) -> Timers:
        self.are_closed = True
        self.final.restarting()
        return self.pace.stop()

    def break_promises(self, cause: str) -> list[AnswerSavepoint]:
        """There will be no final checkpoint."""
        return [self._broken(request, cause) for request in self.final.take_promises()]

    def _no_checkpoint_for(self, kind: CheckpointKind, savepoint: SavepointRequest | None, cause: str) -> Decisions:
        """No checkpoint for whoever needs it: a savepoint's promise breaks, the final one is tried again."""
        decisions: Decisions = [] if savepoint is None else [self._broken(savepoint, cause)]
        if kind.is_final and self.final.is_due:
            decisions.append(Schedule(FINAL_RETRY_MS, RetryFinal()))
        return decisions

    def _not_taken(self, request: CheckpointRequest, cause: str) -> AnswerCheckpoint:
        return AnswerCheckpoint(request, CheckpointNotTaken(self._job_id, cause))

    def _broken(self, request: SavepointRequest, cause: str) -> AnswerSavepoint:
        return AnswerSavepoint(request, TriggerSavepointFailure(self._job_id, cause))
