"""Restoring a RocksDB store: from snapshots of RocksDB, whole or cut, and from those that all other backends write.

Of several snapshots, as after a rescale, the one with the most key groups of one's own becomes the store: its files are
fetched as they are, and rows of other key groups are removed by range. The rows of the others are copied, in their
order, into one table file each, which the store takes in. Rows of the common format are written one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...messages import KeyedStateHandle, SharedStateHandle
from ..backends.backend import NO_TIME, ReadState
from ..backends.keyed_snapshot import StoredState, read_snapshots
from ..backends.timer_queue import KIND as TIMERS
from ..errors import StateIncompatible
from ..kinds.descriptors import FoldingState, ListState, MapState, ReducingState, ValueState
from ..kinds.record_serializer import TypeNode
from ..kinds.schema_fit import SchemaMismatch, are_same, schema_text
from ..kinds.state_declaration import describe_state
from .rocks_snapshot import FORMAT_NAME, MainPart, StateEntry, fetch
from .rocks_timers import timer_of
from .row_codec import packed_parts
from .row_keys import PREFIX_BYTES, RowKeys, canonical, group_prefix
from .store import RocksStore

_AT_ONCE: Final = 1024
_ROWS_OF: Final = {each.__name__ for each in (FoldingState, ListState, MapState, ReducingState, ValueState)}


@dataclass(slots=True)
class Restored:
    """What is restored into, and what became of it."""

    store: RocksStore
    row_keys: RowKeys
    key_node: TypeNode
    folder: str
    """For what is fetched only to be copied; it need not be there."""
    table: list[StateEntry] = field(default_factory=list)
    files: tuple[SharedStateHandle, ...] = ()
    """The table files that the store is made of and snapshots may share."""
    beside: dict[str, list[StoredState]] = field(default_factory=dict)

    def number_of(self, entry: StateEntry) -> int:
        for number, known in enumerate(self.table):
            if (known.name, known.kind) == (entry.name, entry.kind) and are_same(known.schema, entry.schema):
                self.table[number] = replace(known, has_unknown=known.has_unknown or entry.has_unknown)
                return number
        self.table.append(entry)
        return len(self.table) - 1


def restore_into(target: Restored, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
    """Raises StateIncompatible, LocalStateFailed, or a StorageError."""
    own = target.row_keys.key_groups
    found = [(handle, MainPart.read(handle, read)) for handle in handles if handle.backend == FORMAT_NAME]
    for _, main in found:
        _check(main, target)
    found.sort(key=lambda each: _share(each[0], own), reverse=True)
    for _, main in found:
        for stored in main.kept_states(own, target.key_node.decoder(main.key_schema)):
            target.beside.setdefault(stored.name, []).append(stored)
    with_rows = [each for each in found if each[0].shared]
    for at, (handle, main) in enumerate(with_rows):
        if at == 0:
            _become(target, handle, main, read)
        else:
            _copy(target, handle, main, read)
    common = [handle for handle in handles if handle.backend != FORMAT_NAME]
    read_common = read_snapshots(common, read, own, target.row_keys.max_parallelism, target.key_node)
    for name, several in read_common.items():
        for stored in several:
            if stored.kind in _ROWS_OF or stored.kind == TIMERS:
                _write(target, stored)
            else:
                target.beside.setdefault(name, []).append(stored)


def _check(main: MainPart, target: Restored) -> None:
    wanted, found = target.row_keys.max_parallelism, main.max_parallelism
    if wanted != found:
        raise StateIncompatible("keyed state", f"max_parallelism {wanted}", f"max_parallelism {found}")
    try:
        target.key_node.decoder(main.key_schema)
    except SchemaMismatch as error:
        wanted_keys, found_keys = schema_text(target.key_node.schema), schema_text(main.key_schema)
        raise StateIncompatible("key", wanted_keys, found_keys, str(error)) from error


def _share(handle: KeyedStateHandle, own: range) -> int:
    return min(handle.last_key_group, own[-1]) - max(handle.first_key_group, own[0])


def _become(target: Restored, handle: KeyedStateHandle, main: MainPart, read: ReadState) -> None:
    """Open the store with the files of this snapshot."""
    fetch(handle, main, read, target.store.path)
    target.table, target.files = list(main.states), handle.shared
    own, held = target.row_keys.key_groups, main.key_groups
    if held[0] < own[0]:
        target.store.remove_range(group_prefix(held[0]), group_prefix(own[0]))
    if held[-1] > own[-1]:
        target.store.remove_range(group_prefix(own[-1] + 1), group_prefix(held[-1] + 1))


def _copy(target: Restored, handle: KeyedStateHandle, main: MainPart, read: ReadState) -> None:
    """Take in the rows of this snapshot, which has none of the key groups that the store has."""
    source = RocksStore(target.folder, target.store.options)
    try:
        fetch(handle, main, read, target.folder)
        numbers = [target.number_of(entry) for entry in main.states]
        own = target.row_keys.key_groups
        shared = range(max(handle.first_key_group, own[0]), min(handle.last_key_group, own[-1]) + 1)
        target.store.ingest(f"{target.folder}.sst", _renumbered(source, shared, numbers))
    finally:
        source.close()


def _renumbered(source: RocksStore, groups: Iterable[int], numbers: Sequence[int]) -> Iterator[tuple[bytes, bytes]]:
    """In the order of their new bytes."""
    in_order = sorted(range(len(numbers)), key=lambda number: numbers[number])
    for group in groups:
        for number in in_order:
            head = group_prefix(group, numbers[number])
            for row, raw in source.items(group_prefix(group, number)):
                yield head + row[PREFIX_BYTES:], raw


def _write(target: Restored, stored: StoredState) -> None:
    """Make rows of a state in the common format. Raises StateIncompatible."""
    try:
        _write_rows(target, stored)
    except SchemaMismatch as error:
        found = describe_state(stored.kind, stored.schema)
        raise StateIncompatible(stored.name, found, found, str(error)) from error


def _write_rows(target: Restored, stored: StoredState) -> None:
    number = target.number_of(StateEntry(stored.name, stored.kind, stored.schema, _has_unknown(stored)))
    changes: list[tuple[bytes, bytes | None]] = []
    for change in _rows(target.row_keys, number, stored):
        changes.append(change)
        if len(changes) == _AT_ONCE:
            target.store.write(changes)
            changes.clear()
    target.store.write(changes)


def _rows(keys: RowKeys, number: int, stored: StoredState) -> Iterator[tuple[bytes, bytes]]:
    for namespace, several, values, times in stored.timed_entries():
        for at, (key, value) in enumerate(zip(several, values, strict=True)):
            if stored.kind == TIMERS:
                time_ms, _, own = timer_of(value, key)
                yield keys.timer_row(number, time_ms, key, own), packed_parts(value, None, keys.encoded(key))
                continue
            encoded, own_times = keys.encoded(key), None if times is None else times[at]
            row = keys.row(number, namespace, key)
            if canonical(encoded) is encoded:
                yield row, packed_parts(value, own_times)
            else:
                yield row, packed_parts(value, own_times, encoded)


def _has_unknown(stored: StoredState) -> bool:
    if stored.ttl_clock != "event":
        return False
    every = (times for _, _, _, several in stored.timed_entries() for times in several or ())
    return any(NO_TIME in (times if isinstance(times, list) else (times,)) for times in every)
