"""SeenFiles: what oracles have found in files of the simulated disk, kept for as long as these files stay as they are.

Oracles look at the same files again and again, and each look goes through the storage code of the product. Which files
a look depends on shows while it is done; the next one only compares their bytes, which sees whatever has happened to
them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from ....state import CheckpointStorage
from ....state.checkpoints.checkpoint_metadata import decode_metadata
from ....state.checkpoints.completed_checkpoints import CompletedCheckpoint
from .disk import DiskOperation, SimulatedDisk

T = TypeVar("T")


class SeenFiles:
    """For looks from outside of the world only: nothing may disturb them, and they change nothing."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._found: dict[Hashable, tuple[dict[str, object], Any]] = {}

    def once(self, key: Hashable, look: Callable[[], T]) -> T:
        """What `look()` returns, which may depend on files alone. An error that it raises is not kept."""
        known = self._found.get(key)
        if known is not None and all(self._disk.state(path) == state for path, state in known[0].items()):
            return cast(T, known[1])
        noted = _Noted(self._disk)
        with self._disk.asking(noted):
            found = look()
        self._found[key] = (noted.states, found)
        return found

    def metadata(self, storage: CheckpointStorage, path: str) -> CompletedCheckpoint:
        """The checkpoint whose metadata lie there. Raises StorageError."""
        return self.once(("metadata", storage.root, path), lambda: decode_metadata(storage.read_sealed(path), path))


class _Noted:
    """The state, as it was then, of all that was read, listed or asked for."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.states: dict[str, object] = {}
        self._disk = disk

    def before(self, operation: DiskOperation) -> None:
        assert operation.kind in ("read", "list", "stat"), f"a look changes nothing; found {operation}"
        self.states[operation.path] = self._disk.state(operation.path)
