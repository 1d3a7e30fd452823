"""JobManager: the actor behind the JobMasters. It carries their effects out and hands them what comes back.

One per cluster. It routes messages to the JobMaster they are about, keeps timers, lets storage be written off its
thread, tells listeners, and beats its heart to the TaskManagers. A message that directs state must carry the current
leader session; another one is dropped and counted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pykka

from ..messages import (
    AcknowledgeCheckpoint,
    AcknowledgeRegistration,
    AskOperator,
    AskTask,
    CancelJob,
    DeclineCheckpoint,
    ExecutionState,
    FirstBatchProcessed,
    Heartbeat,
    JobDetails,
    JobId,
    JobSubmitted,
    LeaderSessionId,
    LeaderSessionMessage,
    ListenToJob,
    NotifyEndOfData,
    RefuseRegistration,
    RegisterTaskManager,
    ReleaseTaskManager,
    RequestJobStatus,
    StopJob,
    SubmitJob,
    SubtaskIndex,
    TaskManagerExited,
    TaskManagerFailing,
    TaskManagerId,
    TriggerSavepoint,
    TriggerSavepointSuccess,
    UpdateTaskExecutionState,
)
from ..state import CheckpointStorage, key_group, operator_index_of
from ..state.checkpoint_ids import StandaloneCheckpointIdCounter
from ..state.checkpoint_metadata import encode_metadata
from ..state.completed_checkpoints import StandaloneCompletedCheckpointStore
from .actor import Actor, Terminated
from .ask_errors import NotRunning
from .checkpoint_effects import (
    AnswerSavepoint,
    CancelTimer,
    Discard,
    MetadataFailed,
    MetadataStored,
    ScheduleTimer,
    StoreMetadata,
    TriggerSavepointNow,
)
from .context import Ref, Timer
from .errors import ActorError, UnknownJob
from .job_effects import (
    JobEffect,
    JobEnded,
    KillTaskManager,
    Schedule,
    StartTaskManager,
    TaskManagerLost,
    Tell,
    Tidings,
)
from .job_graph import validate
from .job_master import JobMaster, JobMasterSettings
from .launcher import Launcher
from .restart_strategy import make_restart_strategy
from .tidying import delete_discarded

log = logging.getLogger(__name__)

TIDY_RETRY_MS = 1_000
TIDY_TRIES = 8
"""How often, and after how long at first, files that cannot be deleted are tried again."""

ENDED_JOBS_KEPT = 100
"""So many jobs can still be asked about after their end."""


@dataclass(frozen=True, slots=True)
class JobManagerSettings:
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int
    slot_timeout_ms: int
    cancel_timeout_ms: int


@dataclass(frozen=True, slots=True)
class _ForJob:
    """Something that came back for one job: a timer's event or an answer of storage."""

    job_id: JobId
    event: Any


@dataclass(frozen=True, slots=True)
class _Beat:
    pass


@dataclass(frozen=True, slots=True)
class _Tidy:
    """Files of a job are to be deleted; `work` may be done again, and has been tried so many times."""

    job_id: JobId
    work: Callable[[], None]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class _Tidied:
    """The outcome of that."""

    tidy: _Tidy
    error: BaseException | None


@dataclass(slots=True)
class _Worker:
    ref: Ref
    index: int
    heard_ms: float


@dataclass(slots=True)
class _Job:
    master: JobMaster
    storage: CheckpointStorage
    workers: dict[TaskManagerId, _Worker] = field(default_factory=dict)
    listeners: list[Ref] = field(default_factory=list)
    timers: dict[Any, Timer] = field(default_factory=dict)
    savepoints: dict[str, pykka.Future[Any]] = field(default_factory=dict)
    released: set[TaskManagerId] = field(default_factory=set)
    has_savepoints: bool = False
    """Its files may be needed after its end."""


