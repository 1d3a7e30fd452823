"""RocksMemory: what all stores of a process may take: one block cache and one bound for write buffers between them.

A third of it goes to values that are held as Python objects (`cached_rows`), the rest to RocksDB, whose write buffers
count as part of its block cache. Made at the first use, since a process that forks must not have RocksDB's threads.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

_MEGABYTE: Final = 1024 * 1024
_LEAST_CACHE_BYTES: Final = 256 * 1024


class RocksMemory:
    """Used by all stores of a process, on any thread."""

    def __init__(self, size_mb: int) -> None:
        self._bytes = size_mb * _MEGABYTE
        self._lock = Lock()
        self._shared: tuple[Any, Any] | None = None
        self._users = 0

    def shared(self) -> tuple[Any, Any]:
        """The block cache and the write buffers' bound, of rocksdict."""
        from rocksdict import Cache, WriteBufferManager

        with self._lock:
            if self._shared is None:
                of_rocks = self._bytes * 2 // 3
                cache = Cache(of_rocks)
                self._shared = cache, WriteBufferManager.new_write_buffer_manager_with_cache(of_rocks // 2, False, cache)
            return self._shared

    @property
    def write_buffer_bytes(self) -> int:
        """Of one store, when it is written out."""
        return max(self._bytes // 12, 64 * 1024)

    @property
    def cached_bytes(self) -> int:
        """What one user may hold as Python objects."""
        return max(self._bytes // 3 // max(self._users, 1), _LEAST_CACHE_BYTES)

    def enter(self) -> None:
        """One user more, who has values as Python objects."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
