"""RocksMemory: what all stores of a process may take: one block cache and one bound for write buffers between them.

A third of it goes to values that are held as Python objects (`cached_rows`), the rest to RocksDB, whose write buffers
count as part of its block cache. Made at the first use, since a process that forks must not have RocksDB's threads.
"""

from __future__ import annotations

from typing import Any, Final

_MEGABYTE: Final = 1024 * 1024
_LEAST_CACHE_BYTES: Final = 256 * 1024


class RocksMemory:
    """Used by all stores of a process, on any thread."""

    def __init__(self, size_mb: int) -> None:
        self._bytes = size_mb * _MEGABYTE
        self._shared: dict[str, tuple[Any, Any]] = {}
        self._users: set[object] = set()
        """Threads add and remove one at a time, which is one step of the interpreter."""

    def shared(self) -> tuple[Any, Any]:
        """The block cache and the write buffers' bound, of rocksdict."""
        from rocksdict import Cache, WriteBufferManager

        shared = self._shared.get("all")
        if shared is None:
            of_rocks = self._bytes * 2 // 3
            cache = Cache(of_rocks)
            writing = WriteBufferManager.new_write_buffer_manager_with_cache(of_rocks // 2, False, cache)
            shared = self._shared.setdefault("all", (cache, writing))  # of two threads, the first one's
        return shared

    @property
    def write_buffer_bytes(self) -> int:
        """Of one store, when it is written out."""
        return max(self._bytes // 12, 64 * 1024)

    @property
    def cached_bytes(self) -> int:
        """What one user may hold as Python objects."""
        return max(self._bytes // 3 // max(len(self._users), 1), _LEAST_CACHE_BYTES)

    def enter(self, user: object) -> None:
        """One user more, who has values as Python objects."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        self._users.discard(user)