class JobManager(Actor):
    """One cluster's JobManager. `open_storage` opens a job's checkpoint directory."""

    def __init__(
        self, settings: JobManagerSettings, launcher: Launcher, open_storage: Callable[[str], CheckpointStorage]
    ) -> None:
        self._settings = settings
        self._launcher = launcher
        self._open_storage = open_storage
        self._jobs: dict[JobId, _Job] = {}
        self._owner: dict[TaskManagerId, JobId] = {}
        self._ended_jobs: deque[JobId] = deque()
        self._beats = 0
        self.stale_messages = 0
        """How many messages of another leader session were dropped."""

    def on_start(self) -> None:
        self._session = LeaderSessionId(self.context.new_id("session"))
        self.context.schedule(self._settings.heartbeat_interval_ms, _Beat())

    def on_receive(self, message: Any) -> Any:
        match message:
            case LeaderSessionMessage(session, inner):
                self._from_task_manager(session, inner)
            case RegisterTaskManager():
                self._register(message)
            case TaskManagerExited(job_id, index, reason):
                self._exited(job_id, index, reason)
            case Terminated(address=address, reason=reason):
                self._terminated(address, reason)
            case _Beat():
                self._beat()
            case _ForJob(job_id, event):
                self._on_job(job_id, event)
            case _Tidy():
                self._tidy(message)
            case _Tidied(tidy, error):
                self._tidied(tidy, error)
            case _:
                return self._answer(message)
        return None

    # -- clients

    def _answer(self, message: Any) -> Any:
        """What is wrong with a client's wish is told to it, if it waits for an answer, and harms nobody else."""
        try:
            return self._from_client(message)
        except (ActorError, ValueError) as error:
            log.info("refused %s: %s", type(message).__name__, error)
            refusal = self.context.promise()
            refusal.set_exception()
            return refusal

    def _from_client(self, message: Any) -> Any:
        match message:
            case SubmitJob():
                return self._submit(message)
            case CancelJob(job_id):
                job = self._job(job_id)
                self._carry_out(job_id, job.master.cancel(self._now(), self._wall()))
                return self._details(job_id)
            case StopJob(job_id):
                job = self._job(job_id)
                self._carry_out(job_id, job.master.stop(self._now(), self._wall()))
                return self._details(job_id)
            case RequestJobStatus(job_id):
                return self._details(job_id)
            case ListenToJob(job_id, listener):
                self._job(job_id).listeners.append(self.context.actor_of(listener))
                return self._details(job_id)
            case AskOperator():
                return self._ask(message)
            case TriggerSavepoint(job_id):
                return self._savepoint(job_id)
            case _:
                return super().on_receive(message)

    def _submit(self, message: SubmitJob) -> JobSubmitted:
        graph = message.graph
        if graph.job_id in self._jobs:
            return JobSubmitted(graph.job_id)
        validate(graph)
        master = JobMaster(
            graph,
            JobMasterSettings(
                message.task_managers,
                message.slots_per_task_manager,
                self._settings.slot_timeout_ms,
                self._settings.cancel_timeout_ms,
            ),
            make_restart_strategy(graph.restart, self.context.random),
            StandaloneCheckpointIdCounter(),
            StandaloneCompletedCheckpointStore(graph.checkpoints.retained),
            self.context.new_id,
        )
        self._jobs[graph.job_id] = _Job(master, self._open_storage(graph.checkpoints.directory))
        self._carry_out(graph.job_id, master.start(self._now(), self._wall()))
        return JobSubmitted(graph.job_id)

    def _details(self, job_id: JobId) -> JobDetails:
        return self._job(job_id).master.details()

    def _ask(self, question: AskOperator) -> Any:
        job = self._job(question.job_id)

        def subtask_of(parallelism: int, max_parallelism: int) -> SubtaskIndex:
            if not question.has_key:
                return SubtaskIndex(0)
            group = key_group(question.key, max_parallelism)
            return SubtaskIndex(operator_index_of(group, max_parallelism, parallelism))

        execution = job.master.holder_of(question.operator, subtask_of)
        worker = job.workers.get(execution.slot.task_manager_id) if execution and execution.slot else None
        if execution is None or worker is None or execution.state is not ExecutionState.RUNNING:
            task = "it has no task" if execution is None else f"its task is {execution.state.value}"
            raise NotRunning(question.operator, f"{task}, the job is {job.master.status.value}")
        asked = LeaderSessionMessage(self._session, AskTask(execution.attempt_id, question))
        return worker.ref.ask(asked, timeout_ms=self._settings.heartbeat_timeout_ms)

    def _savepoint(self, job_id: JobId) -> pykka.Future[Any]:
        token = self.context.new_id("savepoint")
        promise = self.context.promise()
        self._job(job_id).savepoints[token] = promise
        self._on_job(job_id, TriggerSavepointNow(token))
        return promise

    def _job(self, job_id: JobId) -> _Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise UnknownJob(f"no job {job_id!r} here; known: {', '.join(self._jobs) or 'none'}")
        return job

    # -- TaskManagers

    def _register(self, message: RegisterTaskManager) -> None:
        try:
            ref = self.context.actor_of(message.control_address)
        except ValueError as error:
            log.warning("%s cannot be registered: %s", message.task_manager_id, error)
            return
        job = self._jobs.get(message.job_id)
        if job is None or job.master.status.is_terminal or message.task_manager_id in job.released:
            why = "unknown job" if job is None else f"the job is {job.master.status.value} or released it"
            ref.tell(RefuseRegistration(message.task_manager_id, why))
            return
        if message.task_manager_id not in job.workers:
            job.workers[message.task_manager_id] = _Worker(ref, message.index, self._now())
            self._owner[message.task_manager_id] = message.job_id
            self.context.watch(ref)
        ref.tell(
            AcknowledgeRegistration(
                self._session,
                message.task_manager_id,
                self._settings.heartbeat_interval_ms,
                self._settings.heartbeat_timeout_ms,
            )
        )
        self._on_job(message.job_id, message)

    def _from_task_manager(self, session: LeaderSessionId, message: Any) -> None:
        if session != self._session:
            self.stale_messages += 1
            log.warning("dropped %s of leader session %s", type(message).__name__, session)
            return
        match message:
            case Heartbeat(sender=sender):
                job_id = self._owner.get(TaskManagerId(sender))
                if job_id is not None:
                    self._jobs[job_id].workers[TaskManagerId(sender)].heard_ms = self._now()
                    self._on_job(job_id, message)
            case TaskManagerFailing(task_manager_id, reason):
                self._lose(task_manager_id, reason)
            case (
                UpdateTaskExecutionState()
                | AcknowledgeCheckpoint()
                | DeclineCheckpoint()
                | NotifyEndOfData()
                | FirstBatchProcessed()
            ):
                self._on_job(message.job_id, message)
            case _:
                log.warning("dropped %s, which no TaskManager sends", type(message).__name__)

    def _exited(self, job_id: JobId, index: int, reason: str) -> None:
        job = self._jobs.get(job_id)
        if job is None:
            return
        lost = [worker_id for worker_id, worker in job.workers.items() if worker.index == index]
        for task_manager_id in lost:
            self._lose(task_manager_id, reason, process_ended=True)
        self._on_job(job_id, TaskManagerExited(job_id, index, reason))
        self._tidy_up_after(job_id, job)

    def _terminated(self, address: str, reason: str) -> None:
        for job in list(self._jobs.values()):
            for task_manager_id, worker in list(job.workers.items()):
                if worker.ref.address == address:
                    self._lose(task_manager_id, reason)

    def _lose(self, task_manager_id: TaskManagerId, reason: str, *, process_ended: bool = False) -> None:
        job_id = self._owner.pop(task_manager_id, None)
        if job_id is not None:
            del self._jobs[job_id].workers[task_manager_id]
            self._on_job(job_id, TaskManagerLost(task_manager_id, reason, process_ended))

    def _beat(self) -> None:
        self._beats += 1
        now_ms, beat = self._now(), Heartbeat("job-manager", self._beats)
        for job in list(self._jobs.values()):
            for task_manager_id, worker in list(job.workers.items()):
                silent_ms = now_ms - worker.heard_ms
                if silent_ms > self._settings.heartbeat_timeout_ms:
                    self._lose(task_manager_id, f"no heartbeat for {silent_ms:.0f} ms")
                else:
                    worker.ref.tell(beat)
        self.context.schedule(self._settings.heartbeat_interval_ms, _Beat())

    # -- effects

    def _on_job(self, job_id: JobId, event: Any) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            self._carry_out(job_id, job.master.on(event, self._now(), self._wall()))

    def _carry_out(self, job_id: JobId, effects: list[JobEffect]) -> None:
        job = self._jobs[job_id]
        for effect in effects:
            match effect:
                case Tell(task_manager_id, message):
                    if (worker := job.workers.get(task_manager_id)) is not None:
                        worker.ref.tell(LeaderSessionMessage(self._session, message))
                case Tidings(message):
                    for listener in job.listeners:
                        listener.tell(message)
                case StartTaskManager(index):
                    self._launcher.start(job_id, index)
                case KillTaskManager(index):
                    self._launcher.kill(job_id, index)
                case Schedule(delay_ms, event) | ScheduleTimer(delay_ms, event):
                    job.timers[event] = self.context.schedule(delay_ms, _ForJob(job_id, event))
                case CancelTimer(event):
                    if (timer := job.timers.pop(event, None)) is not None:
                        timer.cancel()
                case StoreMetadata():
                    self._store_metadata(job_id, job, effect)
                case Discard():
                    self._discard(job_id, job, effect)
                case AnswerSavepoint(token, answer):
                    job.has_savepoints |= isinstance(answer, TriggerSavepointSuccess)
                    job.savepoints.pop(token).set(answer)
                case JobEnded():
                    self._ended(job_id, job)

    def _store_metadata(self, job_id: JobId, job: _Job, effect: StoreMetadata) -> None:
        draft = effect.draft
        path = f"{job_id}/chk-{draft.checkpoint_id}/_metadata"

        def store() -> str:
            job.storage.write_sealed(path, encode_metadata(draft))
            return path

        self.context.pipe_to_self(
            self.context.run_blocking(store),
            lambda stored: _ForJob(job_id, MetadataStored(draft.checkpoint_id, stored)),
            lambda error: _ForJob(
                job_id, MetadataFailed(draft.checkpoint_id, f"{type(error).__name__}: {error}", path)
            ),
        )

    def _discard(self, job_id: JobId, job: _Job, effect: Discard) -> None:
        self._tidy(_Tidy(job_id, lambda: delete_discarded(job.storage, effect)))

    def _tidy(self, tidy: _Tidy) -> None:
        self.context.pipe_to_self(
            self.context.run_blocking(tidy.work), lambda _: _Tidied(tidy, None), lambda error: _Tidied(tidy, error)
        )

    def _tidied(self, tidy: _Tidy, error: BaseException | None) -> None:
        """Storage that failed is tried again, and less and less often: nobody else would delete these files."""
        if error is None:
            return
        if tidy.tries < TIDY_TRIES:
            self.context.schedule(TIDY_RETRY_MS * 2**tidy.tries, replace(tidy, tries=tidy.tries + 1))
        else:
            log.warning("job %s: gave up deleting what it does not need any more: %s", tidy.job_id, error)

    def _tidy_up_after(self, job_id: JobId, job: _Job) -> None:
        """Nobody restores from a job that has ended, unless from a savepoint: what tasks that were killed, or are
        slow to end, have written for checkpoints that never were goes too."""
        if job.master.status.is_terminal and not job.has_savepoints:
            self._tidy(_Tidy(job_id, lambda: job.storage.delete_job(job_id)))

    def _ended(self, job_id: JobId, job: _Job) -> None:
        for task_manager_id, worker in job.workers.items():
            reason = f"the job is {job.master.status.value}"
            worker.ref.tell(LeaderSessionMessage(self._session, ReleaseTaskManager(task_manager_id, reason)))
            job.released.add(task_manager_id)
            self._owner.pop(task_manager_id, None)
        job.workers.clear()
        for timer in job.timers.values():
            timer.cancel()
        self._launcher.forget(job_id)
        self._tidy_up_after(job_id, job)
        self._ended_jobs.append(job_id)
        if len(self._ended_jobs) > ENDED_JOBS_KEPT:
            del self._jobs[self._ended_jobs.popleft()]

    def _now(self) -> float:
        return self.context.clock.now_ms()

    def _wall(self) -> int:
        return self.context.clock.wall_ms()
