"""Saboteur: kills a running job's TaskManagers with SIGKILL and measures how long the job takes to come back.

Fed with the job's events. It strikes a while after a completed checkpoint, and again only when the job has recovered:
when a task of a newer attempt than any before the kill has processed its first batch. The time runs from just before
the kill to that event's own timestamp, so kills are for jobs whose processes share this machine's clock.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...messages import CheckpointCompleted, FirstBatchProcessed, TaskManagerChanged, TaskManagerId

Say = Callable[[str, str], None]
"""The event as text, and its style."""


@dataclass(slots=True)
class Recovery:
    """One kill and what came of it, each in milliseconds since the epoch; 0 as long as it has not happened."""

    killed_ms: int
    lost_ms: int = 0
    """The JobManager took the TaskManager for lost."""
    registered_ms: int = 0
    """The TaskManager that takes its place registered."""
    first_batch_ms: int = 0

    @property
    def took_ms(self) -> int:
        return self.first_batch_ms - self.killed_ms


class Saboteur:
    """`kills` strikes, each `pause_s` (from, to) seconds after a checkpoint. `seed` fixes moments and victims."""

    def __init__(
        self,
        kills: int,
        *,
        seed: int | None = None,
        pause_s: tuple[float, float] = (0.1, 1.5),
        say: Say = lambda _what, _style: None,
    ) -> None:
        self.wanted = kills
        self.killed = 0
        self.recoveries: list[Recovery] = []
        """Those that are complete, in order."""
        self._pause_s = pause_s
        self._say = say
        self._random = random.Random(seed)
        self._alive: dict[TaskManagerId, TaskManagerChanged] = {}
        self._current: Recovery | None = None
        self._last_attempt = self._attempt_killed = 0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    @property
    def recovery_ms(self) -> list[int]:
        """How long each recovery took."""
        return [recovery.took_ms for recovery in self.recoveries]

    def on_event(self, event: Any) -> None:
        """One event of the job; comes on the cluster's thread, one at a time."""
        with self._lock:
            match event:
                case TaskManagerChanged():
                    self._changed(event)
                case CheckpointCompleted(final=False):
                    self._plan_next()
                case FirstBatchProcessed():
                    self._processed(event)

    def stop(self) -> None:
        """Strike no more."""
        with self._lock:
            self.wanted = self.killed
            if self._timer is not None:
                self._timer.cancel()

    def _changed(self, event: TaskManagerChanged) -> None:
        recovery = self._current
        if event.registered:
            self._alive[event.task_manager_id] = event
        else:
            self._alive.pop(event.task_manager_id, None)
        if recovery is not None and event.registered:
            recovery.registered_ms = event.timestamp_ms
        elif recovery is not None:
            recovery.lost_ms = recovery.lost_ms or event.timestamp_ms

    def _plan_next(self) -> None:
        if self._current is None and self._timer is None and self.killed < self.wanted:
            self._timer = threading.Timer(self._random.uniform(*self._pause_s), self._strike)
            self._timer.daemon = True
            self._timer.start()

    def _strike(self) -> None:
        with self._lock:
            self._timer = None
            if not self._alive or self.killed >= self.wanted:
                return
            victim = self._random.choice(sorted(self._alive.values(), key=lambda one: one.index))
            self._attempt_killed = self._last_attempt
            killed_ms = int(time.time() * 1000)
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
                self.killed += 1
                self._current = Recovery(killed_ms)
                self._say(f"kill -9 {victim.pid} (TaskManager {victim.index})", "bold red")

    def _processed(self, event: FirstBatchProcessed) -> None:
        self._last_attempt = max(self._last_attempt, event.attempt_number)
        recovery = self._current
        if recovery is not None and event.attempt_number > self._attempt_killed:
            recovery.first_batch_ms = event.timestamp_ms
            self.recoveries.append(recovery)
            self._current = None
            self._say(f"recovered: first batch {recovery.took_ms} ms after the kill", "bold green")
