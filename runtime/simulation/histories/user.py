"""User: does what a scenario's client actions say, from outside of the cluster, as whoever runs the jobs would.

Answers come when they come: only a restart waits, for the end of the job that it takes the place of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from ....actors.ask_errors import ActorDead
from ....actors.errors import StateDoesNotFit
from ....messages import (
    CheckpointNotTaken,
    CheckpointTaken,
    DisposeSavepointFailure,
    JobDetails,
    JobId,
    JobStatus,
    Message,
    TriggerSavepointFailure,
)
from ....messages import savepoints as wishes
from ....state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...clusters.job_errors import JobLost
from ...clusters.job_handle import JobHandle
from ...system import ActorFuture
from ..world.cluster import SimulatedCluster
from ..world.faults import JOB_MANAGER
from .actions import (
    CancelWithSavepoint,
    ClientAction,
    DisposeSavepoint,
    RestartFromCheckpoint,
    RestartFromDrained,
    RestartFromSavepoint,
    StopWithSavepoint,
    TakeCheckpoint,
    TakeSavepoint,
)
from .lineage import Lineage
from .savepoints import Request, TakenSavepoints

AGAIN_MS = 2_000.0
"""How long the user waits before it tries again what was refused."""

Submit = Callable[[int, str], JobHandle]
"""Starts the history's job in this parallelism, from the savepoint at a path. Raises what it is refused with."""


