"""FilesystemBackend: working state on the heap; snapshots go into files of the checkpoint directory.

Flink: FsStateBackend. The file itself is written by `snapshot_file.store_in_file`, one for all operators of a subtask.
"""

from __future__ import annotations

from .backend import register_backend
from .heap_backend import HeapBackend


class FilesystemBackend(HeapBackend):
    name = "filesystem"


register_backend("filesystem", FilesystemBackend)
