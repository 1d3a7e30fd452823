"""Injector: carries out a plan of faults on a running job, and sees that the job recovers from each round of them.

Recovered means: two more checkpoints have completed since the last fault of the round was over. One may have been
under way when the fault came; the other takes every task, and every channel between them. A job that does not get
there within `LIVENESS_S` is a violation, and ends the run.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...messages import TaskManagerChanged
from ..simulation.oracles import Violation
from .faults import Cut, Disk, Fault, Freeze, FullDisk, Kill, Round, Slow, Stall, Target
from .observer import Observer
from .proxied_cluster import Links
from .proxy import Link
from .small_disk import SmallDisk

LIVENESS_S = 90.0
TROUBLE_S = 5.0
"""How long a fault that is to come on top of another one waits for the other to be noticed."""
TOP_UP_EVERY_S = 0.02
_CHECKPOINTS = 2

Say = Callable[[str, str], None]
"""What happens, for people, and its style."""


@dataclass(slots=True)
class Injected:
    """One fault that was carried out, and what came of it."""

    kind: str
    what: str
    at_s: float
    """Since the run began."""
    at_ms: int
    """Since the epoch."""
    attempt: int
    """The attempt that was at work."""
    recovery_ms: int | None = None
    """Until the first batch of a later attempt; None if it cost none."""


class NotLive(Exception):
    """The job did not come back, or ended."""


class Injector:
    """One run's. `is_ours` says whether a process may be signalled."""

    def __init__(
        self,
        observer: Observer,
        links: Links,
        disks: Mapping[Disk, SmallDisk],
        is_ours: Callable[[int], bool],
        seed: int,
        say: Say,
    ) -> None:
        self.injected: list[Injected] = []
        self._observer = observer
        self._links = links
        self._disks = disks
        self._is_ours = is_ours
        self._random = random.Random(seed)
        self._say = say
        self._started = time.monotonic()

    def run(self, rounds: Iterable[Round]) -> Violation | None:
        """Carry out all rounds, one after the other."""
        try:
            self._settle("at the start")
            for strikes in rounds:
                self._round(strikes)
        except NotLive as error:
            return Violation("liveness", str(error))
        return None

    # -- one round

    def _round(self, strikes: Round) -> None:
        first = len(self.injected)
        before = 0
        for number, strike in enumerate(strikes):
            if number > 0:
                self._wait_for_trouble(before)
            time.sleep(strike.pause_s)
            before = self._trouble()
            self._strike(strike.fault)
        self._settle(f"after {strikes}")
        for injected in self.injected[first:]:
            self._measure(injected)

    def _trouble(self) -> int:
        return self._observer.losses + self._observer.restarts

    def _wait_for_trouble(self, before: int) -> None:
        self._observer.wait_for(lambda: self._trouble() > before, TROUBLE_S)

    def _settle(self, when: str) -> None:
        observer = self._observer
        before = observer.checkpoints
        if not observer.wait_for(lambda: observer.checkpoints >= before + _CHECKPOINTS, LIVENESS_S):
            raise NotLive(
                f"{when}: {observer.checkpoints - before} of {_CHECKPOINTS} checkpoints completed within "
                f"{LIVENESS_S:.0f} s; the job is {observer.status.value}, {len(observer.alive)} TaskManagers are "
                f"registered, and the last aborted checkpoints were {observer.aborted[-3:]}"
            )

    def _measure(self, injected: Injected) -> None:
        later = [
            first_ms
            for attempt, first_ms in self._observer.first_batch_ms.items()
            if attempt > injected.attempt and first_ms >= injected.at_ms
        ]
        if later:
            injected.recovery_ms = min(later) - injected.at_ms
            self._say(f"recovered in {injected.recovery_ms} ms from: {injected.what}", "green")

    # -- one fault

    def _strike(self, fault: Fault) -> None:
        match fault:
            case Kill():
                self._signal(signal.SIGKILL, "kill", "SIGKILL")
            case Freeze(seconds):
                self._freeze(seconds)
            case Cut(target, seconds):
                self._cut(target, seconds)
            case Stall(target, seconds):
                name, link = self._link(target)
                self._note("stall", f"the link to {name} stalls for {seconds:.1f} s")
                with _healed(link):
                    link.stall()
                    time.sleep(seconds)
            case Slow(target, seconds):
                name, link = self._link(target)
                self._note("slow", f"the link to {name} is slow for {seconds:.1f} s: {fault}")
                with _healed(link):
                    link.slow(fault.delay_ms, fault.bytes_per_second)
                    time.sleep(seconds)
            case FullDisk(disk, seconds):
                self._fill(disk, seconds)

    def _signal(self, number: signal.Signals, kind: str, what: str) -> TaskManagerChanged:
        """Send a signal to a TaskManager that lives, once there is one."""
        while True:
            victim = self._victim()
            noted = self._note(kind, f"{what} to TaskManager {victim.index} (process {victim.pid})")
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, number)
                return victim
            self.injected.remove(noted)

    def _freeze(self, seconds: float) -> None:
        victim = self._signal(signal.SIGSTOP, "freeze", f"SIGSTOP for {seconds:.1f} s")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._is_ours(victim.pid):
            time.sleep(0.02)
        if self._is_ours(victim.pid):
            os.kill(victim.pid, signal.SIGCONT)

    def _cut(self, target: Target, seconds: float) -> None:
        name, link = self._link(target)
        noted = self._note("cut", f"the link to {name} is cut for {seconds:.1f} s")
        with _healed(link):
            link.refuse(seconds > 0)
            noted.what += f" ({link.cut()} connections)"
            time.sleep(seconds)

    def _fill(self, disk: Disk, seconds: float) -> None:
        """Take what is freed meanwhile too."""
        small = self._disks[disk]
        self._note("full-disk", f"the disk of the {disk.value} is full for {seconds:.1f} s")
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                small.fill()
                time.sleep(TOP_UP_EVERY_S)
        finally:
            small.free()

    def _note(self, kind: str, what: str) -> Injected:
        at_s = round(time.monotonic() - self._started, 3)
        noted = Injected(kind, what, at_s, int(time.time() * 1000), self._observer.attempt)
        self.injected.append(noted)
        self._say(f"{at_s:8.2f} s  {what}", "bold red")
        return noted

    # -- who is hit

    def _victim(self) -> TaskManagerChanged:
        def living() -> list[TaskManagerChanged]:
            found = [one for one in self._observer.alive.values() if self._is_ours(one.pid)]
            return sorted(found, key=lambda one: one.index)

        if not self._observer.wait_for(lambda: bool(living()), LIVENESS_S):
            raise NotLive(f"no TaskManager within {LIVENESS_S:.0f} s; the job is {self._observer.status.value}")
        return self._random.choice(living())

    def _link(self, target: Target) -> tuple[str, Link]:
        job_manager = self._links.job_manager()
        if target is Target.JOB_MANAGER and job_manager is not None:
            return "the JobManager", job_manager
        while True:
            victim = self._victim()
            if (links := self._links.task_managers().get(victim.task_manager_id)) is not None:
                link = links.data if target is Target.DATA else links.control
                return f"TaskManager {victim.index}'s {'data plane' if target is Target.DATA else 'actor'}", link


@contextlib.contextmanager
def _healed(link: Link) -> Iterator[None]:
    """The link is whole again after this."""
    try:
        yield
    finally:
        link.heal()
