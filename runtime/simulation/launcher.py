"""SimulatedLauncher: TaskManagers as processes of the simulated world."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

from ...messages import JobId, TaskManagerExited
from ..clusters.task_manager_process import TaskManagerLaunch
from .world import Process, World

_START_MS = (20.0, 400.0)
_NOTICE_MS = (1.0, 30.0)
"""How long a start, and the news of an end, may take."""

GRACE_MS = 3_000.0
"""How long released TaskManagers may take to end by themselves."""

Boot = Callable[[Process, TaskManagerLaunch, int], None]


class SimulatedLauncher:
    """`boot` starts a TaskManager in a new process; `tell` reaches the JobManager.

    A frozen process may be out of reach of a kill, as on another machine: it is given up, reported as ended, and
    may come back as a zombie.
    """

    def __init__(self, world: World, owner: Process, tell: Callable[[object], None], boot: Boot) -> None:
        self._world = world
        self._owner = owner
        self._tell = tell
        self._boot = boot
        self._chance = world.chance("launcher")
        self._launches: dict[JobId, TaskManagerLaunch] = {}
        self._living: dict[tuple[JobId, int], Process] = {}
        self._lives = itertools.count(1)

    def prepare(self, launch: TaskManagerLaunch) -> None:
        """What the TaskManagers of this job are born with."""
        self._launches[launch.job_id] = launch

    def process_of(self, index: int) -> Process | None:
        """Whoever is TaskManager `index` now."""
        return next((process for (_, place), process in self._living.items() if place == index), None)

    # ---- as Launcher

    def start(self, job_id: JobId, index: int) -> None:
        self._owner.loop.call_later(self._chance.uniform(*_START_MS) / 1000, self._start, job_id, index)

    def kill(self, job_id: JobId, index: int) -> None:
        self._owner.loop.call_later(self._chance.uniform(*_NOTICE_MS) / 1000, self._kill, job_id, index)

    def forget(self, job_id: JobId) -> None:
        self._owner.loop.call_later(GRACE_MS / 1000, self._kill_all, job_id)

    # ---- inside

    def _start(self, job_id: JobId, index: int) -> None:
        launch = self._launches.get(job_id)
        if launch is None or (job_id, index) in self._living:
            return
        process = self._world.process(f"tm-{index}-{next(self._lives)}")
        self._living[job_id, index] = process
        process.when_ended(lambda reason: self._ended(job_id, index, process, reason))
        self._boot(process, launch, index)

    def _kill(self, job_id: JobId, index: int) -> None:
        process = self._living.get((job_id, index))
        if process is None:
            return
        if process.is_frozen and self._chance.random() < 0.5:
            self._ended(job_id, index, process, "given up: it cannot be reached")
        else:
            process.kill("killed by the launcher")

    def _kill_all(self, job_id: JobId) -> None:
        self._launches.pop(job_id, None)
        for of, index in list(self._living):
            if of == job_id:
                self._kill(job_id, index)

    def _ended(self, job_id: JobId, index: int, process: Process, reason: str) -> None:
        """Also told, later, of a process that was given up; once is enough."""
        if self._living.get((job_id, index)) is process:
            with suppress(KeyError):
                del self._living[job_id, index]
            delay_s = self._chance.uniform(*_NOTICE_MS) / 1000
            self._owner.loop.call_later(delay_s, self._tell, TaskManagerExited(job_id, index, reason))
