"""Host: the actor of a TaskManager process that stands alone. It offers slots, and starts the TaskManagers it is sent.

States: seeking the JobManager (registers again and again, less and less often, and logs that once) -> registered ->
seeking, when the JobManager is away or another one leads -> leaving. What runs here outlives the connection: each
TaskManager speaks with the JobManager by itself, asks this host who leads, and decides for itself. Flink: TaskExecutor.

No TaskManager's code is looked into in this process: its signature is checked, and the bytes go to the child.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...actors.actor import Actor, Terminated
from ...actors.context import Ref
from ...messages import (
    AcknowledgeHost,
    EndTaskManager,
    FollowLeader,
    HostedTaskManager,
    HostedTaskManagerEnded,
    HostHeartbeat,
    HostId,
    HostLeaving,
    JobId,
    LaunchId,
    LaunchTaskManager,
    LeaderIs,
    LeaderSessionId,
    LeaderSessionMessage,
    RegisterHost,
    ReleaseJob,
    TaskManagerExited,
)
from ..clusters.task_manager_process import TaskManagerLaunch
from ..high_availability import Leader, LeaderRetrieval
from .releases import own_releases
from .resource_manager import JOB_MANAGER
from .resource_manager import NAME as RESOURCE_MANAGER

log = logging.getLogger(__name__)

FIRST_RETRY_MS, LAST_RETRY_MS = 250, 5_000
"""Pauses between registrations: each is twice the last one, up to the second."""


class LocalTaskManagers(Protocol):
    """Starts TaskManagers on this machine: a LocalLauncher. Each that is started is reported by TaskManagerExited."""

    def prepare(self, launch: TaskManagerLaunch) -> None: ...

    def start(self, job_id: JobId, index: int) -> None: ...

    def kill(self, job_id: JobId, index: int) -> None: ...

    def forget(self, job_id: JobId) -> None: ...


@dataclass(frozen=True, slots=True)
class HostSpec:
    """What this host offers."""

    host_id: HostId
    host: str
    pid: int
    slots: int


@dataclass(frozen=True, slots=True)
class Leave:
    """To the host, from its own process: say goodbye. Answered when that is on its way."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Register:
    number: int


@dataclass(frozen=True, slots=True)
class _Beat:
    number: int


@dataclass(frozen=True, slots=True)
class _Leads:
    leader: Leader | None


@dataclass(frozen=True, slots=True)
class _Prepared:
    order: LaunchTaskManager
    launch: TaskManagerLaunch


@dataclass(frozen=True, slots=True)
class _Unprepared:
    order: LaunchTaskManager
    error: BaseException


@dataclass(slots=True)
class _Running:
    made: HostedTaskManager
    is_started: bool = False
    is_to_end: bool = False


@dataclass(slots=True)
class _Registration:
    """The latest one, as long as it holds."""

    number: int = 0
    session: LeaderSessionId | None = None
    interval_ms: int = 0
    timeout_ms: int = 0
    heard_ms: float = 0.0
    retry_ms: int = FIRST_RETRY_MS
    lost_ms: float | None = field(default=None)
    """When the JobManager was lost, or first looked for; None while it is here."""


