"""KeyedRows: rows by key as keyed state: one RowStore for each side of a join, over the same keys.

A snapshot is a header and, for each key group that holds something, for each side one Arrow record batch message: the
columns of the rows, their times and their marks, in the order in which the rows came. Keys are not stored: they are
columns of the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import CheckpointId, KeyedStateHandle, MalformedMessage, StateDescription, pack_plain, unpack_plain
from ..backends.backend import NO_KEY, KeyedSnapshot, ReadState
from ..backends.group_parts import HEADER, Part, lay_out
from ..backends.timer_queue import TimerQueues
from ..errors import CorruptState, InvalidState, StateIncompatible, StateNotStorable
from ..keys.key_groups import KeyGroupRange
from ..keys.word_table import Slots
from ..kinds.descriptors import KeyedStateDeclaration
from ..kinds.rows_fit import ROWS, ROWS_NAME, rows_misfit
from .row_store import FrozenRows, RowStore, plain_schema
from .slot_keys import AnyKeys, SlotKeys

S = TypeVar("S", bound=KeyedStateDeclaration)

FORMAT_NAME: Final = "rows"
"""What a handle says of the format."""

_FORMAT = 1
_FEWEST_ROWS = 8192
"""Fewer dropped rows are not worth making room for others."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is kept of one side: rows with these columns, by these of them."""

    keys: tuple[str, ...]
    schema: pa.Schema


def describe_rows(sides: Sequence[KeptRows], windows: Mapping[str, Any] | None = None) -> StateDescription:
    told = [
        {"keys": list(side.keys), "types": {field.name: str(field.type) for field in plain_schema(side.schema)}}
        for side in sides
    ]
    schema: dict[str, Any] = {"sides": told}
    return StateDescription(ROWS_NAME, ROWS, schema if windows is None else schema | {"windows": dict(windows)})


