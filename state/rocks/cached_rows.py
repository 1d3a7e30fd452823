"""CachedRows: the values of one state, as Python objects where they were used lately, else in RocksDB.

For accessors it is a dict of all keys. It holds two generations of what was used: when the younger is full, the older
is written to RocksDB, as far as it has changed, and dropped. So a hot key costs a dict lookup and is written once for
many changes. `write_back` writes all that RocksDB does not have, before a snapshot or a look at all rows.

A value that can be changed in place may have been, by whoever has read it: its bytes are compared with those that were
read. That holds until it is dropped, which is at least half of the cache later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from sys import getsizeof
from typing import Any, Final

from ..backends.private_copy import IMMUTABLE, MISSING
from .memory import RocksMemory
from .row_codec import may_change
from .store import RocksStore

GENERATION_ENTRIES: Final = 16_384
"""The most that one generation holds: a snapshot has to write twice as many at most before it is taken."""
_ENTRY_BYTES: Final = 200
"""What an entry takes beside its value, about."""
_ROWS_PER_WRITE: Final = 1024
_ABSENT: Final = object()
_ABSENCE: Final = type(MISSING)


class CachedRows:
    """Of one state. `rows_of` gives the rows of keys, in bytes, and `check` refuses those that may not be written;
    `pack` gives the bytes of the values of keys, `unpack` the value of some bytes.
    """

    def __init__(
        self,
        store: RocksStore,
        memory: RocksMemory,
        rows_of: Callable[[Sequence[Any]], list[bytes]],
        check: Callable[[Sequence[bytes]], None],
        pack: Callable[[Sequence[Any], Sequence[Any]], list[bytes]],
        unpack: Callable[[bytes], Any],
    ) -> None:
        self._store = store
        self._memory = memory
        self._rows_of = rows_of
        self._check = check
        self._pack = pack
        self._unpack = unpack
        self._young: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}
        self._changed: dict[Any, None] = {}
        """Keys whose values RocksDB does not have; all of them are in a generation."""
        self._as_read: dict[Any, bytes] = {}
        """Of values that may be changed in place: what RocksDB has."""
        self._young_bytes = 0
        self.misses = 0
        """How many reads had to wait for RocksDB."""

    # -- as a dict, where MISSING is held for what is known to be absent

    def get(self, key: Any, default: Any = None) -> Any:
        held = self._young.get(key, _ABSENT)
        if held is _ABSENT:
            held = self._found(key)
        return default if held is MISSING else held

    def __setitem__(self, key: Any, held: Any) -> None:
        if key in self._young:
            self._changed[key] = None
            self._young[key] = held
        else:
            self._old.pop(key, None)
            self._changed[key] = None
            self._take(key, held, getsizeof(held))

    def __delitem__(self, key: Any) -> None:
        self[key] = MISSING

    def pop(self, key: Any, default: Any = None) -> Any:
        held = self.get(key, MISSING)
        if held is MISSING:
            return default
        self[key] = MISSING
        return held

    # -- beyond that

    def __contains__(self, key: Any) -> bool:
        """Whether it is held as an object: then what RocksDB has may not be what counts."""
        return key in self._young or key in self._old

    def read_ahead(self, keys: Iterable[Any]) -> None:
        """Read those of these keys that are not held, in one go; as many as there is room for."""
        young, old = self._young, self._old
        missing = [key for key in islice(dict.fromkeys(keys), GENERATION_ENTRIES // 2) if key not in young]
        wanted = []
        for key in missing:
            if key in old:
                self._take(key, old.pop(key), _ENTRY_BYTES)
                old = self._old
            else:
                wanted.append(key)
        if wanted:
            for key, raw in zip(wanted, self._store.get_many(self._rows_of(wanted)), strict=True):
                self._take_read(key, raw)

    def write_back(self) -> None:
        """From now on RocksDB has all that is held."""
        self._write(dict.fromkeys(chain(self._changed, self._as_read)))

    def forget(self) -> None:
        """Let go of all that is held."""
        for held in (self._young, self._old, self._changed, self._as_read):
            held.clear()
        self._young_bytes = 0

    def _found(self, key: Any) -> Any:
        held = self._old.pop(key, _ABSENT)
        if held is not _ABSENT:
            self._take(key, held, _ENTRY_BYTES)
            return held
        self.misses += 1
        return self._take_read(key, self._store.get(self._rows_of((key,))[0]))

    def _take_read(self, key: Any, raw: bytes | None) -> Any:
        if raw is None:
            self._take(key, MISSING, 0)
            return MISSING
        held = self._unpack(raw)
        self._take(key, held, len(raw))
        if may_change(held):
            self._as_read[key] = raw
        return held

    def _take(self, key: Any, held: Any, size_bytes: int) -> None:
        self._young[key] = held
        self._young_bytes += _ENTRY_BYTES + size_bytes
        if len(self._young) >= GENERATION_ENTRIES or self._young_bytes > self._memory.cached_bytes // 2:
            self._age()

    def _age(self) -> None:
        old, changed, as_read = self._old, self._changed, self._as_read
        self._write([key for key in old if key in changed or key in as_read])
        for key in old.keys() & as_read.keys():
            del as_read[key]
        self._old, self._young, self._young_bytes = self._young, {}, 0

    def _write(self, keys: Iterable[Any]) -> None:
        """Of these, which are changed or were read to be changed, what RocksDB does not have."""
        left = iter(keys)
        while some := list(islice(left, _ROWS_PER_WRITE)):
            young, old = self._young, self._old
            self._write_some(some, [young[key] if key in young else old[key] for key in some])

    def _write_some(self, keys: Sequence[Any], held: Sequence[Any]) -> None:
        changed, as_read = self._changed, self._as_read
        differing = list(zip(keys, self._packed(keys, held), held, strict=True))
        if as_read:
            differing = [each for each in differing if each[1] is None or each[1] != as_read.get(each[0])]
        rows = self._rows_of([key for key, _, _ in differing])
        self._check(rows)
        self._store.write([(row, raw) for row, (_, raw, _) in zip(rows, differing, strict=True)])
        for key in keys:
            changed.pop(key, None)
        some_may_change = not IMMUTABLE.issuperset(map(type, held))
        if as_read or some_may_change:
            for key, raw, each in differing:
                if raw is not None and may_change(each):
                    as_read[key] = raw
                else:
                    as_read.pop(key, None)

    def _packed(self, keys: Sequence[Any], held: Sequence[Any]) -> Sequence[bytes | None]:
        """None for those that are known to be absent."""
        if _ABSENCE not in set(map(type, held)):
            return self._pack(keys, held)
        there = [(key, each) for key, each in zip(keys, held, strict=True) if each is not MISSING]
        packed = iter(self._pack([key for key, _ in there], [each for _, each in there]))
        return [None if each is MISSING else next(packed) for each in held]
