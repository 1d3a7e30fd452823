"""PowerSwitch: lets the power fail right after a sync, when what was synced lasts and what comes next is not begun, or
once a metadata file is written.

It waits for one moment of each kind at a time. A TaskManager dies at its next operation on the disk, so nothing
comes between; what the JobManager does survives, so the power fails once it has done the piece of work it is in.
"""

from __future__ import annotations

from collections.abc import Callable

from .disk import DiskOperation
from .faults import PowerMoment, SyncedFolder
from .world import Process, World

FAILS = "power fails after the sync"
"""What a trace calls it."""

_AGAIN_MS = 1.0
"""While the JobManager stands still in the middle of a write the power cannot fail; so much later it may."""


class PowerSwitch:
    """One world's. `before` is called before each operation that a process does on the disk."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: dict[PowerMoment, tuple[Callable[[], object], Callable[[], Process | None]]] = {}
        self._due: tuple[Process, Callable[[], None]] | None = None

    def fail_after(
        self, moment: PowerMoment, fail: Callable[[], object], survivor: Callable[[], Process | None]
    ) -> None:
        """At the next moment of this kind call `fail`, which returns None while the power cannot fail."""
        self._waiting[moment] = fail, survivor

    def before(self, operation: DiskOperation, process: Process) -> None:
        if self._due is not None and self._due[0] is process:
            self._fail_now()
        moment = _moment(operation) if self._waiting else None
        if moment is not None and moment in self._waiting:
            fail, survivor = self._waiting.pop(moment)
            path = operation.target or operation.path
            if process is survivor():
                self._world.after(0.0, None, self._fail, fail, path)
            else:
                self._due = process, lambda: self._fail(fail, path)
                self._world.after(0.0, None, self._fail_now)

    def _fail_now(self) -> None:
        if self._due is not None:
            (_, fail), self._due = self._due, None
            fail()

    def _fail(self, fail: Callable[[], object], path: str) -> None:
        if fail() is None:
            self._world.after(_AGAIN_MS, None, self._fail, fail, path)
        else:
            self._world.trace.add("the world", FAILS, path)


def _moment(operation: DiskOperation) -> PowerMoment | None:
    """The moment that comes with this operation, if it is one that a power failure may wait for."""
    if operation.kind == "sync_directory":
        return synced_folder(operation.path)
    return "metadata" if operation.kind == "rename" and operation.target.endswith("/_metadata") else None


def synced_folder(path: str) -> SyncedFolder:
    """Which kind of folder it is."""
    name = path.rpartition("/")[2]
    if "/collected/" in path:
        return "hidden output" if name.startswith(".") else "output"
    if name.startswith("chk-"):
        return "checkpoint"
    return "savepoint" if "/savepoint" in path else "above"
