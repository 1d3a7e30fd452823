"""SimulatedLauncher: TaskManagers as processes of the simulated world."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from ....messages import JobId, SubmitJob, TaskManagerExited
from ...clusters.task_manager_process import TaskManagerLaunch
from .world import Process, World

_START_MS = (20.0, 400.0)
_NOTICE_MS = (1.0, 30.0)
"""How long a start, and the news of an end, may take."""

GRACE_MS = 3_000.0
"""How long released TaskManagers may take to end by themselves."""

Boot = Callable[[Process, TaskManagerLaunch, int], None]
Place = tuple[JobId, int]


class SimulatedLauncher:
    """`boot` starts a TaskManager in a new process; `tell` reaches the JobManager.

    A process that is frozen, or cut off from the JobManager (`is_cut_off`), may be out of reach of a kill, as on
    another machine: it is given up and reported as ended, and may come back as a zombie, or go on as one. Its successor
    is on another host then; otherwise on the same one.
    """

    def __init__(
        self,
        world: World,
        owner: Process,
        tell: Callable[[object], None],
        boot: Boot,
        is_cut_off: Callable[[Process, Process], bool] = lambda _one, _other: False,
        start_ms: tuple[float, float] = _START_MS,
    ) -> None:
        self._world = world
        self._owner = owner
        self._tell = tell
        self._boot = boot
        self._chance = world.chance("launcher")
        self._is_cut_off = is_cut_off
        self._start_ms = start_ms
        self._launches: dict[JobId, TaskManagerLaunch] = {}
        self._starting: dict[Place, asyncio.TimerHandle] = {}
        self._living: dict[Place, Process] = {}
        self.zombies: list[Process] = []
        """Those that were given up, dead or alive."""
        self._lives = itertools.count(1)
        self._is_over = False
        """Hosts take orders of another leader."""

    def prepare(self, launch: TaskManagerLaunch) -> None:
        """The start parameters of this job's TaskManagers."""
        self._launches[launch.job_id] = launch

    def process_of(self, index: int) -> Process | None:
        """Whoever is TaskManager `index` now."""
        return next((process for (_, place), process in self._living.items() if place == index), None)

    # ---- as Launcher

    def expect(self, wanted: SubmitJob) -> None:
        """All is prepared."""

    def start(self, job_id: JobId, index: int) -> None:
        delay_s = self._chance.uniform(*self._start_ms) / 1000
        launch = self._launches[job_id]
        self._starting[job_id, index] = self._owner.loop.call_later(delay_s, self._start, launch, index)

    def kill(self, job_id: JobId, index: int) -> None:
        self._owner.loop.call_later(self._chance.uniform(*_NOTICE_MS) / 1000, self._kill, job_id, index)

    def inherit(self, earlier: SimulatedLauncher) -> None:
        """What another leader has started and lives still is this one's from now on, as hosts report it. That one's
        orders are heard no more.
        """
        for place, process in earlier._living.items():
            self._keep(place, process)
        self.zombies += earlier.zombies
        earlier._living.clear()
        earlier._is_over = True

    def abandon(self, job_id: JobId) -> None:
        """Nothing is reported of these."""
        for place, process in [(place, process) for place, process in self._living.items() if place[0] == job_id]:
            del self._living[place]
            self._owner.loop.call_later(self._chance.uniform(*_NOTICE_MS) / 1000, self._put_away, process)

    def forget(self, job_id: JobId) -> None:
        self._launches.pop(job_id, None)
        self._owner.loop.call_later(GRACE_MS / 1000, self._kill_all, job_id)

    # ---- inside

    def _start(self, launch: TaskManagerLaunch, index: int) -> None:
        place = launch.job_id, index
        self._starting.pop(place, None)
        if self._is_over:
            return
        host = f"host-{index}"
        while any(zombie.host == host for zombie in self.zombies):
            host += "'"
        process = self._world.process(self._new_name(index), host)
        self._keep(place, process)
        self._boot(process, launch, index)

    def _keep(self, place: Place, process: Process) -> None:
        self._living[place] = process
        process.when_ended(lambda reason: self._ended(place, process, reason))

    def _new_name(self, index: int) -> str:
        """That no TaskManager of another JobManager has had either."""
        taken = {process.name for process in self._world.processes}
        return next(name for life in self._lives if (name := f"tm-{index}-{life}") not in taken)

    def _kill(self, job_id: JobId, index: int) -> None:
        place = job_id, index
        starting, process = self._starting.pop(place, None), self._living.get(place)
        if starting is not None:
            starting.cancel()
            self._notify(place, "killed by the launcher")
        if process is None:
            return
        if not self._put_away(process):
            self._ended(place, process, "given up: it cannot be reached")

    def _put_away(self, process: Process) -> bool:
        """Kill it, if it can be reached."""
        is_far = process.is_frozen or self._is_cut_off(self._owner, process)
        if is_far and self._chance.random() < 0.5:
            self.zombies.append(process)
            return False
        process.kill("killed by the launcher")
        return True

    def _kill_all(self, job_id: JobId) -> None:
        for of, index in [*self._living, *self._starting]:
            if of == job_id:
                self._kill(job_id, index)

    def _ended(self, place: Place, process: Process, reason: str) -> None:
        """Also called, later, for a process that was given up; once is enough."""
        if self._living.get(place) is process:
            del self._living[place]
            self._notify(place, reason)

    def _notify(self, place: Place, reason: str) -> None:
        delay_s = self._chance.uniform(*_NOTICE_MS) / 1000
        self._owner.loop.call_later(delay_s, self._tell, TaskManagerExited(*place, reason))