class Host(Actor):
    """One TaskManager process. `make_launch` reads and checks a job's code and says how its TaskManagers are started on
    this host; it blocks.
    """

    def __init__(
        self,
        spec: HostSpec,
        leaders: LeaderRetrieval,
        task_managers: LocalTaskManagers,
        make_launch: Callable[[LaunchTaskManager, str], TaskManagerLaunch],
        registered: Callable[[], None] = lambda: None,
        forget: Callable[[JobId], None] = lambda _: None,
    ) -> None:
        """`make_launch` also takes the leader's address. `registered` is called with each registration, and `forget`
        when a job has nothing left here; neither may block.
        """
        self._spec = spec
        self._leaders = leaders
        self._task_managers = task_managers
        self._make_launch = make_launch
        self._when_registered = registered
        self._forget = forget
        self._running: dict[LaunchId, _Running] = {}
        self._registration = _Registration()
        self._leader: Leader | None = None
        self._followers: dict[str, Ref] = {}
        """The TaskManagers here that want to know who leads, by their addresses."""
        self._manager: Ref | None = None
        self._is_leaving = False

    def on_start(self) -> None:
        own = self.context.self_ref
        self._leaders.on_change(lambda leader: own.tell(_Leads(leader)))

    def on_stop(self) -> None:
        self._leaders.close()

    def on_receive(self, message: Any) -> Any:
        match message:
            case LeaderSessionMessage(session, inner):
                if session == self._registration.session:
                    self._registration.heard_ms = self.context.clock.now_ms()
                    self._ordered(inner)
            case AcknowledgeHost():
                self._registered(message)
            case _Leads(leader):
                self._leads(leader)
            case FollowLeader(address):
                self._follow(address)
            case _Register(number):
                self._register(number)
            case _Beat(number):
                self._beat(number)
            case Terminated(address=address, reason=reason):
                self._followers.pop(address, None)
                if self._manager is not None and address == self._manager.address:
                    self._lost(reason)
            case _Prepared():
                self._start(message)
            case _Unprepared(order, error):
                log.error("TaskManager %d of %s cannot be started: %s", *_named(order), error)
                self._ended(order.task_manager.launch_id, f"{type(error).__name__}: {error}")
            case TaskManagerExited():
                self._exited(message)
            case Leave(reason):
                self._is_leaving = True
                self._to_leader(HostLeaving(self._spec.host_id, reason))
            case _:
                return super().on_receive(message)
        return None

    # -- the JobManager

    def _leads(self, leader: Leader | None) -> None:
        if self._leader is not None and leader != self._leader and self._registration.lost_ms is None:
            self._lost("another one leads" if leader else "it does not lead any more")
        self._leader = leader
        self._manager = None if leader is None else self.context.actor_of(f"{leader.address}/{RESOURCE_MANAGER}")
        if leader is not None:
            for follower in self._followers.values():
                self._say_who_leads(follower, leader)
            self._seek()

    def _follow(self, address: str) -> None:
        """A TaskManager that was started here. It decides for itself what it makes of another leader."""
        follower = self._followers[address] = self.context.actor_of(address)
        self.context.watch(follower)
        if self._leader is not None:
            self._say_who_leads(follower, self._leader)

    def _say_who_leads(self, follower: Ref, leader: Leader) -> None:
        follower.tell(LeaderIs(f"{leader.address}/{JOB_MANAGER}", leader.session))

    def _seek(self) -> None:
        """Begin the next registration."""
        registration = self._registration
        lost_ms = self.context.clock.now_ms() if registration.lost_ms is None else registration.lost_ms
        self._registration = _Registration(registration.number + 1, lost_ms=lost_ms)
        self._register(self._registration.number)

    def _register(self, number: int) -> None:
        registration = self._registration
        if number != registration.number or registration.session is not None or self._is_leaving:
            return
        if self._manager is None:
            return
        spec = self._spec
        self._manager.tell(
            RegisterHost(
                spec.host_id,
                number,
                self.context.self_ref.address,
                spec.host,
                spec.pid,
                spec.slots,
                tuple(each.made for each in self._running.values() if not each.is_to_end),
                own_releases(),
            )
        )
        if registration.retry_ms == FIRST_RETRY_MS * 4:  # it should have answered by now
            log.warning("no JobManager answers at %s: trying again until one does", self._where)
        self.context.schedule(registration.retry_ms, _Register(number))
        registration.retry_ms = min(2 * registration.retry_ms, LAST_RETRY_MS)

    def _registered(self, answer: AcknowledgeHost) -> None:
        registration = self._registration
        if answer.host_id != self._spec.host_id or registration.session is not None or self._manager is None:
            return
        now_ms = self.context.clock.now_ms()
        away_s = 0.0 if registration.lost_ms is None else (now_ms - registration.lost_ms) / 1000
        registration.session, registration.lost_ms = answer.leader_session_id, None
        registration.interval_ms, registration.timeout_ms = answer.heartbeat_interval_ms, answer.heartbeat_timeout_ms
        registration.heard_ms = now_ms
        log.info("registered with the JobManager at %s, after %.1f s", self._where, away_s)
        self.context.watch(self._manager)
        self._when_registered()
        self._beat(registration.number)

    def _beat(self, number: int) -> None:
        registration = self._registration
        if number != registration.number or registration.session is None:
            return
        silent_ms = self.context.clock.now_ms() - registration.heard_ms
        if silent_ms > registration.timeout_ms:
            self._lost(f"no heartbeat for {silent_ms:.0f} ms")
            return
        self._to_leader(HostHeartbeat(self._spec.host_id))
        self.context.schedule(registration.interval_ms, _Beat(number))

    def _lost(self, reason: str) -> None:
        """Said once; then it is looked for until it is back."""
        if self._registration.session is None:
            return
        log.warning("the JobManager at %s is away (%s): registering until it is back", self._where, reason)
        self._registration.session = None
        self._seek()

    @property
    def _where(self) -> str:
        return self._leader.address if self._leader else "no known address"

    def _to_leader(self, message: Any) -> None:
        session = self._registration.session
        if session is not None and self._manager is not None:
            self._manager.tell(LeaderSessionMessage(session, message))

    # -- what it orders

    def _ordered(self, message: Any) -> None:
        match message:
            case HostHeartbeat():
                pass
            case LaunchTaskManager():
                self._launch(message)
            case EndTaskManager(launch_id):
                self._end(launch_id)
            case ReleaseJob(job_id):
                self._release(job_id)
            case _:
                log.warning("dropped %s, which no JobManager sends", type(message).__name__)

    def _launch(self, order: LaunchTaskManager) -> None:
        made = order.task_manager
        if made.launch_id in self._running or self._is_leaving or self._leader is None:
            return
        self._running[made.launch_id] = _Running(made)
        prepared = self.context.run_blocking(self._make_launch, order, self._leader.address)
        self.context.pipe_to_self(
            prepared, lambda launch: _Prepared(order, launch), lambda error: _Unprepared(order, error)
        )

    def _start(self, prepared: _Prepared) -> None:
        running = self._running.get(prepared.order.task_manager.launch_id)
        if running is None:
            return
        if running.is_to_end or self._is_leaving:
            self._ended(running.made.launch_id, "it was ended before it was started")
            return
        running.is_started = True
        log.info("starts TaskManager %d of %s (%s)", *_named(prepared.order), prepared.order.job_name)
        self._task_managers.prepare(prepared.launch)
        self._task_managers.start(running.made.job_id, running.made.index)

    def _end(self, launch_id: LaunchId) -> None:
        running = self._running.get(launch_id)
        if running is None:
            return
        running.is_to_end = True
        if running.is_started:
            self._task_managers.kill(running.made.job_id, running.made.index)

    def _release(self, job_id: JobId) -> None:
        self._task_managers.forget(job_id)

    def _exited(self, message: TaskManagerExited) -> None:
        """The oldest of this index, if it was started again before its predecessor had ended."""
        for launch_id, running in self._running.items():
            made = running.made
            if (made.job_id, made.index) == (message.job_id, message.index) and running.is_started:
                log.info("TaskManager %d of %s has ended: %s", made.index, made.job_id, message.reason)
                self._ended(launch_id, message.reason)
                return

    def _ended(self, launch_id: LaunchId, reason: str) -> None:
        running = self._running.pop(launch_id)
        self._to_leader(HostedTaskManagerEnded(self._spec.host_id, launch_id, reason))
        if not any(each.made.job_id == running.made.job_id for each in self._running.values()):
            self._forget(running.made.job_id)


def _named(order: LaunchTaskManager) -> tuple[int, JobId]:
    return order.task_manager.index, order.task_manager.job_id
