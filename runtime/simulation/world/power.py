"""PowerSwitch: lets the power fail right after a sync, when what was synced lasts and what comes next is not begun.

It waits for one sync at a time of each kind of folder. A TaskManager dies at its next operation on the disk, so nothing
comes between; what the JobManager does survives, so the power fails once it has done the piece of work it is in.
"""

from __future__ import annotations

from collections.abc import Callable

from .disk import DiskOperation
from .faults import SyncedFolder
from .world import Process, World

FAILS = "power fails after the sync"
"""What a trace calls it."""

_AGAIN_MS = 1.0
"""While the JobManager stands still in the middle of a write the power cannot fail; so much later it may."""


class PowerSwitch:
    """One world's. `before` is called before each operation that a process does on the disk."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: dict[SyncedFolder, tuple[Callable[[], object], Callable[[], Process | None]]] = {}
        self._due: tuple[Process, Callable[[], None]] | None = None

    def fail_after_sync(
        self, folder: SyncedFolder, fail: Callable[[], object], survivor: Callable[[], Process | None]
    ) -> None:
        """After the next sync of such a folder call `fail`, which returns None while the power cannot fail."""
        self._waiting[folder] = fail, survivor

    def before(self, operation: DiskOperation, process: Process) -> None:
        if self._due is not None and self._due[0] is process:
            self._fail_now()
        if operation.kind != "sync_directory" or not self._waiting:
            return
        folder = synced_folder(operation.path)
        if folder in self._waiting:
            fail, survivor = self._waiting.pop(folder)
            if process is survivor():
                self._world.after(0.0, None, self._fail, fail, operation.path)
            else:
                self._due = process, lambda: self._fail(fail, operation.path)
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


def synced_folder(path: str) -> SyncedFolder:
    """Which kind of folder it is."""
    name = path.rpartition("/")[2]
    if "/collected/" in path:
        return "hidden output" if name.startswith(".") else "output"
    if name.startswith("chk-"):
        return "checkpoint"
    return "savepoint" if "/savepoint" in path else "above"
