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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ...messages import TaskManagerChanged
from ..oracles import Violation
from .faults import Cut, Disk, Fault, Freeze, FullDisk, Kill, Round, Slow, Stall, Target
from .observer import Observer
from .proxied_cluster import Links
from .proxy import Link
from .small_disk import SmallDisk

LIVENESS_S = 90.0
TROUBLE_S = 2.0
"""How long a fault that is to come on top of another one waits for the other to be noticed."""
TOP_UP_EVERY_S = 0.02
_CHECKPOINTS = 2

Say = Callable[[str, str], None]
"""The event as text, and its style."""


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
    on_top: bool = False
    """It came during the recovery from another one."""
    recovery_ms: int | None = None
    """Until the first batch of a later attempt; None if it cost none, or another fault came meanwhile."""


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
        self._measure(self.injected[first:])

    def _trouble(self) -> int:
        return self._observer.losses + self._observer.restarts

    def _wait_for_trouble(self, before: int) -> None:
        self._observer.wait_for(lambda: self._trouble() > before, TROUBLE_S)

    def _settle(self, when: str) -> None:
        observer = self._observer
        before = observer.checkpoints
        if not observer.wait_for_checkpoints(_CHECKPOINTS, LIVENESS_S):
            raise NotLive(
                f"{when}: {observer.checkpoints - before} of {_CHECKPOINTS} checkpoints completed within "
                f"{LIVENESS_S:.0f} s; the job is {observer.status.value}, {len(observer.alive)} TaskManagers are "
                f"registered, and the last aborted checkpoints were {observer.aborted[-3:]}"
            )

    def _measure(self, injected: list[Injected]) -> None:
        """From the last fault of the round, which is alone with what comes after it."""
        last = injected[-1]
        attempts = sorted(self._observer.first_batch_ms.items())
        later = [at_ms for number, at_ms in attempts if number > last.attempt and at_ms >= last.at_ms]
        if not later:
            return
        last.recovery_ms = (later[0] if len(injected) == 1 else later[-1]) - last.at_ms
        last.on_top = len(injected) > 1
        self._say(f"recovered in {last.recovery_ms} ms from: {last.what}", "green")

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
                self._hold(link, link.stall, seconds)
            case Slow(target, seconds, delay_ms, rate):
                name, link = self._link(target)
                self._note("slow", f"the link to {name}: {delay_ms:.0f} ms, {rate / 1000:.0f} kB/s for {seconds:.1f} s")
                self._hold(link, lambda: link.slow(delay_ms, rate), seconds)
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

        def cut() -> None:
            link.refuse(seconds > 0)
            noted.what += f" ({link.cut()} connections)"

        self._hold(link, cut, seconds)

    def _hold(self, link: Link, harm: Callable[[], None], seconds: float) -> None:
        """The link is whole again after this, whatever happens."""
        try:
            harm()
            time.sleep(seconds)
        finally:
            link.heal()

    def _fill(self, disk: Disk, seconds: float) -> None:
        """Take what is freed meanwhile too."""
        small = self._disks[disk]
        try:
            small.fill()
            self._note("full-disk", f"the disk of the {disk.value} is full for {seconds:.1f} s")
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                time.sleep(TOP_UP_EVERY_S)
                small.fill()
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
        found: list[TaskManagerChanged] = []

        def some_live() -> bool:  # looked at between two events, so what it found stays true for a moment
            found[:] = [one for one in self._observer.alive.values() if self._is_ours(one.pid)]
            return bool(found)

        if not self._observer.wait_for(some_live, LIVENESS_S):
            raise NotLive(f"no TaskManager within {LIVENESS_S:.0f} s; the job is {self._observer.status.value}")
        return self._random.choice(sorted(found, key=lambda one: one.index))

    def _link(self, target: Target) -> tuple[str, Link]:
        job_manager = self._links.job_manager()
        if target is Target.JOB_MANAGER and job_manager is not None:
            return "the JobManager", job_manager
        while True:
            victim = self._victim()
            if (links := self._links.task_managers().get(victim.task_manager_id)) is not None:
                link = links.data if target is Target.DATA else links.control
                return f"TaskManager {victim.index}'s {'data plane' if target is Target.DATA else 'actor'}", link
