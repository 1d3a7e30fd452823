"""StorageConditions: how the simulated disk does at the moment, and who may use it."""

from __future__ import annotations

import errno
from collections.abc import Callable

from .disk import DiskOperation, TornWrite
from .world import Process, ProcessKilled, World

_CHANGES = ("write", "rename", "remove")
"""What a trace shows; the rest is of no consequence."""

_DELAY_MS = (0.2, 8.0)


class StorageConditions:
    """The disk asks before each operation. Reading from outside of the world is never disturbed."""

    def __init__(self, world: World, stored: Callable[[str], None]) -> None:
        """`stored(path)` is told of every rename that is about to succeed."""
        self.extra_ms = 0.0
        self.failing = 0.0
        """The probability with which an operation fails."""
        self._world = world
        self._stored = stored
        self._chance = world.chance("storage")

    def delay_ms(self) -> float:
        """How long the next piece of work with files takes."""
        return self._chance.uniform(*_DELAY_MS) + self.extra_ms

    def before(self, operation: DiskOperation) -> None:
        process = self._world.current
        if process is None:
            return
        try:
            self._permit(operation, process)
        except BaseException:
            self._tell(process, f"{operation.kind} refused", operation)
            raise
        self._tell(process, operation.kind, operation)

    def _tell(self, process: Process, what: str, operation: DiskOperation) -> None:
        if operation.kind in _CHANGES:
            self._world.trace.add(process.name, what, operation.path, operation.target or operation.size_bytes)

    def _permit(self, operation: DiskOperation, process: Process) -> None:
        was_alive = process.is_alive
        try:
            process.operate()
        except ProcessKilled as killed:
            if operation.kind == "write" and was_alive:
                raise TornWrite(self._some_of(operation), killed) from None
            raise
        if self.failing and self._chance.random() < self.failing:
            error = OSError(errno.EIO, "the simulated disk failed", operation.path)
            if operation.kind == "write":
                raise TornWrite(self._some_of(operation), error)
            raise error
        if operation.kind == "rename":
            self._stored(operation.target)

    def _some_of(self, operation: DiskOperation) -> int:
        return self._chance.randint(0, operation.size_bytes)
