"""Client: how the handle of a job reaches its JobManager, the one of its own process or of a fixed address;
FollowingClient: whichever leads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, cast

from ...actors.actor import Actor
from ...actors.ask_errors import ActorDead, AskFailed, AskTimeout
from ...actors.context import Ref
from ...messages import AskOperator, JobDetails, JobId, JobStatus, JobStatusChanged, ListenToJob, OperatorAnswer
from ..system import ActorFuture, ActorSystem
from ..system.errors import SystemStopped
from .leader_line import LeaderLine
from .patient_question import PatientQuestion


class Client:
    """How a JobHandle reaches its job: questions to the JobManager, and an actor that receives the job's events."""

    def __init__(
        self,
        system: ActorSystem,
        job_manager: Ref,
        job_id: JobId,
        settle_output: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._system = system
        self.job_manager = job_manager
        self._job_id = job_id
        self.settle_output = settle_output

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        return cast("ActorFuture[Any]", self.job_manager.ask(message, timeout_ms=timeout_ms))

    def ask_operator(
        self, question: AskOperator, wait_ms: float, deadline_ms: float = math.inf
    ) -> ActorFuture[OperatorAnswer]:
        try:
            asking = self._system.spawn(PatientQuestion(self.job_manager, wait_ms, deadline_ms))
        except SystemStopped as error:
            why = str(error) if self._system.loop.is_elsewhere else "the cluster was closed, and its jobs with it"
            closed: ActorFuture[OperatorAnswer] = ActorFuture()
            closed.try_fail(ActorDead(self.job_manager.address, why))
            return closed
        return cast("ActorFuture[OperatorAnswer]", asking.ask(question, timeout_ms=math.inf))

    @property
    def waits_by(self) -> Callable[[], ActorFuture[None]] | None:
        return None

    def start(self, actor: Actor) -> Ref:
        return self._system.spawn(actor)

    def promise(self) -> ActorFuture[None]:
        return ActorFuture()

    def listen(self, callback: Callable[[Any], None]) -> JobStatus:
        listener = self._system.spawn(_Listener(callback), dispatcher="thread")
        details: JobDetails = self.ask(ListenToJob(self._job_id, listener.address)).get()
        if details.status.is_terminal:
            self._system.stop(listener)
        return details.status


class FollowingClient(Client):
    """Questions go to whoever leads, and wait for a leader; each next leader is listened to, too. `lost` is called when
    that one does not go on with the job.
    """

    def __init__(self, system: ActorSystem, line: LeaderLine, job_id: JobId, lost: Callable[[str], None]) -> None:
        super().__init__(system, line.job_manager, job_id)
        self._line = line
        self._lost = lost
        self._is_over = False

    def listen(self, callback: Callable[[Any], None]) -> JobStatus:
        listener = self._system.spawn(_Listener(self._noting_the_end(callback)), dispatcher="thread")
        request = ListenToJob(self._job_id, listener.address)

        def next_leader() -> None:
            if not self._is_over:
                self.ask(request).add_done_callback(heard)

        def heard(answer: ActorFuture[Any]) -> None:
            try:
                found: JobDetails = answer.get()
            except AskTimeout:  # it is there, and slow
                next_leader()
                return
            except AskFailed as error:
                self._lost(f"the next leader does not go on with it, as with a job that has ended: {error.reason}")
                return
            now_ms = int(time.time() * 1000)
            listener.tell(JobStatusChanged(self._job_id, found.status, JobStatus.RUNNING, now_ms))

        self._line.follow(next_leader)  # first, so that no leader comes and goes unnoticed
        details: JobDetails = self.ask(request).get()
        if details.status.is_terminal:
            self._is_over = True
            self._system.stop(listener)
        return details.status

    def _noting_the_end(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        def noting(event: Any) -> None:
            if isinstance(event, JobStatusChanged) and event.status.is_terminal:
                self._is_over = True
            callback(event)

        return noting


class _Listener(Actor):
    """Hears a job's events, until its end, and hands them to a callback.

    It has a thread of its own: a callback may take its time, and ask the JobManager and wait for the answer.
    """

    def __init__(self, callback: Callable[[Any], None]) -> None:
        self._callback = callback

    def on_receive(self, message: Any) -> None:
        self._callback(message)
        if isinstance(message, JobStatusChanged) and message.status.is_terminal:
            self.context.stop(self.context.self_ref)
