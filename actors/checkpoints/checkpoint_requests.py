"""CheckpointRequests: who wants a checkpoint, whether it may start now, and who is told when there will be none.

Requests come from the clock (CheckpointPace), from people, and from the end of the data (FinalCheckpoint). One that is
refused is logged; whoever was promised a savepoint is answered, exactly once; the final checkpoint is tried again.
Belongs to the CheckpointCoordinator, which starts what is granted. Flink: CheckpointRequestDecider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...messages import CheckpointConfig, CheckpointId, JobId, TriggerSavepointFailure, TriggerSavepointSuccess
from .checkpoint_effects import AnswerSavepoint, CheckpointEffect, CheckpointFailure, Refusal, Refused, Schedule
from .checkpoint_events import PeriodicTick, RetryFinal, TriggerSavepointNow
from .checkpoint_pace import CheckpointPace
from .checkpoint_tasks import CheckpointTasks
from .final_checkpoint import FinalCheckpoint
from .pending_checkpoint import CheckpointKind, PendingCheckpoint

FINAL_RETRY_MS = 1000
"""How long after a final checkpoint could not start or did not complete the next one is tried."""

_MEANING = {
    Refusal.STOP_UNDER_WAY: "the job is being stopped with a savepoint; wait for that one",
    Refusal.JOB_IS_STOPPING: "its data is being ended, and only its final checkpoint can be a savepoint",
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


class CheckpointRequests:
    """One job's. `pending`: a view of what is under way; `start` makes a pending checkpoint of a kind, for a token."""

    def __init__(
        self,
        job_id: JobId,
        config: CheckpointConfig,
        tasks: CheckpointTasks,
        pending: Mapping[CheckpointId, PendingCheckpoint],
        start: Callable[[CheckpointKind, str], None],
        emit: Callable[[CheckpointEffect], None],
    ) -> None:
        self.are_closed = False
        """The coordinator was shut down: everything is refused."""
        self.is_stopping = False
        """Data is being ended before its time: no savepoint but the final one."""
        self.pace = CheckpointPace(config, emit)
        self.final = FinalCheckpoint()
        self._parting: set[str] = set()
        """Tokens of savepoints after which the job is cancelled."""
        self._job_id = job_id
        self._tasks = tasks
        self._pending = pending
        self._start = start
        self._emit = emit

    # -- what is wanted

    def wanted_now(self, now_ms: float, *, periodic: bool) -> None:
        """A person wants a checkpoint, or a clock that is not ours."""
        if periodic and not self.pace.is_on and not self.are_closed:
            self._emit(Refused(CheckpointKind.CHECKPOINT, Refusal.PERIODIC_SCHEDULER_OFF))
        else:
            self._trigger(CheckpointKind.CHECKPOINT, now_ms)

    def tick(self, tick: PeriodicTick, now_ms: float) -> None:
        if not self.pace.is_on:
            self._emit(Refused(CheckpointKind.CHECKPOINT, Refusal.PERIODIC_SCHEDULER_OFF))
        elif self.pace.take_tick(tick):
            self._trigger_periodic(now_ms)

    def resume_queued(self, now_ms: float) -> None:
        """A checkpoint is gone: the request that found no room goes now, not at the next interval."""
        if self.pace.take_queued():
            self._trigger_periodic(now_ms)

    def data_ended(self, now_ms: float) -> None:
        if self.final.data_ended():
            self.pace.suspend()
            self.try_final(now_ms)

    def try_final(self, now_ms: float) -> None:
        """A pending one, or a stop with savepoint in its place, must be settled first; this is tried again then."""
        is_under_way = any(pending.kind.is_final for pending in self._pending.values())
        if self.final.is_due and not is_under_way:
            self._trigger(CheckpointKind.FINAL, now_ms)

    def savepoint_wanted(self, wanted: TriggerSavepointNow, now_ms: float) -> None:
        if wanted.then_cancel:
            self._parting.add(wanted.token)
        if wanted.stop and self.final.is_due:
            self.final_savepoint_wanted(wanted.token)
        else:
            self._trigger(CheckpointKind.STOP if wanted.stop else CheckpointKind.SAVEPOINT, now_ms, wanted.token)

    def final_savepoint_wanted(self, token: str) -> None:
        pending = self._pending.values()
        refusal = Refusal.COORDINATOR_SHUT_DOWN if self.are_closed else self.final.promise_refusal(pending)
        if refusal is None:
            self.final.promise(token)
        else:
            self._emit(Refused(CheckpointKind.FINAL, refusal))
            self._break_promise(token, f"the job cannot be drained into a savepoint: {self._why(refusal)}")

    def _trigger_periodic(self, now_ms: float) -> None:
        if self.final.is_ahead:
            self.pace.schedule_next()
            self._trigger(CheckpointKind.CHECKPOINT, now_ms)

    def _trigger(self, kind: CheckpointKind, now_ms: float, token: str = "") -> None:
        refusal = self._refusal(kind, now_ms)
        if refusal is None:
            self._start(kind, token)
            return
        self._emit(Refused(kind, refusal))
        self._disappoint(kind, token, f"no {kind.value} could be triggered: {self._why(refusal)}")

    def _why(self, refusal: Refusal) -> str:
        meaning = self._tasks.not_ready() if refusal is Refusal.TASKS_NOT_READY else _MEANING.get(refusal, "")
        return f"{refusal.value}: {meaning}" if meaning else refusal.value

    def _refusal(self, kind: CheckpointKind, now_ms: float) -> Refusal | None:
        if self.are_closed:
            return Refusal.COORDINATOR_SHUT_DOWN
        ending = self.final.refusal(self._pending.values())
        if ending is not None:
            return ending
        if kind.is_savepoint and (self.is_stopping or self.final.promises):
            return Refusal.JOB_IS_STOPPING
        if any(each.token in self._parting for each in self._pending.values()):
            return Refusal.STOP_UNDER_WAY
        if not kind.is_forced:
            refusal = self.pace.refusal(len(self._pending), now_ms)
            if refusal is not None:
                return refusal
        return None if self._tasks.are_ready else Refusal.TASKS_NOT_READY

    # -- what became of it

    def promised(self, pending: PendingCheckpoint) -> tuple[str, ...]:
        """The tokens of those who are promised a savepoint of it."""
        if pending.kind.is_savepoint:
            return (pending.token,)
        return self.final.promises if pending.kind is CheckpointKind.FINAL else ()

    def completed(self, kind: CheckpointKind, paths: Mapping[str, str]) -> None:
        """It is stored, as these savepoints, by token."""
        if kind is CheckpointKind.FINAL:
            self.final.take_promises()
        for token, path in paths.items():
            self._emit(AnswerSavepoint(token, TriggerSavepointSuccess(self._job_id, path)))
        if kind.is_final:
            self.final.completed()
            self.pace.suspend()

    def given_up(self, pending: PendingCheckpoint, failure: CheckpointFailure, reason: str) -> None:
        """`reason`: what the tasks are told; whoever waits for a savepoint is told what it means."""
        cause = f"{reason}: {_CAUSE[failure]}" if reason == failure.value and failure in _CAUSE else reason
        self._disappoint(pending.kind, pending.token, f"the {pending.kind.value} was given up: {cause}")

    def restarting(self) -> None:
        """Attempts are about to be replaced: data has to end again, and the interval begins anew."""
        self.final.restarting()
        self.pace.suspend()
        self.pace.schedule_next()

    def runs_on(self) -> None:
        """A region takes data, even if the last checkpoint had been taken."""
        if self.final.runs_on():
            self.pace.schedule_next()

    def close(self) -> None:
        self.are_closed = True
        self.final.restarting()
        self.pace.stop()

    def break_promises(self, cause: str) -> None:
        """There will be no final checkpoint."""
        for token in self.final.take_promises():
            self._break_promise(token, cause)

    def _disappoint(self, kind: CheckpointKind, token: str, cause: str) -> None:
        """No checkpoint for whoever needs it: a savepoint's promise breaks, the final one is tried again."""
        if kind.is_savepoint:
            self._break_promise(token, cause)
        if kind.is_final and self.final.is_due:
            self._emit(Schedule(FINAL_RETRY_MS, RetryFinal()))

    def _break_promise(self, token: str, cause: str) -> None:
        self._parting.discard(token)
        self._emit(AnswerSavepoint(token, TriggerSavepointFailure(self._job_id, cause)))
