"""TaskManagerLinks: the TaskManagers of all jobs, as the JobManager knows them: who is there, and of which job.

It answers those that register, hands on what they say, beats the JobManager's heart to them, and tells the job of one
that is silent, or whose connection or process is gone. What directs state must carry the current leader session; else
it is dropped. A part of the JobManager. What a job does without one of its TaskManagers is decided in the JobMaster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from ...messages import (
    AcknowledgeRegistration,
    AcknowledgeTogether,
    Heartbeat,
    JobId,
    LeaderSessionId,
    LeaderSessionMessage,
    LogRecords,
    MalformedMessage,
    OutletReport,
    PrintedText,
    RefuseRegistration,
    RegisterTaskManager,
    StackTraceSample,
    TaskManagerExited,
    TaskManagerFailing,
    TaskManagerId,
    TaskReport,
)
from ...state.checkpoints.high_availability import HighAvailability
from ..actor import Terminated
from ..context import ActorContext, Ref
from ..remedies import remedy_of_end
from .job_manager_settings import JobManagerSettings
from .managed_job import ManagedJob
from .takeovers import AdoptionOverdue, LeaderPublished, Takeovers

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BeatDue:
    """Timer: it is time for the next heartbeat."""


LinkEvent: TypeAlias = (
    LeaderSessionMessage
    | RegisterTaskManager
    | TaskManagerExited
    | Terminated
    | BeatDue
    | LeaderPublished
    | AdoptionOverdue
)


class TaskManagerLinks:
    """One JobManager's. `jobs`: all that it knows; `output` takes what TaskManagers log and print; `abandon` ends what
    else may run of a job of an earlier leader.
    """

    def __init__(
        self,
        context: ActorContext,
        settings: JobManagerSettings,
        high_availability: HighAvailability,
        jobs: Mapping[JobId, ManagedJob],
        output: Callable[[LogRecords | PrintedText], None],
        abandon: Callable[[JobId], None],
    ) -> None:
        self._context = context
        self._settings = settings
        self._high_availability = high_availability
        self._session: LeaderSessionId = high_availability.session
        self._jobs = jobs
        self._output = output
        self.takeovers = Takeovers(context, settings.adoption_timeout_ms, self._admit, self._refuse, abandon)
        self._owner: dict[TaskManagerId, JobId] = {}
        self._beats = 0
        self._schedule_beat()

    def on(self, event: LinkEvent) -> None:
        match event:
            case LeaderSessionMessage(session, inner):
                self._hear(session, inner)
            case RegisterTaskManager():
                self._register(event)
            case TaskManagerExited():
                self._exited(event)
            case Terminated(address=address, reason=reason):
                for job in list(self._jobs.values()):
                    job.listeners.lost(event)
                    for task_manager_id in job.workers.at(address=address):
                        self._lose(task_manager_id, _with_remedy(reason))
            case BeatDue():
                self._beat()
            case LeaderPublished():
                self.takeovers.can_be_found()
            case AdoptionOverdue():
                self.takeovers.overdue(event)
            case _:
                assert_never(event)

    def job_ended(self, job_id: JobId, released: Iterable[TaskManagerId]) -> None:
        """It has released these."""
        for task_manager_id in released:
            self._owner.pop(task_manager_id, None)
        self.takeovers.forget(job_id)

    # -- registration

    def _register(self, message: RegisterTaskManager) -> None:
        try:
            ref = self._context.actor_of(message.control_address)
        except ValueError as error:
            log.warning("%s cannot be registered: %s", message.task_manager_id, error)
            return
        job = self._jobs.get(message.job_id)
        if job is None and self._high_availability.is_kept(message.job_id):
            return  # of an earlier leader, and not begun yet: its TaskManagers ask again
        if job is None:
            self._refuse(message, ref, "unknown job")
        elif self.takeovers.offered(message, ref):
            return
        elif not job.wants(message.task_manager_id, has_tasks=bool(message.tasks)):
            self._refuse(message, ref, f"the job is {job.status.value} and does not want it, or not any more")
        else:
            self._admit(job, message, ref)
            job.on(message)

    def _admit(self, job: ManagedJob, message: RegisterTaskManager, ref: Ref) -> None:
        if job.workers.add(message, ref):
            self._owner[message.task_manager_id] = message.job_id
            self._context.watch(ref)
        pace = self._settings.heartbeat_interval_ms, self._settings.heartbeat_timeout_ms
        ref.tell(AcknowledgeRegistration(self._session, message.task_manager_id, *pace, message.search))

    def _refuse(self, message: RegisterTaskManager, ref: Ref, why: str) -> None:
        ref.tell(RefuseRegistration(message.task_manager_id, why, self._session))

    # -- what they say

    def _hear(self, session: LeaderSessionId, message: Any) -> None:
        if session != self._session:
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
                self._hand_on(message)
            case AcknowledgeTogether(acknowledgements):
                for each in acknowledgements:
                    self._hand_on(each)
            case _:
                log.warning("dropped %s, which no TaskManager sends", type(message).__name__)

    def _hand_on(self, message: TaskReport | OutletReport | StackTraceSample) -> None:
        if (job := self._jobs.get(message.job_id)) is not None:
            job.on(message)

    # -- who is gone

    def _exited(self, message: TaskManagerExited) -> None:
        job = self._jobs.get(message.job_id)
        if job is None or self.takeovers.exited(message.job_id):
            return
        for task_manager_id in job.workers.at(index=message.index):
            self._lose(task_manager_id, message.reason, process_ended=True)
        job.on(message)
        job.tidy_up()

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
        self._schedule_beat()

    def _schedule_beat(self) -> None:
        self._context.schedule(self._settings.heartbeat_interval_ms, BeatDue())


def _with_remedy(reason: str) -> str:
    """Of the end of a TaskManager's actor: an error of Python or the system often does not say what to do."""
    return f"{reason}{remedy_of_end(reason)}" if reason.startswith("failed: ") else reason


def _readable(beat: Heartbeat) -> Heartbeat:
    """With its figures; with none, if nobody can read them: it beats all the same."""
    try:
        return beat.unpacked()
    except MalformedMessage as error:
        log.warning("dropped the figures of a heartbeat of %.200s: %s", beat.sender, error)
        return replace(beat, metric_table=b"", is_last_part=False)