class KeyedRows:
    """The keyed state of one subtask of an operator that keeps rows. Owned by its task; snapshots are written
    elsewhere.
    """

    def __init__(self, sides: Sequence[KeptRows], key_groups: KeyGroupRange, max_parallelism: int) -> None:
        self.current_key: Any = NO_KEY
        self.operator_name = ""
        self._sides = tuple(sides)
        self._key_groups, self._max_parallelism = key_groups, max_parallelism
        self._clear()

    def _clear(self) -> None:
        self.stores = tuple(RowStore(side.schema) for side in self._sides)
        self._keys = SlotKeys()

    def slots_of(self, side: int, batch: pa.RecordBatch) -> Slots:
        """The slot of each row's key; new keys are added. Raises InvalidKey for a null."""
        return self._keys.slots_of([batch.column(name) for name in self._sides[side].keys])

    def tidy(self) -> None:
        """Give the memory of dropped rows and of keys without rows back, once they are more than the others. Slots and
        numbers of rows are others afterwards.
        """
        wasted = [store for store in self.stores if store.dropped >= max(_FEWEST_ROWS, len(store) // 2)]
        if not wasted:
            return
        for store in wasted:
            store.compact()
        is_used = np.zeros(len(self._keys), np.bool_)
        for store in self.stores:
            is_used[store.slots[store.live_rows()]] = True
        used = np.flatnonzero(is_used)
        if 2 * len(used) >= len(self._keys):
            return
        for store in self.stores:
            if store.dropped:
                store.compact()
        slots = np.full(len(self._keys), -1, np.int64)
        slots[used] = self._keys.keep(used)
        for store in self.stores:
            store.relabel(slots)

    def state(self, declaration: S) -> S:
        raise InvalidState(f"state {declaration.name!r}: this operator keeps rows and has no other keyed state")

    def timers(self) -> TimerQueues:
        raise InvalidState("an operator that keeps rows has no timers")

    def read_ahead(self, keys: Sequence[Any]) -> None:
        """All is in memory."""

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        """A snapshot has no files but its own."""

    def snapshot(self, checkpoint_id: CheckpointId) -> KeyedSnapshot:
        if not self.entry_count():
            return lambda target: None
        frozen, keys, count = [store.frozen() for store in self.stores], self._keys.known, len(self._keys)
        return lambda target: self._write(frozen, keys, count)

    def restore(self, handles: Sequence[KeyedStateHandle], read: ReadState) -> None:
        assert not len(self._keys), "a backend is restored before it is used"
        for handle in handles:
            path = handle.handle.path or "inline state"
            if handle.backend != FORMAT_NAME:
                raise StateIncompatible(ROWS_NAME, "rows by key", f"a snapshot of the format {handle.backend!r}")
            try:
                self._restore(handle, read(handle.handle))
            except (MalformedMessage, LookupError, TypeError, ValueError, OSError) as error:
                raise CorruptState(path, "a snapshot of rows by key", f"{type(error).__name__}: {error}") from error

    def read_only(self) -> AbstractContextManager[None]:
        """Questions see nothing that could be changed."""
        return nullcontext()

    def keys(self, state_name: str = "", namespace: Hashable = ()) -> Collection[Any]:
        slots = [store.slots[store.live_rows()] for store in self.stores]
        return self._keys.known.listed(np.unique(np.concatenate(slots)))

    def each_key(self) -> Iterator[Any]:
        for key in self.keys():
            self.current_key = key
            yield key

    def entry_count(self) -> int:
        return sum(store.live_count for store in self.stores)

    stored_entries = entry_count

    def close(self) -> None:
        self._clear()

    def _restore(self, handle: KeyedStateHandle, data: bytes) -> None:
        header = unpack_plain(_section(data, handle, HEADER))
        if header["format"] != _FORMAT:
            raise ValueError(f"format {header['format']}; wanted {_FORMAT}")
        self._check_fit(header)
        groups = sorted(handle.offsets.keys() & set(self._key_groups.groups))
        sections = [unpack_plain(_section(data, handle, group)) for group in groups]
        for side, store in enumerate(self.stores):
            stored = pa.ipc.read_schema(pa.py_buffer(header["stored"][side]))
            messages = [section[side] for section in sections if section[side] is not None]
            batches = [pa.ipc.read_record_batch(pa.py_buffer(message), stored) for message in messages]
            for batch in pa.Table.from_batches(batches, stored).combine_chunks().to_batches():
                *columns, times, marks = batch.columns
                rows = pa.RecordBatch.from_arrays(columns, schema=store.schema)
                first = store.append(rows, self.slots_of(side, rows), times.to_numpy())
                store.marks[first:] = marks.to_numpy()

    def _check_fit(self, header: Mapping[str, Any]) -> None:
        wanted, found = self._max_parallelism, header["max_parallelism"]
        if found != wanted:
            raise StateIncompatible(ROWS_NAME, f"max_parallelism {wanted}", f"max_parallelism {found}")
        difference = rows_misfit(describe_rows(self._sides).schema, header["rows"])
        if difference is not None:
            raise StateIncompatible(ROWS_NAME, difference.declared, difference.stored)

    def _write(self, frozen: Sequence[FrozenRows], keys: AnyKeys, count: int) -> KeyedStateHandle:
        groups = keys.groups(0, count, self._max_parallelism)
        sections: dict[int, list[bytes | None]] = {}
        for side, rows in enumerate(frozen):
            for group, message in self._messages(side, rows, groups[rows.slots]):
                sections.setdefault(group, [None] * len(frozen))[side] = message
        parts = {HEADER: self._header()} | {group: pack_plain(sections[group]) for group in sorted(sections)}
        offsets, inline = lay_out(parts)
        first, last = self._key_groups
        return KeyedStateHandle(first, last, offsets, inline, FORMAT_NAME)

    def _messages(self, side: int, rows: FrozenRows, groups: npt.NDArray[np.int32]) -> Iterator[tuple[int, bytes]]:
        """Of each key group that has rows: they."""
        if not len(groups):
            return
        self._check_owned(side, int(groups.min()), int(groups.max()))
        order = np.argsort(groups.astype(np.uint16), kind="stable")  # 16 bits: NumPy sorts them by radix
        columns, times, marks = rows.take(order)
        arrays = [*columns, pa.array(times), pa.array(marks)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._stored(side))
        ends = np.cumsum(np.bincount(groups))
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        for group in np.flatnonzero(ends > starts).tolist():
            yield group, batch.slice(starts[group], ends[group] - starts[group]).serialize().to_pybytes()

    def _check_owned(self, side: int, least: int, greatest: int) -> None:
        first, last = self._key_groups
        if least < first or greatest > last:
            raise StateNotStorable(
                f"keys {self._sides[side].keys}: some are of key groups {least} to {greatest}, and this subtask owns "
                f"{first} to {last}: the stream is not partitioned by these columns"
            )

    def _stored(self, side: int) -> pa.Schema:
        """By position, as a column may be called like what stands beside the rows."""
        fields = [pa.field(str(place), field.type) for place, field in enumerate(self.stores[side].schema)]
        return pa.schema([*fields, pa.field("time", pa.int64()), pa.field("mark", pa.int64())])

    def _header(self) -> bytes:
        header = {
            "format": _FORMAT,
            "max_parallelism": self._max_parallelism,
            "rows": describe_rows(self._sides).schema,
            "stored": [self._stored(side).serialize().to_pybytes() for side in range(len(self._sides))],
        }
        return pack_plain(header)


def _section(data: bytes, handle: KeyedStateHandle, group: int) -> bytes:
    offset, length, _ = Part.of(handle.offsets[group])
    part = data[offset : offset + length]
    if len(part) != length:
        raise ValueError(f"wanted {length} bytes at {offset}, found {len(data)} in all")
    return part
