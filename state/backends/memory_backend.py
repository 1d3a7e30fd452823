"""MemoryBackend: working state on the heap; snapshots travel inside the acknowledgement, up to a limit.

For tests and small state: a lost JobManager process loses the checkpoints. Flink: MemoryStateBackend.
"""

from __future__ import annotations

from .backend import register_backend
from .heap_backend import HeapBackend


class MemoryBackend(HeapBackend):
    name = "memory"


register_backend("memory", MemoryBackend)
