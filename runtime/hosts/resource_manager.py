"""ResourceManager: the actor beside a JobManager that stands alone, to which hosts register with their slots.

It carries the HostTable's effects out, and is how this cluster's JobManager starts TaskManagers (`HostLauncher`). It
lives as long as its JobManager leads; all that it says to hosts carries the session. Flink: ResourceManager.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, assert_never

from ...actors.actor import Actor, Terminated
from ...actors.context import Ref
from ...messages import (
    AcknowledgeHost,
    EndTaskManager,
    HostedTaskManagerEnded,
    HostHeartbeat,
    HostId,
    HostLeaving,
    HostList,
    JobId,
    LaunchTaskManager,
    LeaderSessionId,
    LeaderSessionMessage,
    ListHosts,
    RegisterHost,
    ReleaseJob,
    SubmitJob,
    TaskManagerAwaited,
    TaskManagerExited,
)
from .host_table import Awaits, End, Ended, HostEffect, HostTable, Launch, Release
from .releases import differences, own_releases

log = logging.getLogger(__name__)

NAME = "resource-manager"
JOB_MANAGER = "job-manager"
"""The actors' names, on a leader's system."""


@dataclass(frozen=True, slots=True)
class _Expect:
    wanted: SubmitJob


@dataclass(frozen=True, slots=True)
class _Start:
    job_id: JobId
    index: int


@dataclass(frozen=True, slots=True)
class _Kill:
    job_id: JobId
    index: int


@dataclass(frozen=True, slots=True)
class _Abandon:
    job_id: JobId


@dataclass(frozen=True, slots=True)
class _Forget:
    job_id: JobId


@dataclass(frozen=True, slots=True)
class _Beat:
    pass


@dataclass(frozen=True, slots=True)
class HostTimes:
    heartbeat_interval_ms: int
    heartbeat_timeout_ms: int


class HostLauncher:
    """The JobManager's Launcher: what it wants goes to the ResourceManager."""

    def __init__(self, resource_manager: Ref) -> None:
        self._resource_manager = resource_manager

    def expect(self, wanted: SubmitJob) -> None:
        self._resource_manager.tell(_Expect(wanted))

    def start(self, job_id: JobId, index: int) -> None:
        self._resource_manager.tell(_Start(job_id, index))

    def kill(self, job_id: JobId, index: int) -> None:
        self._resource_manager.tell(_Kill(job_id, index))

    def abandon(self, job_id: JobId) -> None:
        self._resource_manager.tell(_Abandon(job_id))

    def forget(self, job_id: JobId) -> None:
        self._resource_manager.tell(_Forget(job_id))


@dataclass(slots=True)
class _Peer:
    name: str
    """As in the log when it came."""
    ref: Ref
    heard_ms: float


