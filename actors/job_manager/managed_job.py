"""ManagedJob: one job of a JobManager: its JobMaster, and the execution of the JobMaster's effects.

It keeps timers, uses storage and answers for savepoints. A part of the JobManager, on its dispatcher; what belongs to
all jobs stands in `JobServices`. Its own parts: `workers` are the TaskManagers that it sends to, `overview` is the job
as clients see it, `watch` its figures and logs, `questions` what clients ask of its operators; GuardedFiles stores and
deletes.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, assert_never

from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointNotTaken,
    FailureCause,
    Heartbeat,
    JobGraph,
    JobId,
    JobStatus,
    JobStatusChanged,
    JobSubmitted,
    LeaderSessionMessage,
    OutletReport,
    ReadOutlet,
    RegisterTaskManager,
    SubmitTask,
    SubtaskIndex,
    TaskManagerChanged,
    TaskManagerId,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
)
from ...state import CheckpointStorage
from ...state.checkpoints.high_availability import HighAvailability
from ...state.errors import LostOwnership
from ...state.job_history import JobHistory
from ..checkpoints.checkpoint_effects import (
    AnswerCheckpoint,
    AnswerSavepoint,
    CancelTimer,
    Discard,
    Publish,
    Schedule,
    StoreMetadata,
)
from ..checkpoints.checkpoint_events import CheckpointRequested, MetadataFailed, MetadataStored, TriggerSavepointNow
from ..checkpoints.savepoint_request import Afterwards, CheckpointRequest, SavepointRequest
from ..context import ActorContext, Ref, Timer
from ..jobs.failure_log import FailureLog
from ..jobs.job_effects import (
    FailureKnown,
    JobDoomed,
    JobEffect,
    JobEnded,
    JobEvent,
    JobNews,
    JobTimerEvent,
    KillTaskManager,
    ProcessEnded,
    StartTaskManager,
    TaskManagerLost,
    Tell,
)
from ..jobs.job_master import JobMaster
from ..jobs.orders_together import together
from .guarded_files import GuardedFiles
from .job_files import JobFiles, Tidy
from .job_lease import Lease
from .job_listeners import JobListeners
from .job_overview import JobOverview
from .job_pointers import JobPointers
from .job_questions import JobQuestions
from .job_scrub import JobScrub, ScrubEvent
from .job_watch import JobWatch, WatchEvent
from .job_workers import JobWorkers
from .kept_checkpoint import CheckpointSeen, KeptCheckpoint
from .launcher import Launcher
from .outlets import OutletEvent, Outlets, outlet_id
from .savepoint_coordinator import PromiseSettled
from .storage_answers import LeaseTold, PointerGone

OfAJob: TypeAlias = (
    JobEvent | LeaseTold | PointerGone | CheckpointSeen | OutletReport | OutletEvent | WatchEvent | ScrubEvent
)


@dataclass(frozen=True, slots=True)
class JobServices:
    """What all jobs of a JobManager share."""

    context: ActorContext
    high_availability: HighAvailability
    launcher: Launcher
    files: JobFiles
    savepoint_coordinator: Ref
    history: JobHistory | None
    """Where jobs that have ended are kept."""
    ended: Callable[[JobId, tuple[TaskManagerId, ...]], None]
    """To be called when a job is over, with the TaskManagers that it has released."""
    named: Callable[[JobGraph], str]
    """What the log calls a job of this JobManager."""


@dataclass(frozen=True, slots=True)
class TimerDue:
    """A timer of one job, which hands its event back."""

    job_id: JobId
    event: JobTimerEvent


class ManagedJob:
    """From its submission until its JobManager forgets it."""

    def __init__(
        self,
        services: JobServices,
        graph: JobGraph,
        master: JobMaster,
        storage: CheckpointStorage,
        submitted: JobSubmitted,
        lease: Lease | None = None,
        pointers: JobPointers | None = None,
    ) -> None:
        """`submitted`: the answer to whoever submitted it, as often as asked. `lease`: to its name, if it has that.
        `pointers`: for a successor, if there can be one.
        """
        self.submitted = submitted
        self.master = master
        self.storage = storage
        self.listeners = JobListeners(services.context)
        self._services = services
        self._lease = lease or Lease()
        self.pointers = pointers or JobPointers(services.context, graph.job_id)
        self.graph = graph
        self._context = services.context
        self._log = FailureLog(graph, services.context.clock, self._keep_line, services.named)
        self.workers = JobWorkers(services.high_availability.session, services.context.clock)
        self.overview = JobOverview(graph, master, self.workers.there, services.context.clock)
        self._timers: dict[JobTimerEvent, Timer] = {}
        self._is_to_cancel = False
        self._files = GuardedFiles(graph.job_id, master, services.files, storage, self._lease, self.pointers)
        self.kept_checkpoint = KeptCheckpoint(services.context, graph.job_id, storage)
        self._outlets = Outlets(
            graph.job_id,
            storage,
            services.context,
            self._is_current,
            lambda: self.status.is_terminal,
            partial(outlet_id, graph),
        )
        self.questions = JobQuestions(
            services.context,
            services.high_availability,
            master,
            self._lease,
            self.workers.there,
            self.overview.told_status,
        )
        self._scrub = JobScrub(
            services.context,
            graph,
            storage,
            lambda: master.coordinator.store.restorable(),
            self.take_checkpoint,
            services.named,
        )
        self.watch = JobWatch(
            services.context,
            partial(LeaderSessionMessage, services.high_availability.session),
            graph,
            master,
            self.workers.there,
            self.overview.told_status,
            self._scrub.damaged,
        )

    @property
    def job_id(self) -> JobId:
        return self.graph.job_id

    @property
    def status(self) -> JobStatus:
        return self.master.status

    def say(self, text: str) -> None:
        """Log it; the job's log has it too."""
        self._log.say(text, logging.INFO)

    def _keep_line(self, logger: str, level: int, text: str) -> None:
        self.watch.logs.note(logger, level, text, self._context.clock.wall_ms())

    # -- what happens to it

    def start(self) -> None:
        self._carry_out(self.master.start(*self._clocks()))
        self._scrub.rest()

    def adopt(self, offers: Sequence[RegisterTaskManager]) -> None:
        """In the place of `start`: see JobMaster.adopt."""
        self._files.adopted()
        self._carry_out(self.master.adopt(offers, *self._clocks()))
        self._scrub.rest()

    def cancel(self) -> None:
        self._carry_out(self.master.cancel(*self._clocks()))

    def stop(self) -> None:
        failure = self.master.latest_failure
        if self.status is JobStatus.RESTARTING and failure is not None:
            self._log.stopped_while_down(failure, self.master.next_restored)
        self._carry_out(self.master.stop(*self._clocks()))

    def on(self, event: OfAJob) -> None:
        if isinstance(event, WatchEvent):
            self.watch.on(event)
        elif isinstance(event, ScrubEvent):
            self._scrub.on(event)
        elif isinstance(event, OutletReport | OutletEvent):
            self._outlets.on(event)
        elif isinstance(event, LeaseTold):
            self._lease_told(event.error)
        elif isinstance(event, PointerGone):
            self.pointers.gone(event)
        elif isinstance(event, CheckpointSeen):
            self._seen(event)
        else:
            self._carry_out(self.master.on(event, *self._clocks()))
            if isinstance(event, MetadataStored | MetadataFailed):
                self.pointers.stored()
            if isinstance(event, MetadataFailed) and event.needs_full:
                self._scrub.files_gone(event.reason)
            if isinstance(event, MetadataStored):
                self.overview.savepoints_stored(event)

    def timer_due(self, event: JobTimerEvent) -> None:
        self._timers.pop(event, None)  # a job may run for years, and tick every second
        self.on(event)

    def take_savepoint(self, request: SavepointRequest) -> None:
        """Answered by a PromiseSettled to the SavepointCoordinator, at once or later."""
        if request.afterwards is Afterwards.DRAIN:
            self._carry_out(self.master.stop(*self._clocks(), request))
        else:
            self.on(TriggerSavepointNow(request))

    def take_checkpoint(self, request: CheckpointRequest) -> None:
        """As `take_savepoint`."""
        self.on(CheckpointRequested(request))

    def read(self, question: ReadOutlet) -> Any:
        """The future of an OutletAnswer; raises NotRunning for an operator that there is not."""
        return self._outlets.read(question)

    def _is_current(self, said: OutletReport) -> bool:
        """Whether the attempt that says it is the one that runs the operator now."""
        execution = self.master.report.holder_of(said.operator_id, lambda *_: SubtaskIndex(0))
        return execution is not None and execution.attempt_id == said.attempt_id

    def tidy_up(self) -> None:
        """See GuardedFiles.tidy_up."""
        self._files.tidy_up()

    # -- its name

    def _lease_told(self, error: BaseException | None) -> None:
        """What came of a write of its lease. If that is lost, the job fails permanently."""
        if isinstance(error, LostOwnership) and not self._lease.is_lost:
            self._lease.lose()
            self.pointers.give_up_waiting()
            self.on(JobDoomed(FailureCause(type(error).__name__, str(error))))
        elif not self._lease.is_lost:
            self._lease.told(error)

    # -- its TaskManagers

    def wants(self, task_manager_id: TaskManagerId, *, has_tasks: bool = False) -> bool:
        """Whether this one may register."""
        return not self.status.is_terminal and self.workers.may_register(task_manager_id, has_tasks=has_tasks)

    def hear(self, task_manager_id: TaskManagerId, beat: Heartbeat) -> None:
        self.workers.heard(task_manager_id)
        self.overview.heard(beat)
        self.watch.heard(task_manager_id, beat)
        self.on(beat)

    def lose_worker(self, task_manager_id: TaskManagerId, reason: str, *, process_ended: bool) -> None:
        self.workers.lose(task_manager_id)
        self.watch.book.lost(task_manager_id)
        self.on(TaskManagerLost(task_manager_id, reason, process_ended))

    def beat(self, beat: Heartbeat, timeout_ms: float) -> list[tuple[TaskManagerId, float]]:
        """See JobWorkers.beat."""
        self._lease.beat()
        self.overview.look()
        if waits := self.master.coordinator.look(self._context.clock.now_ms()):
            self._log.checkpoint_waits(waits)
        self.listeners.beat()
        return self.workers.beat(beat, timeout_ms)

    # -- effects

    def _carry_out(self, effects: list[JobEffect]) -> None:
        for effect in together(effects):
            match effect:
                case Tell(task_manager_id, message):
                    tell = partial(self.workers.tell, task_manager_id, message)
                    self.pointers.when_settled(tell, may_begin=isinstance(message, SubmitTask))
                case Publish(message):
                    self._publish(message)
                case StartTaskManager(index):
                    self._services.launcher.start(self.job_id, index)
                case KillTaskManager(index):
                    self._services.launcher.kill(self.job_id, index)
                case Schedule(delay_ms, event):
                    self._timers[event] = self._context.schedule(delay_ms, TimerDue(self.job_id, event))
                case CancelTimer(event):
                    if (timer := self._timers.pop(event, None)) is not None:
                        timer.cancel()
                case StoreMetadata():
                    self._files.store(effect)
                case Discard():
                    self._files.discard(effect)
                case AnswerSavepoint():
                    self._answer_savepoint(effect)
                case AnswerCheckpoint():
                    self._answer_checkpoint(effect)
                case FailureKnown():
                    self._log.failed(effect)
                case ProcessEnded():
                    self._log.process_ended(effect)
                case JobEnded(status, failure):
                    kept = self.master.report.details().retained_checkpoint_path
                    self._log.job_ended(status, failure, self.master.restarts, kept)
                    self._end()
                case _:
                    assert_never(effect)
        if self._is_to_cancel:
            self._is_to_cancel = False
            self.cancel()

    def _publish(self, message: JobNews) -> None:
        self.overview.happened(message)
        if isinstance(message, CheckpointCompleted):
            self._log.checkpoint_completed()
            self._files.completed(message.checkpoint_id)
        elif isinstance(message, CheckpointAborted):
            self._log.checkpoint_aborted(message)
        elif isinstance(message, TaskManagerChanged) and not message.registered:
            self._log.task_manager_lost(message)
        elif isinstance(message, JobStatusChanged):
            self.watch.status_changed(message)
        self.listeners.tell(message)

    def _answer_savepoint(self, settled: AnswerSavepoint) -> None:
        """It is there, or will not be. A job that is to be cancelled then is so before anything newer completes."""
        request, answer = settled.request, settled.answer
        if isinstance(answer, TriggerSavepointFailure):
            answer = replace(answer, cause=self.overview.with_status(answer.cause))
        self._services.savepoint_coordinator.tell(PromiseSettled(request.token, answer))
        if request.afterwards is Afterwards.CANCEL and isinstance(answer, TriggerSavepointSuccess):
            self._is_to_cancel = True
        if request.afterwards is Afterwards.STOP and isinstance(answer, TriggerSavepointSuccess):
            self._lease.stopped_with_savepoint()

    def _answer_checkpoint(self, settled: AnswerCheckpoint) -> None:
        answer = settled.answer
        if isinstance(answer, CheckpointNotTaken):
            answer = replace(answer, cause=self.overview.with_status(answer.cause))
        else:
            answer = replace(answer, path=self.storage.location(posixpath.dirname(answer.path)))
        if self._scrub.answered(settled.request, answer):
            return
        self._services.savepoint_coordinator.tell(PromiseSettled(settled.request.token, answer))

    def _end(self) -> None:
        released = self.workers.release(f"the job is {self.status.value}")
        self._scrub.end()
        for timer in self._timers.values():
            timer.cancel()
        self.overview.ended()
        self._services.launcher.forget(self.job_id)
        self._files.job_ended()
        self._outlets.job_ended()
        if kept := self.master.report.retained:
            self.kept_checkpoint.look(kept)
        self._keep_history()
        self._services.ended(self.job_id, released)

    def _seen(self, seen: CheckpointSeen) -> None:
        """The job has ended; its checkpoint is where it was, or somebody has deleted it."""
        if not seen.is_there and not self.master.report.is_retained_gone:
            if self.status is JobStatus.FAILED:  # the log has named it
                self._log.kept_is_gone(self.master.report.details().retained_checkpoint_path)
            self.master.report.is_retained_gone = True
            self._keep_history()
        self.kept_checkpoint.seen()

    def _keep_history(self) -> None:
        """For those who ask after this JobManager's end."""
        if (history := self._services.history) is None:
            return
        keep = partial(history.keep, self.overview.history())
        self._services.files.on(Tidy(f"the history of job {self.job_id}", keep))

    def _clocks(self) -> tuple[float, int]:
        return self._context.clock.now_ms(), self._context.clock.wall_ms()
