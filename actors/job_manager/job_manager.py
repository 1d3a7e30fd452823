"""JobManager: the actor behind the JobMasters. It carries their effects out and hands them what comes back.

One per cluster. It routes messages to the JobMaster they are about, keeps timers, lets storage be written off its
thread, tells listeners, and beats its heart to the TaskManagers. A message that directs state must carry the current
leader session; another one is dropped and counted.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...messages import (
    AcknowledgeRegistration,
    AcknowledgeTogether,
    AskOperator,
    CancelJob,
    CancelWithSavepoint,
    DisposeSavepoint,
    DisposeSavepointFailure,
    Heartbeat,
    JobDetails,
    JobId,
    JobList,
    JobStatus,
    JobSubmitted,
    LeaderSessionId,
    LeaderSessionMessage,
    ListenToJob,
    ListJobs,
    LogRecords,
    MalformedMessage,
    MessageError,
    OutletReport,
    PrintedText,
    ReadOutlet,
    RefuseRegistration,
    RegisterTaskManager,
    RequestCheckpoint,
    RequestCheckpointStatistics,
    RequestJobStatus,
    RequestJobView,
    RequestKeyGroups,
    RequestWatermarks,
    RestartJob,
    SendToInlet,
    StackTraceSample,
    StopJob,
    StopWithSavepoint,
    SubmitJob,
    TaskManagerAwaited,
    TaskManagerExited,
    TaskManagerFailing,
    TaskManagerId,
    TaskReport,
    TriggerSavepoint,
)
from ...state.checkpoints.high_availability import HighAvailability
from ...state.checkpoints.job_runs import Claimant
from ...state.checkpoints.savepoints import Savepoints
from ...state.errors import StateError
from ...state.job_history import JobHistory
from ..actor import Actor, SupervisorStrategy, Terminated
from ..ask_errors import NotRunning
from ..context import Ref
from ..errors import ActorError, UnknownJob
from ..job_graph import validate
from ..jobs.job_master import JobMaster, JobMasterSettings
from ..jobs.restart_strategy import make_restart_strategy
from ..restore.job_submissions import JobKept, JobSubmissions, SubmissionRead
from ..restore.restore_check import with_carried_states
from ..stacks import NO_STACKS, Stacks
from .cluster_metrics import FigureQuestion, answer_by_figures
from .job_files import JobFiles, Tidied, Tidy
from .job_lease import JobLease
from .job_manager_settings import JobManagerSettings
from .job_names import named, namesakes
from .job_pointers import JobPointers
from .job_programs import JobPrograms, NoPrograms
from .job_questions import InletAnswered
from .job_restarts import JobRestarts, RestartEvent
from .launcher import Launcher
from .managed_job import JobServices, ManagedJob, TimerDue
from .owned_outputs import check_outputs, relatives
from .savepoint_coordinator import SavepointCoordinator
from .savepoint_orders import SavepointOrder, SavepointOrders
from .storage_answers import Deposed, ForJob
from .takeovers import AdoptionOverdue, LeaderPublished, Takeovers

log = logging.getLogger(__name__)

ENDED_JOBS_KEPT = 100
"""The number of ended jobs that can still be asked about."""


@dataclass(frozen=True, slots=True)
class _Beat:
    pass


class JobManager(Actor):
    """One cluster's JobManager."""

    supervisor_strategy = SupervisorStrategy.RESTART
    """Of the SavepointCoordinator: its promises break, and it goes on."""

    def __init__(
        self,
        settings: JobManagerSettings,
        launcher: Launcher,
        savepoints: Savepoints,
        high_availability: HighAvailability,
        claimant: Claimant,
        output: Callable[[LogRecords | PrintedText], None] = lambda _: None,
        history: JobHistory | None = None,
        stacks: Stacks = NO_STACKS,
        programs: JobPrograms | None = None,
    ) -> None:
        """It leads from its start to its stop, in the session of `high_availability`. `output` takes what
        TaskManagers log and print; it must not block. `history` keeps jobs that have ended. `stacks`: of its
        process. `programs`: who has the code of jobs, to start one again.
        """
        self._settings = settings
        self._output = output
        self._history = history
        self._stacks = stacks
        self._programs = programs or NoPrograms()
        self._launcher = launcher
        self._savepoints = savepoints
        self._high_availability = high_availability
        self._claimant = claimant
        self._jobs: dict[JobId, ManagedJob] = {}
        self._owner: dict[TaskManagerId, JobId] = {}
        self._ended_jobs: deque[JobId] = deque()
        self._beats = 0
        self.stale_messages = 0
        """How many messages of another leader session were dropped."""

    def on_start(self) -> None:
        coordinator = SavepointCoordinator(self._savepoints, self.context.self_ref)
        self._submissions = JobSubmissions(self.context, self._savepoints, self._high_availability, self._claimant)
        self._services = JobServices(
            self.context,
            self._high_availability.session,
            self._launcher,
            JobFiles(self.context, self._savepoints),
            self.context.spawn(coordinator, name="savepoint-coordinator"),
            self._history,
            self._ended,
            lambda graph: named(graph, self._jobs.values()),
        )
        self._savepoint_orders = SavepointOrders(
            self._jobs, self._savepoints, self._services.files, self._services.savepoint_coordinator
        )
        self._restarts = JobRestarts(
            self.context,
            self._programs,
            self._savepoints,
            self._jobs,
            partial(self._submissions.submit, start=self._start),
            self._services.files.on,
        )
        timeout_ms = self._settings.adoption_timeout_ms
        self._takeovers = Takeovers(self.context, timeout_ms, self._admit, self._refuse, self._launcher.abandon)
        self.context.schedule(self._settings.heartbeat_interval_ms, _Beat())

    def on_stop(self) -> None:
        for job in self._jobs.values():
            job.kept_checkpoint.seen()
        self._savepoints.close()
        self._high_availability.close()

    def on_receive(self, message: Any) -> Any:
        match message:
            case LeaderSessionMessage(session, inner):
                self._from_task_manager(session, inner)
            case RegisterTaskManager():
                self._register(message)
            case TaskManagerExited():
                self._exited(message)
            case LeaderPublished():
                self._takeovers.can_be_found()
            case AdoptionOverdue():
                self._takeovers.overdue(message)
            case TaskManagerAwaited(job_id=job_id):
                self._on_job(job_id, message)
            case Terminated(address=address, reason=reason):
                self._terminated(address, reason)
            case _Beat():
                self._beat()
            case InletAnswered():
                message.questions.answered(message)
            case ForJob(_, Deposed(error)):
                log.warning("this JobManager leads no more, and stops: %s", error)
                self.context.stop(self.context.self_ref)
            case ForJob(job_id, event):
                self._on_job(job_id, event)
            case TimerDue(job_id, event):
                if (job := self._jobs.get(job_id)) is not None:
                    job.timer_due(event)
            case SubmissionRead():
                if not self._submissions.settle(message, self._start):
                    self._launcher.forget(message.wanted.graph.job_id)
            case _ if isinstance(message, RestartEvent):
                self._restarts.on(message)
            case Tidy() | Tidied():
                self._services.files.on(message)
            case _ if isinstance(message, SavepointOrder):
                self._savepoint_orders.on(message)
            case _:
                return self._answer(message)
        return None

    # -- clients

    def _answer(self, message: Any) -> Any:
        """A client whose request is wrong gets the error, if it waits for an answer; no one else is affected."""
        try:
            return self._from_client(message)
        except (ActorError, MessageError, StateError, ValueError) as error:
            is_put_again = isinstance(message, SendToInlet) and isinstance(error, NotRunning)
            log.log(logging.DEBUG if is_put_again else logging.INFO, "refused %s: %s", type(message).__name__, error)
            refusal = self.context.promise()
            refusal.set_exception()
            return refusal

    def _from_client(self, message: Any) -> Any:
        match message:
            case SubmitJob():
                return self._submit(message)
            case CancelJob(job_id):
                self._job(job_id).cancel()
                return self._details(job_id)
            case StopJob(job_id):
                self._job(job_id).stop()
                return self._details(job_id)
            case RequestJobStatus(job_id):
                return self._job(job_id).kept_checkpoint.answer(partial(self._details, job_id))
            case RequestJobView(job_id, after_ms):
                return self._restarts.view(self._job(job_id).overview.view(after_ms))
            case RequestWatermarks(job_id):
                return self._job(job_id).master.report.watermarks()
            case RequestCheckpointStatistics(job_id):
                return self._job(job_id).master.report.checkpoint_history(self.context.clock.now_ms())
            case RestartJob(job_id):
                return self._restarts.restart(message, self._job(job_id))
            case RequestKeyGroups(job_id):
                return self._job(job_id).overview.key_groups()
            case ListenToJob(job_id, listener):
                self._job(job_id).listeners.append(self.context.actor_of(listener))
                return self._details(job_id)
            case AskOperator():
                return self._job(message.job_id).questions.ask(
                    message, message.timeout_ms or self._settings.heartbeat_timeout_ms
                )
            case SendToInlet():
                return self._job(message.job_id).questions.send(message, self._settings.heartbeat_timeout_ms)
            case ReadOutlet():
                return self._job(message.job_id).read(message)
            case _ if isinstance(message, FigureQuestion):
                return answer_by_figures(message, self._jobs.values(), self._job, self.context.clock, self._stacks)
            case ListJobs():
                return JobList(tuple(job.overview.summary() for job in self._jobs.values()))
            case DisposeSavepoint(path) if why := self._restarts.needs(path):
                return DisposeSavepointFailure(f"{path}: {why}")
            case TriggerSavepoint() | StopWithSavepoint() | CancelWithSavepoint() | DisposeSavepoint():
                return self._services.savepoint_coordinator.ask(message, timeout_ms=math.inf)
            case RequestCheckpoint():
                return self._services.savepoint_coordinator.ask(message, timeout_ms=math.inf)
            case _:
                return super().on_receive(message)

    def _submit(self, message: SubmitJob) -> Any:
        if (known := self._jobs.get(message.graph.job_id)) is not None:
            return known.submitted
        validate(message.graph)
        return self._submissions.submit(message, self._start)

    def _start(self, message: SubmitJob, kept: JobKept) -> JobSubmitted:
        """Start a job that is kept. Raises MissingSavepoint when what it was to start from is gone again, and
        OutputInUse.
        """
        try:
            if not kept.is_taken_over:
                check_outputs(message.graph, self._jobs.values())
            return self._make(message, kept)
        except BaseException:
            if not kept.is_taken_over:
                self._remove(message.graph.job_id, JobStatus.FAILED)
            raise

    def _make(self, message: SubmitJob, kept: JobKept) -> JobSubmitted:
        graph, found = replace(message.graph, earlier_inlets=kept.earlier_inlets), kept.origin
        submitted = JobSubmitted(graph.job_id)
        if found is not None:
            self._services.files.restored(graph.job_id, found.storage, found.checkpoint, found.savepoint_path)
            alone = found.submitted(graph.job_id)
            submitted = replace(alone, relatives=relatives(alone, self._jobs.values()))
        submitted = replace(submitted, namesakes=namesakes(graph, self._jobs.values()))
        if (start := found.checkpoint if found else next(kept.job.checkpoints.restorable(), None)) is not None:
            graph = with_carried_states(graph, start)
        storage = self._savepoints.open_storage(graph.checkpoints.directory)
        master = JobMaster(
            graph,
            JobMasterSettings(
                message.task_managers,
                message.slots_per_task_manager,
                self._settings.slot_timeout_ms,
                self._settings.cancel_timeout_ms,
            ),
            make_restart_strategy(graph.restart, self.context.random, self.context.clock.now_ms()),
            kept.job.checkpoint_ids,
            kept.job.checkpoints,
            self.context.new_id,
            files=self._services.files.checkpoints_of(graph.job_id, storage, kept.job),
            origin=None if found is None else found.origin,
            numbers=kept.job.attempt_numbers,
        )
        self._savepoints.job_begins(graph.job_id, storage)
        pointers = JobPointers(self.context, graph.job_id, kept.job.pointers, self._high_availability.may_block)
        lease = None if kept.claim is None else JobLease(self.context, graph.job_id, kept.claim)
        self._jobs[graph.job_id] = job = ManagedJob(self._services, graph, master, storage, submitted, lease, pointers)
        self._restarts.begun(message)
        self._launcher.expect(message)
        if not (kept.is_taken_over and self._takeovers.begin(job, graph)):
            job.start()
        return submitted

    def _details(self, job_id: JobId) -> JobDetails:
        return self._restarts.details(self._job(job_id).master.report.details())

    # -- TaskManagers

    def _register(self, message: RegisterTaskManager) -> None:
        try:
            ref = self.context.actor_of(message.control_address)
        except ValueError as error:
            log.warning("%s cannot be registered: %s", message.task_manager_id, error)
            return
        job = self._jobs.get(message.job_id)
        if job is None and self._high_availability.is_kept(message.job_id):
            return  # of an earlier leader, and not begun yet: its TaskManagers ask again
        if job is None:
            self._refuse(message, ref, "unknown job")
        elif self._takeovers.offered(message, ref):
            return
        elif not job.wants(message.task_manager_id, has_tasks=bool(message.tasks)):
            self._refuse(message, ref, f"the job is {job.status.value} and does not want it, or not any more")
        else:
            self._admit(job, message, ref)
            job.on(message)

    def _admit(self, job: ManagedJob, message: RegisterTaskManager, ref: Ref) -> None:
        if job.workers.add(message, ref):
            self._owner[message.task_manager_id] = message.job_id
            self.context.watch(ref)
        pace = self._settings.heartbeat_interval_ms, self._settings.heartbeat_timeout_ms
        ref.tell(AcknowledgeRegistration(self._services.session, message.task_manager_id, *pace, message.search))

    def _refuse(self, message: RegisterTaskManager, ref: Ref, why: str) -> None:
        ref.tell(RefuseRegistration(message.task_manager_id, why, self._services.session))

    def _from_task_manager(self, session: LeaderSessionId, message: Any) -> None:
        if session != self._services.session:
            self.stale_messages += 1
            log.warning("dropped %s of leader session %s", type(message).__name__, session)
            return
        match message:
            case Heartbeat(sender=sender):
                task_manager_id = TaskManagerId(sender)
                if (job_id := self._owner.get(task_manager_id)) is not None:
                    self._jobs[job_id].hear(task_manager_id, _readable(message))
            case LogRecords() | PrintedText():
                self._output(message)
                if isinstance(message, LogRecords) and message.job_id in self._jobs:
                    self._jobs[message.job_id].watch.logs.add(message)
            case TaskManagerFailing(task_manager_id, reason):
                self._lose(task_manager_id, reason)
            case _ if isinstance(message, TaskReport | OutletReport | StackTraceSample):
                self._on_job(message.job_id, message)
            case AcknowledgeTogether(acknowledgements):
                for each in acknowledgements:
                    self._on_job(each.job_id, each)
            case _:
                log.warning("dropped %s, which no TaskManager sends", type(message).__name__)

    def _exited(self, message: TaskManagerExited) -> None:
        job = self._jobs.get(message.job_id)
        if job is None or self._takeovers.exited(message.job_id):
            return
        for task_manager_id in job.workers.at(index=message.index):
            self._lose(task_manager_id, message.reason, process_ended=True)
        job.on(message)
        job.tidy_up()

    def _terminated(self, address: str, reason: str) -> None:
        for job in list(self._jobs.values()):
            for task_manager_id in job.workers.at(address=address):
                self._lose(task_manager_id, reason)

    def _lose(self, task_manager_id: TaskManagerId, reason: str, *, process_ended: bool = False) -> None:
        job_id = self._owner.pop(task_manager_id, None)
        if job_id is not None:
            self._jobs[job_id].lose_worker(task_manager_id, reason, process_ended=process_ended)

    def _beat(self) -> None:
        self._beats += 1
        beat = Heartbeat("job-manager", self._beats)
        for job in list(self._jobs.values()):
            for task_manager_id, silent_ms in job.beat(beat, self._settings.heartbeat_timeout_ms):
                self._lose(task_manager_id, f"no heartbeat for {silent_ms:.0f} ms")
        self.context.schedule(self._settings.heartbeat_interval_ms, _Beat())

    # -- jobs

    def _on_job(self, job_id: JobId, event: Any) -> None:
        if (job := self._jobs.get(job_id)) is not None:
            job.on(event)

    def _job(self, job_id: JobId) -> ManagedJob:
        if (job := self._jobs.get(job_id)) is None:
            raise UnknownJob.among(self._jobs, job_id)
        return job

    def _ended(self, job_id: JobId, released: tuple[TaskManagerId, ...]) -> None:
        for task_manager_id in released:
            self._owner.pop(task_manager_id, None)
        self._takeovers.forget(job_id)
        self._savepoints.job_is_over(job_id)
        self._remove(job_id, self._jobs[job_id].status)
        self._ended_jobs.append(job_id)
        if len(self._ended_jobs) > ENDED_JOBS_KEPT:
            del self._jobs[oldest := self._ended_jobs.popleft()]
            self._restarts.forgotten(oldest)
        self._restarts.ended(job_id)

    def _remove(self, job_id: JobId, status: JobStatus) -> None:
        """No successor has to start it: it has ended so, or was not started."""
        remove, job = partial(self._high_availability.remove_job, job_id, status), self._jobs.get(job_id)
        done = job.pointers.forgotten if job else None
        if self._high_availability.may_block:
            self._services.files.on(Tidy(f"what is kept of job {job_id}", remove, done=done))
        else:
            remove()


def _readable(beat: Heartbeat) -> Heartbeat:
    """With its figures; with none, if nobody can read them: it beats all the same."""
    try:
        return beat.unpacked()
    except MalformedMessage as error:
        log.warning("dropped the figures of a heartbeat of %.200s: %s", beat.sender, error)
        return replace(beat, metric_table=b"", is_last_part=False)