class ResourceManager(Actor):
    """One leader's."""

    def __init__(
        self,
        session: LeaderSessionId,
        job_manager: Ref,
        times: HostTimes,
    ) -> None:
        self._session = session
        self._job_manager = job_manager
        self._times = times
        self._jobs: dict[JobId, SubmitJob] = {}
        self._peers: dict[HostId, _Peer] = {}

    def on_start(self) -> None:
        self._table = HostTable(self.context.new_id)
        self.context.schedule(self._times.heartbeat_interval_ms, _Beat())

    def on_receive(self, message: Any) -> Any:
        match message:
            case RegisterHost():
                self._register(message)
            case LeaderSessionMessage(session, inner):
                self._from_host(session, inner)
            case Terminated(address=address, reason=reason):
                self._unreachable(address, reason)
            case _Expect(begun):
                self._jobs[begun.graph.job_id] = begun
            case _Start(job_id, index):
                if (wanted := self._jobs.get(job_id)) is not None:
                    self._carry_out(self._table.want(job_id, index, wanted.slots_per_task_manager))
            case _Kill(job_id, index):
                self._carry_out(self._table.kill(job_id, index))
            case _Abandon(job_id):
                self._carry_out(self._table.abandon(job_id))
            case _Forget(job_id):
                self._forget(job_id)
            case _Beat():
                self._beat()
            case ListHosts():
                table = self._table
                return HostList(table.summaries(), table.waiting(), table.awaited, own_releases())
            case _:
                return super().on_receive(message)
        return None

    # -- hosts

    def _register(self, message: RegisterHost) -> None:
        try:
            ref = self.context.actor_of(message.control_address)
        except ValueError as error:
            log.warning("host %s cannot be registered: %s", message.host, error)
            return
        is_new = not self._table.is_known(message.host_id)
        name = f"{message.host} (process {message.pid})"
        self._peers[message.host_id] = _Peer(name, ref, self.context.clock.now_ms())
        self.context.watch(ref)
        ref.tell(
            AcknowledgeHost(
                self._session, message.host_id, self._times.heartbeat_interval_ms, self._times.heartbeat_timeout_ms
            )
        )
        if is_new:
            log.info("host %s is here with %d slots", name, message.slots)
            if others := differences(message.releases, own_releases()):
                log.warning(
                    "host %s runs %s: install the same on all hosts, unless an upgrade is under way "
                    "(docs/upgrades.md); state and records pass between them",
                    message.host,
                    others,
                )
        self._carry_out(self._table.register(message))

    def _from_host(self, session: LeaderSessionId, message: Any) -> None:
        if session != self._session:
            log.warning("dropped %s of leader session %s", type(message).__name__, session)
            return
        if (peer := self._peers.get(message.host_id)) is not None:
            peer.heard_ms = self.context.clock.now_ms()
            if self._table.heard(message.host_id):
                self.context.watch(peer.ref)
        match message:
            case HostHeartbeat():
                pass
            case HostedTaskManagerEnded(host_id, launch_id, reason):
                self._carry_out(self._table.ended(host_id, launch_id, reason))
            case HostLeaving(host_id, reason):
                self._lose(host_id, f"leaves: {reason}")
            case _:
                log.warning("dropped %s, which no host sends", type(message).__name__)

    def _unreachable(self, address: str, reason: str) -> None:
        """It may be back, or is lost when it is silent for too long."""
        for host_id, peer in self._peers.items():
            if peer.ref.address == address:
                log.warning("host %s cannot be reached: %s", peer.name, reason)
                self._table.unreachable(host_id)

    def _lose(self, host_id: HostId, reason: str) -> None:
        if (peer := self._peers.pop(host_id, None)) is not None:
            log.warning("host %s %s", peer.name, reason)
        self._carry_out(self._table.lose(host_id, reason))

    def _beat(self) -> None:
        now_ms = self.context.clock.now_ms()
        for host_id, peer in list(self._peers.items()):
            silent_ms = now_ms - peer.heard_ms
            if silent_ms > self._times.heartbeat_timeout_ms:
                self._lose(host_id, f"sent no heartbeat for {silent_ms:.0f} ms")
            else:
                self._say(host_id, HostHeartbeat(host_id))
        self.context.schedule(self._times.heartbeat_interval_ms, _Beat())

    # -- jobs

    def _forget(self, job_id: JobId) -> None:
        self._carry_out(self._table.forget(job_id))
        self._jobs.pop(job_id, None)

    # -- effects

    def _carry_out(self, effects: list[HostEffect]) -> None:
        for effect in effects:
            match effect:
                case Launch():
                    self._launch(effect)
                case End(host_id, launch_id):
                    self._say(host_id, EndTaskManager(launch_id))
                case Release(host_id, job_id):
                    self._say(host_id, ReleaseJob(job_id))
                case Ended(job_id, index, reason):
                    self._job_manager.tell(TaskManagerExited(job_id, index, reason))
                case Awaits(job_id, index, why):
                    log.info("TaskManager %d of %s waits: %s", index, job_id, why)
                    self._job_manager.tell(TaskManagerAwaited(job_id, index, why))
                case _:
                    assert_never(effect)

    def _launch(self, effect: Launch) -> None:
        made = effect.task_manager
        wanted = self._jobs.get(made.job_id)
        if wanted is None or wanted.program is None:
            why = "its job was submitted without its code: use `understudy submit`, or StandaloneCluster"
            self._carry_out(self._table.ended(effect.host_id, made.launch_id, why))
            return
        graph = wanted.graph
        order = LaunchTaskManager(
            made,
            graph.name,
            wanted.program,
            graph.checkpoints,
            graph.state_backend,
            graph.buffer_timeout_ms,
            graph.slow_step_ms,
            graph.watermark_warn_ms,
        )
        self._say(effect.host_id, order)

    def _say(self, host_id: HostId, message: Any) -> None:
        if (peer := self._peers.get(host_id)) is not None:
            peer.ref.tell(LeaderSessionMessage(self._session, message))
