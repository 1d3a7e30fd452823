"""DanglingMetadata: the oracle that no metadata file leads to state that is not there.

Whoever finds one takes its checkpoint for complete. So metadata come after the state, and go before it.
"""

from __future__ import annotations

from collections.abc import Callable

from ....state import CheckpointStorage, state_handles
from ....state.checkpoints.checkpoint_metadata import decode_metadata
from ....state.errors import StorageError
from .disk import SimulatedDisk

_METADATA = "/_metadata"


class DanglingMetadata:
    """Of all checkpoints in one storage. A file that cannot be read is for others to judge."""

    def __init__(self, disk: SimulatedDisk, storage: CheckpointStorage, report: Callable[[str, str], None]) -> None:
        self._disk = disk
        self._storage = storage
        self._report = report
        self._needs: dict[str, frozenset[str]] = {}
        """By metadata file, the files that it leads to."""
        self._reported: set[str] = set()

    def look(self) -> None:
        """Now. Each of them is reported once."""
        there = {path for path, _ in self._disk.files()}
        for path in sorted(there):
            if not path.endswith(_METADATA) or "/." in path or path in self._reported:
                continue
            missing = self._files_of(path) - there
            if missing:
                self._reported.add(path)
                self._report("no-dangling-metadata", f"{path} leads to {', '.join(sorted(missing))}, not there")

    def _files_of(self, path: str) -> frozenset[str]:
        if path not in self._needs:
            root = f"{self._storage.root}/"
            try:
                checkpoint = decode_metadata(self._storage.read_sealed(path), path) if path.startswith(root) else None
            except StorageError:
                return frozenset()
            states = () if checkpoint is None else checkpoint.states()
            handles = (handle for state in states for handle in state_handles(state))
            self._needs[path] = frozenset(f"{root}{handle.path}" for handle in handles if handle.path is not None)
        return self._needs[path]
