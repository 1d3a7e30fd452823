"""HostTable: which hosts are here, which TaskManagers run on them, and which wait for free slots.

A value machine: events in, effects out. A TaskManager of a job is

    wanted -> waiting -> placed on a host -> ended
                  '--------- ended: it was ended before it had a place

Every TaskManager that was wanted ends once, and that is reported once (`Ended`), whatever becomes of its host.

A host whose connection broke is *unreachable* first: nothing new is placed there, but what runs there may run on, as
its connections to the JobManager are its own. It speaks or registers again, or is lost. A TaskManager that is to be
ended by force there is given up at once, so that a job does not wait for a host that may never come back.

Flink: SlotManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ...messages import AwaitedTaskManager, HostedTaskManager, HostId, HostSummary, JobId, LaunchId, RegisterHost
from ...messages.counted import counted


@dataclass(frozen=True, slots=True)
class Launch:
    """Start this TaskManager on that host."""

    host_id: HostId
    task_manager: HostedTaskManager


@dataclass(frozen=True, slots=True)
class End:
    """End it there by force."""

    host_id: HostId
    launch_id: LaunchId


@dataclass(frozen=True, slots=True)
class Release:
    """The job is over for that host."""

    host_id: HostId
    job_id: JobId


@dataclass(frozen=True, slots=True)
class Ended:
    """TaskManager `index` of the job is gone: the JobManager is to know."""

    job_id: JobId
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Awaits:
    """TaskManager `index` of the job waits for free slots."""

    job_id: JobId
    index: int
    why: str


HostEffect: TypeAlias = Launch | End | Release | Ended | Awaits


@dataclass(slots=True)
class _Host:
    registration: RegisterHost
    running: dict[LaunchId, HostedTaskManager] = field(default_factory=dict)
    is_reachable: bool = True

    @property
    def free(self) -> int:
        return self.registration.slots - sum(each.slots for each in self.running.values())

    def count_of(self, job_id: JobId) -> int:
        return sum(each.job_id == job_id for each in self.running.values())


class HostTable:
    """One cluster's. `new_id` makes the ids of launches."""

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self._new_id = new_id
        self._hosts: dict[HostId, _Host] = {}
        self._waiting: list[AwaitedTaskManager] = []
        self._given_up: set[LaunchId] = set()
        """They were reported as ended while their processes may have been alive."""
        self._abandoned: set[JobId] = set()
        """What earlier leaders have started for these jobs is not wanted."""

    # -- hosts

    def register(self, message: RegisterHost) -> list[HostEffect]:
        """A host is here, for the first time or again. A repeat changes nothing."""
        known = self._hosts.get(message.host_id)
        if known is not None and known.registration.number >= message.number:
            return []
        effects: list[HostEffect] = []
        claimed = {each.launch_id: each for each in message.running}
        host = _Host(message)
        if known is not None:
            for launch_id, each in known.running.items():
                if launch_id not in claimed:  # the order to start it was lost with the connection, or is undone
                    self._given_up.add(launch_id)
                    effects += [
                        End(message.host_id, launch_id),
                        Ended(each.job_id, each.index, "its host never started it"),
                    ]
        self._hosts[message.host_id] = host
        ours = {} if known is None else known.running
        for launch_id, each in sorted(claimed.items(), key=lambda item: item[0] not in ours):
            if launch_id in self._given_up or (launch_id not in ours and self._is_unwanted(each)):
                self._given_up.add(launch_id)
                effects.append(End(message.host_id, launch_id))
                continue
            host.running[launch_id] = each
            self._drop_waiting(each.job_id, each.index)
        return [*effects, *self._place_waiting()]

    def _is_unwanted(self, claimed: HostedTaskManager) -> bool:
        """One of an earlier leader: its job was started again, or its place is taken."""
        return claimed.job_id in self._abandoned or self._place_of(claimed.job_id, claimed.index) is not None

    def is_known(self, host_id: HostId) -> bool:
        return host_id in self._hosts

    def unreachable(self, host_id: HostId) -> None:
        """Its connection broke."""
        if (host := self._hosts.get(host_id)) is not None:
            host.is_reachable = False

    def heard(self, host_id: HostId) -> bool:
        """It has spoken; whether it is back, as it could not be reached before."""
        host = self._hosts.get(host_id)
        if host is None or host.is_reachable:
            return False
        host.is_reachable = True
        return True

    def lose(self, host_id: HostId, reason: str) -> list[HostEffect]:
        """It is gone, and so is everything on it."""
        host = self._hosts.pop(host_id, None)
        if host is None:
            return []
        self._given_up.update(host.running)
        why = f"its host {host.registration.host} (process {host.registration.pid}) {reason}"
        return [Ended(each.job_id, each.index, why) for each in host.running.values()]

    # -- TaskManagers

    def want(self, job_id: JobId, index: int, slots: int) -> list[HostEffect]:
        """Start it as soon as a host has the slots. One that runs already, as it has outlived a JobManager, is kept."""
        if self._place_of(job_id, index) is not None:
            return []
        wanted = AwaitedTaskManager(job_id, index, slots)
        if wanted not in self._waiting:
            self._waiting.append(wanted)
        effects = self._place_waiting()
        if wanted in self._waiting:
            effects.append(Awaits(job_id, index, self._why(wanted)))
        return effects

    def kill(self, job_id: JobId, index: int) -> list[HostEffect]:
        """End it by force, wherever it is."""
        if self._drop_waiting(job_id, index):
            return [Ended(job_id, index, "it was ended before a host had a free slot for it")]
        effects: list[HostEffect] = []
        for host_id, launch_id, each in list(self._all()):
            if (each.job_id, each.index) == (job_id, index):
                effects.append(End(host_id, launch_id))
                if not self._hosts[host_id].is_reachable:
                    self._given_up.add(launch_id)
                    own = self._hosts[host_id].registration
                    why = f"given up: process {own.pid} on {own.host}, which had started it, cannot be reached"
                    effects += self.ended(host_id, launch_id, why)
        return effects

    def ended(self, host_id: HostId, launch_id: LaunchId, reason: str) -> list[HostEffect]:
        """Its process is gone; an unknown one is one that was given up."""
        host = self._hosts.get(host_id)
        each = None if host is None else host.running.pop(launch_id, None)
        if each is None:
            return []
        return [Ended(each.job_id, each.index, reason), *self._place_waiting()]

    def abandon(self, job_id: JobId) -> list[HostEffect]:
        """End all that earlier leaders have started for the job, also on hosts that register later. No end of these is
        reported: the job begins as if nothing had been there.
        """
        self._abandoned.add(job_id)
        effects: list[HostEffect] = []
        for host_id, launch_id, each in list(self._all()):
            if each.job_id == job_id:
                self._given_up.add(launch_id)
                del self._hosts[host_id].running[launch_id]
                effects.append(End(host_id, launch_id))
        return effects

    def forget(self, job_id: JobId) -> list[HostEffect]:
        """The job is over."""
        self._waiting = [each for each in self._waiting if each.job_id != job_id]
        return [Release(host_id, job_id) for host_id, host in self._hosts.items() if host.count_of(job_id)]

    # -- what is shown

    def summaries(self) -> tuple[HostSummary, ...]:
        """Of the hosts that can be reached."""
        return tuple(
            HostSummary(
                host_id,
                host.registration.host,
                host.registration.pid,
                host.registration.slots,
                host.free,
                tuple(host.running.values()),
            )
            for host_id, host in self._hosts.items()
            if host.is_reachable
        )

    @property
    def awaited(self) -> tuple[AwaitedTaskManager, ...]:
        """What waits for slots, in the order in which it came."""
        return tuple(self._waiting)

    def waiting(self) -> tuple[str, ...]:
        """What waits, and why, a line each."""
        return tuple(f"TaskManager {each.index} of {each.job_id}: {self._why(each)}" for each in self._waiting)

    # -- inside

    def _all(self) -> Iterator[tuple[HostId, LaunchId, HostedTaskManager]]:
        for host_id, host in self._hosts.items():
            for launch_id, each in host.running.items():
                yield host_id, launch_id, each

    def _place_of(self, job_id: JobId, index: int) -> _Host | None:
        for host_id, _, each in self._all():
            if (each.job_id, each.index) == (job_id, index):
                return self._hosts[host_id]
        return None

    def _drop_waiting(self, job_id: JobId, index: int) -> bool:
        before = len(self._waiting)
        self._waiting = [each for each in self._waiting if (each.job_id, each.index) != (job_id, index)]
        return len(self._waiting) < before

    def _place_waiting(self) -> list[HostEffect]:
        """All that fit, in the order in which they came; one that does not fit holds no other up."""
        effects: list[HostEffect] = []
        for wanted in list(self._waiting):
            host = self._best_for(wanted)
            if host is None:
                continue
            self._waiting.remove(wanted)
            launch_id = LaunchId(self._new_id("launch"))
            made = HostedTaskManager(launch_id, wanted.job_id, wanted.index, wanted.slots)
            host.running[launch_id] = made
            effects.append(Launch(host.registration.host_id, made))
        return effects

    def _best_for(self, wanted: AwaitedTaskManager) -> _Host | None:
        """Spread a job over hosts first, so that the loss of one costs least; then fill the emptiest."""
        fit = [host for host in self._hosts.values() if host.is_reachable and host.free >= wanted.slots]
        return min(fit, key=lambda host: (host.count_of(wanted.job_id), -host.free), default=None)

    def _why(self, wanted: AwaitedTaskManager) -> str:
        slots = counted(wanted.slots, "free slot")
        here = [host for host in self._hosts.values() if host.is_reachable]
        if not here:
            return f"it needs {slots}, and no TaskManager process is here: start one with `understudy taskmanager`"
        each = ", ".join(f"{host.free} of {host.registration.slots} on {host.registration.host}" for host in here)
        return f"it needs {slots} on one host, and free are {each}: start more with `understudy taskmanager`"
