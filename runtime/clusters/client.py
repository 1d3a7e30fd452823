"""Client: how the handle of a job reaches its JobManager, the one of its own process or of a fixed address;
FollowingClient: whichever leads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ...actors.actor import Actor
from ...actors.ask_errors import ActorDead, AskFailed, AskTimeout
from ...actors.context import Ref
from ...messages import AskOperator, JobDetails, JobId, JobStatus, JobStatusChanged, ListenToJob, OperatorAnswer
from ..system import ActorFuture, ActorSystem
from ..system.errors import SystemStopped
from .leader_line import LeaderLine
from .patient_question import PatientQuestion

RENEW_MS = 60_000.0
"""How often a leader is asked again: well before it forgets whom it does not reach (`job_listeners.GONE_MS`)."""


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
    """Questions go to whoever leads, and wait for a leader; each next leader is listened to, too. The same one is asked
    again from time to time: it forgets a client that it has not reached for long, and the client has heard nothing of
    what happened meanwhile. `lost` is called when a leader does not go on with the job.
    """

    def __init__(self, system: ActorSystem, line: LeaderLine, job_id: JobId, lost: Callable[[str], None]) -> None:
        super().__init__(system, line.job_manager, job_id)
        self._line = line
        self._lost = lost

    def listen(self, callback: Callable[[Any], None]) -> JobStatus:
        return _Subscription(self.ask, self._job_id, callback, self._lost).begin(self._system, self._line)


class _Subscription:
    """A callback's, to the events of a job at whoever leads. It is over with the job: then nobody is asked again."""

    def __init__(
        self,
        ask: Callable[[Any], ActorFuture[Any]],
        job_id: JobId,
        callback: Callable[[Any], None],
        lost: Callable[[str], None],
    ) -> None:
        self._ask_leader = ask
        self._job_id = job_id
        self._callback = callback
        self._lost = lost
        self._is_over = False
        self._asked: ActorFuture[Any] | None = None

    def begin(self, system: ActorSystem, line: LeaderLine) -> JobStatus:
        """Waits for the answer: how the job stands."""
        self._listener = system.spawn(_Listener(self._hand_on, self._renew), dispatcher="thread")
        self._request = ListenToJob(self._job_id, self._listener.address)
        line.follow(partial(self._ask, is_next=True))  # first, so that no leader comes and goes unnoticed
        self._asked = self._ask_leader(self._request)
        details: JobDetails = self._asked.get()
        if details.status.is_terminal:
            self._is_over = True
            system.stop(self._listener)
        return details.status

    def _hand_on(self, event: Any) -> None:
        if isinstance(event, JobStatusChanged) and event.status.is_terminal:
            self._is_over = True
        self._callback(event)

    def _renew(self) -> None:
        if self._asked is not None and self._asked.is_done:
            self._ask(is_next=False)

    def _ask(self, *, is_next: bool) -> None:
        """`is_next`: one that has not been asked before."""
        if not self._is_over:
            self._asked = self._ask_leader(self._request)
            self._asked.add_done_callback(partial(self._heard, is_next=is_next))

    def _heard(self, answer: ActorFuture[Any], *, is_next: bool) -> None:
        try:
            found: JobDetails = answer.get()
        except AskTimeout:  # it is there, and slow
            self._ask(is_next=is_next)
            return
        except AskFailed as error:
            who = "the next leader does not go on with it" if is_next else "its JobManager does not know it any more"
            self._lost(f"{who}: it had ended before, or is lost: {error.reason}")
            return
        if is_next or found.status.is_terminal:
            now_ms = int(time.time() * 1000)
            self._listener.tell(JobStatusChanged(self._job_id, found.status, JobStatus.RUNNING, now_ms))


@dataclass(frozen=True, slots=True)
class _RenewalDue:
    renew: Callable[[], None]


class _Listener(Actor):
    """Hears a job's events, until its end, and hands them to a callback.

    It has a thread of its own: a callback may take its time, and ask the JobManager and wait for the answer. `renew`
    is called every RENEW_MS.
    """

    def __init__(self, callback: Callable[[Any], None], renew: Callable[[], None] | None = None) -> None:
        self._callback = callback
        self._renew = renew

    def on_start(self) -> None:
        if self._renew is not None:
            self.context.schedule(RENEW_MS, _RenewalDue(self._renew))

    def on_receive(self, message: Any) -> None:
        if isinstance(message, _RenewalDue):
            message.renew()
            self.context.schedule(RENEW_MS, message)
            return
        self._callback(message)
        if isinstance(message, JobStatusChanged) and message.status.is_terminal:
            self.context.stop(self.context.self_ref)
