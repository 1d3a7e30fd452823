"""LeaderLink: a TaskManager's registration with the JobManager that leads.

    seeking (registers again and again) -> registered -> alone: the leader is lost, or another one leads; seeking again
                                                           '-> over: no leader has answered for `alone_ms`

While it is alone its tasks run on: they take no checkpoint and commit nothing, as nobody orders it. With each
registration it offers them, so that the next leader can go on with the job as it is. A leader that does not want them
refuses, and the TaskManager ends. With `alone_ms` 0 it is over as soon as the leader is lost.

A part of the TaskManager, on its dispatcher.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ...messages import (
    AcknowledgeRegistration,
    FollowLeader,
    JobId,
    LeaderIs,
    LeaderSessionId,
    LeaderSessionMessage,
    Message,
    OfferedTask,
    RefuseRegistration,
    RegisterTaskManager,
    TaskManagerId,
)
from ..context import ActorContext, Ref

log = logging.getLogger(__name__)

REGISTRATION_RETRY_MS = 500


@dataclass(frozen=True, slots=True)
class TaskManagerSpec:
    """Who this TaskManager is, and whose."""

    task_manager_id: TaskManagerId
    job_id: JobId
    index: int
    slots: int
    job_manager_address: str
    host: str
    pid: int
    host_address: str = ""
    """Of the Host actor, which says who leads; empty: the JobManager is the only one there will be."""
    alone_ms: int = 0
    """How long its tasks run on without a JobManager."""


@dataclass(frozen=True, slots=True)
class RegisterDue:
    """Timer: register once more. `search`: as in all timers here, those of earlier searches mean nothing any more."""

    search: int


@dataclass(frozen=True, slots=True)
class BeatDue:
    """Timer: a heartbeat."""

    search: int


@dataclass(frozen=True, slots=True)
class AloneTooLong:
    """Timer: whoever leads may have given its work to others."""

    search: int


class LeaderLink:
    """One TaskManager's. `offers`: what it runs, as it is now."""

    def __init__(
        self,
        spec: TaskManagerSpec,
        data_endpoint: str,
        context: ActorContext,
        offers: Callable[[], tuple[OfferedTask, ...]],
    ) -> None:
        self.heard_ms = 0.0
        """When the leader was heard last."""
        self._spec = spec
        self._data_endpoint = data_endpoint
        self._context = context
        self._offers = offers
        self._leader: Ref = context.actor_of(spec.job_manager_address)
        self._wanted: LeaderSessionId | None = None
        """Of the leader, if that is known and it is not lost: an answer of another one comes too late."""
        self._registration: AcknowledgeRegistration | None = None
        self._search = 0
        self._alone_since: int | None = None
        """The search with which it was alone first."""

    @property
    def session(self) -> LeaderSessionId | None:
        """Of the leader that it is registered with."""
        return None if self._registration is None else self._registration.leader_session_id

    @property
    def silent_ms(self) -> float:
        """How long the leader has not been heard."""
        return self._context.clock.now_ms() - self.heard_ms

    def begin(self) -> None:
        """Watch the JobManager, and register."""
        self._context.watch(self._leader)
        if self._spec.host_address:
            host = self._context.actor_of(self._spec.host_address)
            host.tell(FollowLeader(self._context.self_ref.address))
        self._seek()

    def register(self, due: RegisterDue) -> None:
        """Say that it is here, and again until that is answered."""
        if due.search != self._search or self._registration is not None:
            return
        spec = self._spec
        self._leader.tell(
            RegisterTaskManager(
                task_manager_id=spec.task_manager_id,
                job_id=spec.job_id,
                index=spec.index,
                slots=spec.slots,
                control_address=self._context.self_ref.address,
                data_endpoint=self._data_endpoint,
                pid=spec.pid,
                host=spec.host,
                tasks=self._offers(),
                search=self._search,
            )
        )
        self._context.schedule(REGISTRATION_RETRY_MS, due)

    def registered(self, answer: AcknowledgeRegistration) -> bool:
        """Whether this is a registration, and no repetition or late answer.

        A leader that follows where the last one was may answer before the host says that it leads. It gives orders from
        then on, so its answer counts.
        """
        is_wanted = self._wanted in (None, answer.leader_session_id) and answer.search in (0, self._search)
        if answer.task_manager_id != self._spec.task_manager_id or self._registration is not None or not is_wanted:
            return False
        if self._alone_since is not None:
            log.info("%s is registered with %s, and its tasks go on", self._spec.task_manager_id, self._leader.address)
        self._registration, self._alone_since = answer, None
        self.heard_ms = self._context.clock.now_ms()
        self._context.watch(self._leader)
        return True

    def is_refused(self, answer: RefuseRegistration) -> bool:
        """Whether that is the word of the leader, as far as one knows."""
        return self._wanted is None or answer.leader_session_id in (None, self._wanted)

    def beat(self, due: BeatDue | None = None) -> bool:
        """Whether it is time for a heartbeat; then the next one is set. None: the first one."""
        registration = self._registration
        if registration is None or (due is not None and due.search != self._search):
            return False
        self._context.schedule(registration.heartbeat_interval_ms, BeatDue(self._search))
        return True

    def is_silent(self) -> bool:
        """Whether the leader is to be taken for lost."""
        return self._registration is not None and self.silent_ms > self._registration.heartbeat_timeout_ms

    def turn(self, leader: LeaderIs) -> None:
        """It leads: look for no other one."""
        if leader.leader_session_id == self.session:
            return
        if self._registration is not None:
            self._is_alone("another one leads")
        is_asked = self._registration is None and self.is_from(leader.address)
        self._wanted, self._leader = leader.leader_session_id, self._context.actor_of(leader.address)
        if not is_asked:
            self._seek()

    def lost(self, reason: str) -> bool:
        """The leader is gone; whether that is the end of this TaskManager."""
        if not self._spec.alone_ms:
            return True
        if self._registration is not None or self._alone_since is None:
            self._is_alone(reason)
            self._wanted = None
            self._seek()
        return False

    def is_over(self, timer: AloneTooLong) -> bool:
        """Whether it has been alone for all that time."""
        return self._alone_since == timer.search

    def is_from(self, address: str) -> bool:
        """Whether that is the leader's address."""
        return address == self._leader.address

    def tell(self, message: Message) -> None:
        """To the leader, if there is one: else it is dropped."""
        if self._registration is not None:
            self._leader.tell(LeaderSessionMessage(self._registration.leader_session_id, message))

    def _seek(self) -> None:
        self._search += 1
        self._registration = None
        self.register(RegisterDue(self._search))

    def _is_alone(self, reason: str) -> None:
        spec = self._spec
        log.warning(
            "%s has lost its JobManager (%s): its tasks run on, without checkpoints, until another one leads, for at "
            "most %.0f s",
            spec.task_manager_id,
            reason,
            spec.alone_ms / 1000,
        )
        self._alone_since = self._search
        self._context.schedule(spec.alone_ms, AloneTooLong(self._search))
