"""StorageConditions: how the simulated disk does at the moment, and who may use it."""

from __future__ import annotations

import errno
from collections.abc import Callable

from .disk import DiskOperation, TornWrite
from .power import PowerSwitch
from .world import Process, ProcessKilled, World

_CHANGES = ("write", "rename", "remove")
"""What a trace shows; the rest is of no consequence."""

_DELAY_MS = (0.2, 8.0)

_PAUSES = 0.03
"""The probability with which a thread is interrupted before an operation."""

_PAUSE_MS = (1.0, 10.0, 100.0)
"""For how long at most."""


class StorageConditions:
    """The disk asks before each operation. Reading from outside of the world is never disturbed."""

    def __init__(self, world: World, stored: Callable[[str], None]) -> None:
        """`stored(path)` is called before every rename that will succeed."""
        self.extra_ms = 0.0
        """How much longer each piece of work always takes."""
        self.slowdowns_ms: list[float] = []
        """And how much longer on top of that, for the time being."""
        self.failures: list[float] = []
        """Probabilities with which an operation fails; the worst counts."""
        self.full: list[float] = []
        """One entry for each fault that lets the disk take nothing more."""
        self.when_removed: Callable[[str], None] = lambda _: None
        """Called for every file that is about to be removed by somebody in the world."""
        self.power = PowerSwitch(world)
        """Asked before each operation: the power may fail after a sync."""
        self._world = world
        self._stored = stored
        self._chance = world.chance("storage")
        self._chance_of_pause = world.chance("pauses")

    def delay_ms(self, process: Process) -> float:
        """How long this process's next piece of work with files takes."""
        slow_ms = sum(self.slowdowns_ms) + sum(process.slow_files_ms)
        return self._chance.uniform(*_DELAY_MS) + self.extra_ms + slow_ms

    def before(self, operation: DiskOperation) -> None:
        process = self._world.current
        if process is None:
            return
        try:
            self._permit(operation, process)
        except BaseException:
            self._tell(process, f"{operation.kind} refused", operation)
            raise
        if operation.kind in _CHANGES:
            self._tell(process, operation.kind, operation)

    def _tell(self, process: Process, what: str, operation: DiskOperation) -> None:
        if operation.kind in _CHANGES:
            self._world.trace.add(process.name, what, operation.path, operation.target or operation.size_bytes)

    def _permit(self, operation: DiskOperation, process: Process) -> None:
        self.power.before(operation, process)
        was_alive = process.is_alive
        try:
            process.operate()
        except ProcessKilled as killed:
            if operation.kind == "write" and was_alive:
                raise TornWrite(self._some_of(operation), killed) from None
            raise
        if self._chance_of_pause.random() < _PAUSES:
            self._world.pause(process, self._chance_of_pause.choice(_PAUSE_MS) * self._chance_of_pause.random())
        if self.failures and self._chance.random() < max(self.failures):
            error = OSError(errno.EIO, "the simulated disk failed", operation.path)
            if operation.kind == "write":
                raise TornWrite(self._some_of(operation), error)
            raise error
        if self.full and operation.kind == "write" and operation.size_bytes:
            raise TornWrite(
                self._some_of(operation), OSError(errno.ENOSPC, "the simulated disk is full", operation.path)
            )
        if operation.kind == "rename":
            self._stored(operation.target)
        elif operation.kind == "remove":
            self.when_removed(operation.path)

    def _some_of(self, operation: DiskOperation) -> int:
        return self._chance.randint(0, operation.size_bytes)
