"""Snapshots of RocksDB in the common format of keyed state, for backends that know nothing of RocksDB.

The state that is read has to fit into memory, as it does on the heap, where it is going.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final

from ...messages import KeyedStateHandle, pack_plain, unpack_plain
from ..backends.backend import ReadState, SnapshotTarget
from ..backends.keyed_snapshot import SnapshotWriter
from ..backends.timer_queue import KIND as TIMERS
from ..columns.packed_columns import column_of, packed
from ..kinds.record_serializer import Convert, PlainNode
from ..kinds.schema_fit import Schema
from .memory import RocksMemory
from .rocks_snapshot import FORMAT_NAME, MainPart, fetch
from .row_codec import Parts, parts_of
from .row_keys import PREFIX_BYTES, group_prefix
from .store import RocksStore, StoreOptions

_MEMORY_MB: Final = 32
ENTRIES: Final = 65_536
"""In one payload."""


def in_common_format(
    handles: Sequence[KeyedStateHandle], read: ReadState, key_groups: range
) -> tuple[KeyedStateHandle, ...]:
    """The same state of these key groups; handles of other formats as they are. Blocks. Raises LocalStateFailed, or a
    StorageError.
    """
    return tuple(
        converted
        for handle in handles
        if (converted := _converted(handle, read, key_groups) if handle.backend == FORMAT_NAME else handle) is not None
    )


def _converted(handle: KeyedStateHandle, read: ReadState, key_groups: range) -> KeyedStateHandle | None:
    snapshot = RocksSnapshot(handle, read)
    try:
        return snapshot.of(key_groups)
    finally:
        snapshot.close()


class RocksSnapshot:
    """One snapshot, fetched into a temporary folder, whose key groups are converted as they are asked for."""

    def __init__(self, handle: KeyedStateHandle, read: ReadState) -> None:
        """Blocks. Raises LocalStateFailed, or a StorageError."""
        self.handle = handle
        self.main = MainPart.read(handle, read)
        options = StoreOptions.temporary(RocksMemory(_MEMORY_MB), compacts=False)
        self._store = RocksStore(options.new_path(), options)
        if handle.shared:
            fetch(handle, self.main, read, self._store.path)

    def of(self, key_groups: range, without: Collection[str] = ()) -> KeyedStateHandle | None:
        """What these key groups hold, in the common format and inline, but for the states of these names; None if that
        is nothing.
        """
        handle, main = self.handle, self.main
        first, last = max(handle.first_key_group, key_groups[0]), min(handle.last_key_group, key_groups[-1])
        own = range(first, last + 1)
        store = self._store if handle.shared else None
        views = [
            RowsView(each.name, each.kind, each.schema, number, store, own)
            for number, each in enumerate(main.states)
            if each.name not in without
        ]
        kept = list(main.kept_states(own, None))
        writer = SnapshotWriter(own, main.max_parallelism, PlainNode(main.key_schema), views, kept)
        writer.release = lambda: None
        return writer(_NO_TARGET)

    def close(self) -> None:
        self._store.close()


_NO_TARGET: Final[SnapshotTarget] = None  # type: ignore[assignment]
"""The writer of the common format makes inline handles."""


@dataclass(frozen=True, slots=True)
class RowsView:
    """One state's rows, as a FrozenState. `store` None: there are none."""

    name: str
    kind: str
    schema: Schema
    number: int
    store: RocksStore | None
    key_groups: range

    @property
    def is_empty(self) -> bool:
        return self.store is None

    def payloads(self, max_parallelism: int, encode_key: Convert) -> Iterator[tuple[int, bytes]]:
        if self.store is None:
            return
        for group in self.key_groups:
            rows = map(_entry, self.store.items(group_prefix(group, self.number)))
            for namespace, entries in groupby(rows, (lambda _: ()) if self.kind == TIMERS else _namespace):
                while some := list(islice(entries, ENTRIES)):
                    yield group, self._payload(namespace, some)

    def _payload(self, namespace: Any, entries: Sequence[tuple[Any, Any, Parts]]) -> bytes:
        keys = column_of([parts.key_or(key) for _, key, parts in entries])
        values = column_of([parts.value for _, _, parts in entries])
        count = len(entries)
        columns = packed(values, 0, count)
        if isinstance(self.schema, dict) and "ttl" in self.schema:
            times = column_of([parts.times for _, _, parts in entries])
            return pack_plain([namespace, packed(keys, 0, count), ["tuples", columns, packed(times, 0, count)]])
        return pack_plain([namespace, packed(keys, 0, count), columns])


def _entry(item: tuple[bytes, bytes]) -> tuple[Any, Any, Parts]:
    row, raw = item
    namespace, key = unpack_plain(row[PREFIX_BYTES:])
    return namespace, key, parts_of(raw)


def _namespace(entry: tuple[Any, Any, Parts]) -> Any:
    return entry[0]
