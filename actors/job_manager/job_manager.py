"""JobManager: the actor behind the JobMasters. It carries their effects out and hands them what comes back.

One per cluster. It routes messages to the job they are about, answers clients, and starts and ends jobs. Its own parts:
`TaskManagerLinks` hears the TaskManagers, a `ManagedJob` each has a job's timers and storage, and others have the
submissions, restarts and savepoints.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ...messages import (
    AskOperator,
    CancelJob,
    CancelWithSavepoint,
    DisposeSavepoint,
    DisposeSavepointFailure,
    JobDetails,
    JobId,
    JobList,
    JobStatus,
    JobSubmitted,
    ListenToJob,
    ListJobs,
    LogRecords,
    MessageError,
    PrintedText,
    ReadOutlet,
    RequestCheckpoint,
    RequestCheckpointStatistics,
    RequestJobStatus,
    RequestJobView,
    RequestKeyGroups,
    RequestWatermarks,
    RestartJob,
    SendToInlet,
    StopJob,
    StopWithSavepoint,
    SubmitJob,
    TaskManagerAwaited,
    TaskManagerId,
    TriggerSavepoint,
)
from ...state.checkpoints.high_availability import HighAvailability
from ...state.checkpoints.job_runs import Claimant
from ...state.checkpoints.savepoints import Savepoints
from ...state.errors import StateError
from ...state.job_history import JobHistory
from ..actor import Actor, SupervisorStrategy
from ..ask_errors import NotRunning
from ..errors import ActorError, UnknownJob
from ..job_graph import validate
from ..jobs.job_master import JobMaster, JobMasterSettings
from ..jobs.restart_strategy import make_restart_strategy
from ..restore.job_submissions import JobKept, JobSubmissions, SubmissionRead
from ..restore.restore_check import with_carried_states
from ..stacks import NO_STACKS, Stacks
from .cluster_metrics import FigureQuestion, answer_by_figures
from .job_files import JobFiles, Tidied, Tidy, TidyUp
from .job_lease import JobLease
from .job_manager_settings import JobManagerSettings
from .job_names import named, namesakes
from .job_pointers import JobPointers
from .job_programs import JobPrograms, NoPrograms
from .job_questions import InletAnswered, QuestionAnswered, QuestionFailed
from .job_restarts import JobRestarts, RestartEvent
from .launcher import Launcher
from .managed_job import JobServices, ManagedJob, OfAJob, TimerDue
from .owned_outputs import check_outputs, relatives
from .savepoint_coordinator import SavepointCoordinator
from .savepoint_orders import SavepointOrder, SavepointOrders
from .storage_answers import Deposed, ForJob
from .task_manager_links import LinkEvent, TaskManagerLinks

log = logging.getLogger(__name__)

ENDED_JOBS_KEPT = 100
"""The number of ended jobs that can still be asked about."""


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
        *,
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
        self._ended_jobs: deque[JobId] = deque()

    def on_start(self) -> None:
        coordinator = SavepointCoordinator(self._savepoints, self.context.self_ref)
        self._submissions = JobSubmissions(self.context, self._savepoints, self._high_availability, self._claimant)
        self._services = JobServices(
            self.context,
            self._high_availability,
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
        self._links = TaskManagerLinks(
            self.context, self._settings, self._high_availability, self._jobs, self._output, self._launcher.abandon
        )

    def on_stop(self) -> None:
        for job in self._jobs.values():
            job.kept_checkpoint.seen()
        self._savepoints.close()
        self._high_availability.close()

    def on_receive(self, message: Any) -> Any:
        match message:
            case _ if isinstance(message, LinkEvent):
                self._links.on(message)
            case TaskManagerAwaited(job_id=job_id):
                self._on_job(job_id, message)
            case InletAnswered():
                message.questions.answered(message)
            case QuestionAnswered() | QuestionFailed():
                message.hand_on()
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
                self._job(job_id).listeners.add(listener)
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
            case TidyUp():
                return self._tidy_up()
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
            kept.job,
            self.context.new_id,
            files=self._services.files.checkpoints_of(graph.job_id, storage, kept.job),
            origin=None if found is None else found.origin,
        )
        self._savepoints.job_begins(graph.job_id, storage)
        pointers = JobPointers(self.context, graph.job_id, kept.job.pointers, self._high_availability.may_block)
        lease = None if kept.claim is None else JobLease(self.context, graph.job_id, kept.claim)
        if lease is not None and start is not None and start.job_id == graph.job_id and start.is_stop:
            lease.stopped_with_savepoint()  # under an earlier leader, who has not come to say so
        self._jobs[graph.job_id] = job = ManagedJob(self._services, graph, master, storage, submitted, lease, pointers)
        self._restarts.begun(message)
        self._launcher.expect(message)
        if not (kept.is_taken_over and self._links.takeovers.begin(job, graph)):
            job.start()
        return submitted

    def _details(self, job_id: JobId) -> JobDetails:
        return self._restarts.details(self._job(job_id).master.report.details())

    # -- jobs

    def _on_job(self, job_id: JobId, event: OfAJob) -> None:
        if (job := self._jobs.get(job_id)) is not None:
            job.on(event)

    def _job(self, job_id: JobId) -> ManagedJob:
        if (job := self._jobs.get(job_id)) is None:
            raise UnknownJob.among(self._jobs, job_id)
        return job

    def _tidy_up(self) -> Any:
        for job in self._jobs.values():
            job.tidy_up()
        done = self.context.promise()
        self._services.files.when_tried(lambda: done.set(None))
        return done

    def _ended(self, job_id: JobId, released: tuple[TaskManagerId, ...]) -> None:
        self._links.job_ended(job_id, released)
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