class User:
    """`parallelism`: of the first job. `patience_ms`: how long it waits for a job's end; `quiet_ms`: from when on
    nothing is wrong.

    `done`: what was done, by kind.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        lineage: Lineage,
        savepoints: TakenSavepoints,
        submit: Submit,
        parallelism: int,
        patience_ms: float,
        quiet_ms: float,
    ) -> None:
        self._cluster = cluster
        self._lineage = lineage
        self._savepoints = savepoints
        self._submit = submit
        self._parallelism = parallelism
        self._parallelisms: dict[JobId, int] = {}
        self._left_by: dict[JobId, tuple[str, JobId]] = {}
        """Of a job that was started from what another one had left: the checkpoint, and that job."""
        self._patience_ms = patience_ms
        self._quiet_ms = quiet_ms
        self._report = cluster.probes.report
        self._cancelled: set[JobId] = set()
        self._restored_from: set[str] = set()
        self.done: Counter[str] = Counter()
        self.goes_on_from_drained = False
        """Whether a job was started from a savepoint behind which nothing comes."""

    def do(self, action: ClientAction) -> None:
        """Let the world go on until its time, and do it; nothing when there is no JobManager any more."""
        cluster = self._cluster
        now_ms = cluster.now_ms
        cluster.world.run_until(
            lambda: cluster.now_ms >= action.at_ms or self.is_alone, now_ms + max(0.0, action.at_ms - now_ms)
        )
        if not self.is_alone and self._is_done(action):
            self.done[type(action).__name__] += 1

    def _is_done(self, action: ClientAction) -> bool:
        """Do it; whether there was something to do it to."""
        match action:
            case TakeSavepoint():
                return self._ask_for_savepoint(action, wishes.TriggerSavepoint(self._job_id))
            case TakeCheckpoint(full=full):
                return self._ask_for_checkpoint(action, full=full)
            case StopWithSavepoint(drain=drain):
                return self._ask_for_savepoint(action, wishes.StopWithSavepoint(self._job_id, drain=drain))
            case CancelWithSavepoint():
                return self._ask_for_savepoint(action, wishes.CancelWithSavepoint(self._job_id))
            case DisposeSavepoint(which=which):
                paths = tuple(self._savepoints.living)
                return bool(paths) and self._ask_to_dispose(action, paths[which % len(paths)])
            case RestartFromSavepoint():
                return self._restart(action)
            case RestartFromCheckpoint():
                return self._restart_from_what_is_left(action)
            case RestartFromDrained():
                return self._restart_from_drained(action)
            case _:
                raise AssertionError(action)

    def dispose_of_all(self) -> None:
        """Of whatever is there still, at the end of a history; and wait until it is done."""
        for path in tuple(self._savepoints.living):
            if not self.is_alone:
                self._ask_to_dispose(DisposeSavepoint(self._cluster.now_ms), path)
        self._wait(lambda: all(request.answered_ms is not None for request in self._savepoints.requests))

    def has_ended(self, job_id: JobId) -> bool:
        """Whether it is cancelled because of a request by the user that had an effect."""
        return job_id in self._cancelled or self._savepoints.ended(job_id) is not None

    @property
    def is_alone(self) -> bool:
        """There is no JobManager any more."""
        job_manager = self._cluster.process(JOB_MANAGER)
        return job_manager is None or not job_manager.is_alive

    # ---- inside

    @property
    def _job_id(self) -> JobId:
        return self._lineage.latest.job_id

    def _wait(self, is_over: Callable[[], bool]) -> bool:
        limit_ms = self._cluster.now_ms + self._patience_ms
        return self._cluster.world.run_until(lambda: is_over() or self.is_alone, limit_ms)

    def _ask_for_savepoint(self, action: ClientAction, message: Message) -> bool:
        return self._ask(self._savepoints.asked(action, self._job_id, self._cluster.now_ms), message)

    def _ask_for_checkpoint(self, action: ClientAction, *, full: bool) -> bool:
        request = self._savepoints.asked(action, self._job_id, self._cluster.now_ms)
        request.newest = self._cluster.stored[self._job_id].newest_completed
        return self._ask(request, wishes.RequestCheckpoint(self._job_id, full))

    def _ask_to_dispose(self, action: DisposeSavepoint, path: str) -> bool:
        request = self._savepoints.asked(action, self._savepoints.request_for(path).job_id, self._cluster.now_ms, path)
        return self._ask(request, wishes.DisposeSavepoint(path))

    def _ask(self, request: Request, message: Message) -> bool:
        self._tell(request.action, request.path)
        answer = cast("ActorFuture[Any]", self._cluster.job_manager.ask(message, timeout_ms=math.inf))
        answer.add_done_callback(lambda done: self._answered(request, done))
        return True

    def _answered(self, request: Request, answer: Any) -> None:
        """A refusal may come as an answer, or as what the ask fails with."""
        now_ms, savepoints = self._cluster.now_ms, self._savepoints
        try:
            found = answer.get()
        except ActorDead:
            request.is_lost = True
            savepoints.failed(request, "the JobManager has died", now_ms)
            return
        except Exception as error:  # noqa: BLE001  (any refusal)
            found = TriggerSavepointFailure(request.job_id, f"{type(error).__name__}: {error}")
        if isinstance(found, CheckpointTaken):
            savepoints.took(request, found.checkpoint_id, now_ms)
            self._cluster.trace.add("the user", "answered", request.action, found.path)
            return
        if isinstance(found, TriggerSavepointFailure | DisposeSavepointFailure | CheckpointNotTaken):
            savepoints.failed(request, found.cause, now_ms)
            self._cluster.trace.add("the user", "refused", request.action, found.cause)
            return
        savepoint = savepoints.living.get(found.savepoint_path)
        self._cluster.probes.look(savepoints.succeeded, request, found.savepoint_path, now_ms)
        if savepoint is not None and savepoint.path not in self._restored_from:
            stored = self._cluster.stored[request.job_id]
            self._cluster.probes.look(stored.disposed, savepoint.pointer.checkpoint_id)
        self._cluster.trace.add("the user", "answered", request.action, found.savepoint_path)

    def _tell(self, action: ClientAction, what: str) -> None:
        self._cluster.trace.add("the user", "asks", action, what)

    # ---- restarting

    def _restart(self, action: RestartFromSavepoint) -> bool:
        self._wait(lambda: not self._savepoints.open_requests(self._job_id))
        paths = self._savepoints.to_stay()
        if not paths or self.is_alone:
            return False
        ended = self._savepoints.ended(self._job_id)
        path = ended.path if ended is not None and ended.path in paths else paths[-1]
        origin = self._savepoints.request_for(path)
        savepoint = self._savepoints.living[path]
        if savepoint is None or not self._lineage.has(origin.job_id) or self._savepoints.may_be_drained(origin):
            return False
        self._end_the_latest()
        self._tell(action, path)
        self._restored_from.add(path)
        others = (self._parallelism_of(origin.job_id),) if _has_ended_in_part(savepoint.checkpoint) else ()
        if (job := self._submitted(action, path, action.parallelism, *others)) is not None:
            self._lineage.begin(job, origin.job_id, None if origin.ends_the_job else savepoint.pointer.checkpoint_id)
        return True

    def _restart_from_drained(self, action: RestartFromDrained) -> bool:
        self._wait(lambda: not self._savepoints.open_requests(self._job_id))
        ended = self._savepoints.ended(self._job_id)
        if ended is None or not ended.is_drained or ended.path not in self._savepoints.to_stay() or self.is_alone:
            return False
        self._wait(lambda: self._lineage.latest.status.is_terminal)
        self._tell(action, ended.path)
        self._restored_from.add(ended.path)
        if (job := self._submitted(action, ended.path, action.parallelism)) is not None:
            self._lineage.begin(job, ended.job_id)
            self.goes_on_from_drained = True
        return True

    def _restart_from_what_is_left(self, action: RestartFromCheckpoint) -> bool:
        """In the same parallelism: a checkpoint may hold what was in flight, which fits no other."""
        self._wait(lambda: not self._savepoints.open_requests(self._job_id))
        job = self._lineage.latest
        leaves = job._graph.checkpoints.retention.keeps(JobStatus.CANCELED)
        is_drained = any(each.is_drained and each.job_id == job.job_id for each in self._savepoints.requests)
        if job.status.is_terminal or is_drained or not leaves or self._savepoints.may_be_unreadable or self.is_alone:
            return False
        came_from, details = self._left_by.get(job.job_id), self._details(job)
        if details is None or (came_from is None and not details.completed_checkpoints):
            return False
        self._end_the_latest()
        details = self._details(job)
        if details is None or details.status is not JobStatus.CANCELED:
            return False
        left = details.retained_checkpoint_path
        path, origin = (left, job.job_id) if left or came_from is None else came_from
        self._tell(action, path)
        if (successor := self._submitted(action, path, self._parallelism_of(job.job_id))) is not None:
            self._left_by[successor.job_id] = (path, origin)
            self._lineage.begin(successor, origin)
        return True

    def _details(self, job: JobHandle) -> JobDetails | None:
        """None when there is no JobManager any more that could tell."""
        try:
            details = None if self.is_alone else job.details()
        except JobLost:
            return None
        return None if self.is_alone else details

    def _end_the_latest(self) -> None:
        job = self._lineage.latest
        if self._savepoints.ended(job.job_id) is None and not job.status.is_terminal and not self.is_alone:
            self._cluster.trace.add("the user", "cancels", job.job_id)
            self._cancelled.add(job.job_id)
            job.cancel()
        if not self._wait(lambda: job.status.is_terminal):
            self._report("liveness", f"{job.job_id} was to end with a savepoint and is {job.status.value}")

    def _parallelism_of(self, job_id: JobId) -> int:
        return self._parallelisms.get(job_id, self._parallelism)

    def _submitted(self, action: ClientAction, path: str, parallelism: int, *others: int) -> JobHandle | None:
        """While the storage is in trouble a savepoint may be unreadable for a while: the user tries again. It tries
        `others` where the state does not fit this parallelism.
        """
        cluster = self._cluster
        while not self.is_alone:
            try:
                job = self._submit(parallelism, path)
                self._parallelisms[job.job_id] = parallelism
                return job
            except Exception as error:  # noqa: BLE001  (whatever is wrong with the savepoint)
                cluster.trace.add("the user", "refused", action, f"{type(error).__name__}: {error}")
                if others and isinstance(error, StateDoesNotFit):
                    parallelism, others = others[0], others[1:]
                    continue
                if cluster.now_ms > self._quiet_ms:
                    self._refused(path, error)
                    return None
            cluster.run_for(AGAIN_MS)
        return None

    def _refused(self, path: str, error: Exception) -> None:
        if not self._savepoints.may_be_unreadable:
            self._report("restore", f"{path} cannot be restored from: {type(error).__name__}: {error}")


def _has_ended_in_part(checkpoint: CompletedCheckpoint) -> bool:
    """Whether data had ended in some subtasks of a vertex and not in all: its state may fit no other parallelism."""
    return any(
        0 < sum(state.data_ended for state in vertex.subtasks.values()) < vertex.parallelism
        for vertex in checkpoint.vertices.values()
    )
