"""Rows by key as bytes: all of them, or a run of what has changed; and what several runs say together.

A snapshot is a header and, for each key group that holds something, plain data: for each side of the join an Arrow
record batch message, or None. It has the columns of the rows by position, their times and their marks, in the order in
which the rows came. Integers stand in as few bytes as will do: the header has the schema that they are stored in, and
the one that they are read back into. Keys are not stored: they are columns of the rows.

A run of an incremental checkpoint has the number of each row, too; and behind the messages stand, for each side, the
numbers of rows that are not there any more (8 bytes each, little endian). What a newer run says of a number takes the
place of what older ones say. Numbers mean something within one side of one handle only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import KeyedStateHandle, MalformedMessage, StateDescription, pack_plain, unpack_plain
from ..backends.backend import ReadState
from ..backends.group_parts import HEADER, lay_out
from ..backends.stored_runs import runs_of
from ..columns.column_values import narrowed, widened
from ..errors import CorruptState, StateIncompatible
from ..keys.key_groups import KeyGroupRange
from ..kinds.rows_fit import ROWS, ROWS_NAME, rows_misfit
from .group_sections import section_of
from .row_columns import RowNumbers
from .row_store import FrozenRows, plain_schema
from .slot_groups import Groups, SlotGroups, check_owned, shares_of
from .slot_keys import AnyKeys

FORMAT_NAME: Final = "rows"
"""What a handle says of the format."""

_FORMAT = 2
_FORMATS_READ = (1, _FORMAT)
"""The first had all columns in their own types, and no runs."""

_NUMBER = "number"
_DROPPED: npt.DTypeLike = "<i8"


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is kept of one side: rows with these columns, by these of them."""

    keys: tuple[str, ...]
    schema: pa.Schema


class SideRows(NamedTuple):
    """Of one side and some key groups: what a snapshot or a run says."""

    batch: pa.RecordBatch
    """The columns, `time` and `mark`; in a run also `number`."""
    dropped: RowNumbers
    """Rows that are not there any more."""


def describe_rows(sides: Sequence[KeptRows], windows: Mapping[str, Any] | None = None) -> StateDescription:
    told = [
        {"keys": list(side.keys), "types": {field.name: str(field.type) for field in plain_schema(side.schema)}}
        for side in sides
    ]
    schema: dict[str, Any] = {"sides": told}
    return StateDescription(ROWS_NAME, ROWS, schema if windows is None else schema | {"windows": dict(windows)})


class RowsFormat:
    """Writes and reads the rows of one subtask. Any thread may."""

    def __init__(self, sides: Sequence[KeptRows], key_groups: KeyGroupRange, max_parallelism: int) -> None:
        self._sides = tuple(sides)
        self._key_groups, self._max_parallelism = key_groups, max_parallelism
        self._groups = SlotGroups()

    def write(
        self, frozen: Mapping[int, FrozenRows], keys: AnyKeys, count: int, *, is_run: bool = False
    ) -> KeyedStateHandle:
        """The rows of these sides, inline. `count`: the number of keys that have a slot."""
        groups, number = self._groups_of(keys, count), len(self._sides)
        schemas = [_beside(plain_schema(side.schema), is_run) for side in self._sides]
        stored = list(schemas)
        sections: dict[int, list[bytes | None]] = {}

        def put(group: int, place: int, data: bytes) -> None:
            sections.setdefault(group, [None] * (2 * number if is_run else number))[place] = data

        for side, rows in frozen.items():
            check_owned(groups[rows.slots], self._key_groups, self._sides[side].keys)
            order, shares = shares_of(groups[rows.slots])
            columns, times, marks = rows.take(order)
            numbers = [rows.rows[order]] if is_run else []
            batch = _narrow([*columns, times, marks, *numbers], schemas[side])
            stored[side] = batch.schema
            for group, start, end in shares:
                put(group, side, batch.slice(start, end - start).serialize().to_pybytes())
            order, shares = shares_of(groups[rows.dropped_slots])
            dropped = rows.dropped[order].astype(_DROPPED)
            for group, start, end in shares:
                put(group, number + side, dropped[start:end].tobytes())
        about = {"max_parallelism": self._max_parallelism, "rows": describe_rows(self._sides).schema}
        return _laid_out(self._key_groups, about, schemas, stored, sections)

    def read(self, handle: KeyedStateHandle, read: ReadState) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of this subtask's key groups, of one side after the other: the columns, `time` and `mark`.

        Raises a StateError.
        """
        kept: list[list[pa.RecordBatch]] = [[] for _ in self._sides]
        try:
            runs = _opened(handle, read)
            for run in runs:
                self._check_fit(run.header)
            for _, batches in _by_group_and_side(runs, self._key_groups.groups):
                for side, batch in enumerate(batches):
                    kept[side] += [] if batch is None else [batch]
            joined = [pa.Table.from_batches(several).combine_chunks() if several else None for several in kept]
            for one, table in zip(self._sides, joined, strict=True):
                wanted = _beside(plain_schema(one.schema), is_run=False).types
                if table is not None and table.schema.types != wanted:
                    raise ValueError(f"wanted columns of the types {wanted}, found {table.schema.types}")
        except (MalformedMessage, LookupError, TypeError, ValueError, OSError) as error:
            files = (handle.handle, *(shared.handle for shared in handle.shared))
            path = ", ".join(each.path or "inline state" for each in files)
            raise CorruptState(path, "a snapshot of rows by key", f"{type(error).__name__}: {error}") from error
        for place, table in enumerate(joined):
            if table is not None:
                yield from ((place, batch) for batch in table.to_batches())

    def _check_fit(self, header: Mapping[str, Any]) -> None:
        wanted, found = self._max_parallelism, header["max_parallelism"]
        if found != wanted:
            raise StateIncompatible(ROWS_NAME, f"max_parallelism {wanted}", f"max_parallelism {found}")
        difference = rows_misfit(describe_rows(self._sides).schema, header["rows"])
        if difference is not None:
            raise StateIncompatible(ROWS_NAME, difference.declared, difference.stored)

    def _groups_of(self, keys: AnyKeys, count: int) -> Groups:
        return self._groups.first(count, keys, lambda start, end: keys.groups(start, end, self._max_parallelism))


def header_of(data: bytes) -> dict[str, Any]:
    """Raises MalformedMessage or ValueError."""
    header = unpack_plain(data)
    if not isinstance(header, dict) or header.get("format") not in _FORMATS_READ:
        found = header.get("format") if isinstance(header, dict) else header
        raise ValueError(f"format {found!r:.60}; wanted one of {_FORMATS_READ}")
    return header


def side_of(header: Mapping[str, Any], section: Sequence[Any], side: int) -> SideRows | None:
    """What a key group has of one side. Raises ValueError, LookupError, TypeError or OSError for anything else."""
    sides = len(header["stored"])
    message, dropped = section[side], section[sides + side] if len(section) > sides else None
    if message is None and dropped is None:
        return None
    schema = _schema(header["schema" if "schema" in header else "stored"][side])
    if message is None:
        batch = pa.RecordBatch.from_pylist([], schema)
    else:
        stored = _schema(header["stored"][side])
        batch = widened(pa.ipc.read_record_batch(pa.py_buffer(message), stored), schema)
    return SideRows(batch, np.frombuffer(dropped or b"", _DROPPED))


def newest_rows(runs: Sequence[SideRows | None]) -> pa.RecordBatch | None:
    """The rows that are left of these runs, the oldest first; without their numbers, which a whole snapshot has not."""
    there = [run for run in runs if run is not None]
    if not there or _NUMBER not in there[0].batch.schema.names:
        return there[0].batch if there else None
    batch = pa.concat_batches([run.batch for run in there])
    numbers, places, start = [], [], 0
    for run in there:
        own = len(run.batch)
        numbers += [run.batch.column(_NUMBER).to_numpy(), run.dropped]
        places += [np.arange(start, start + own), np.full(len(run.dropped), -1)]
        start += own
    told, at = np.concatenate(numbers), np.concatenate(places)
    order = np.argsort(told, kind="stable")
    is_last = np.append(told[order[1:]] != told[order[:-1]], np.ones(min(len(told), 1), np.bool_))
    newest = at[order[is_last]]
    rows = batch.drop_columns([_NUMBER]).take(pa.array(newest[newest >= 0]))
    return rows if len(rows) else None


def in_one(handle: KeyedStateHandle, read: ReadState) -> KeyedStateHandle:
    """What the runs in this handle hold, as one snapshot, inline. Raises a StateError, or what `side_of` does."""
    runs = _opened(handle, read)
    header = runs[-1].header
    schemas = [_schema(each).remove(len(_schema(each)) - 1) for each in header["schema"]]
    sections: dict[int, list[bytes | None]] = {}
    own = KeyGroupRange(handle.first_key_group, handle.last_key_group)
    for group, sides in _by_group_and_side(runs, own.groups):
        if any(each is not None for each in sides):
            sections[group] = [None if each is None else each.serialize().to_pybytes() for each in sides]
    about = {what: header[what] for what in ("max_parallelism", "rows")}
    return _laid_out(own, about, schemas, schemas, sections)


class _Opened(NamedTuple):
    """A run, or a whole snapshot."""

    header: dict[str, Any]
    handle: KeyedStateHandle
    data: bytes


def _opened(handle: KeyedStateHandle, read: ReadState) -> list[_Opened]:
    """What makes up this handle, the oldest first. Raises a StateError, or what `header_of` does."""
    opened = []
    for run, data in runs_of(handle, read):
        if run.backend != FORMAT_NAME:
            raise StateIncompatible(ROWS_NAME, "rows by key", f"a snapshot of the format {run.backend!r}")
        opened.append(_Opened(header_of(section_of(data, run, HEADER).to_pybytes()), run, data))
    return opened


def _by_group_and_side(runs: Sequence[_Opened], groups: range) -> Iterator[tuple[int, list[pa.RecordBatch | None]]]:
    """Each of these key groups that a run has something of, with the rows that are left of each side."""
    for group in sorted({group for run in runs for group in run.handle.offsets} & set(groups)):
        said = [
            (run.header, cast("list[Any]", unpack_plain(section_of(run.data, run.handle, group).to_pybytes())))
            for run in runs
            if group in run.handle.offsets
        ]
        sides = range(len(runs[-1].header["stored"]))
        yield group, [newest_rows([side_of(header, section, side) for header, section in said]) for side in sides]


def _laid_out(
    key_groups: KeyGroupRange,
    about: Mapping[str, Any],
    schemas: Sequence[pa.Schema],
    stored: Sequence[pa.Schema],
    sections: Mapping[int, Sequence[bytes | None]],
) -> KeyedStateHandle:
    """`schemas`: what the rows of each side are read back into."""
    header = {
        "format": _FORMAT,
        **about,
        "schema": [each.serialize().to_pybytes() for each in schemas],
        "stored": [each.serialize().to_pybytes() for each in stored],
    }
    parts = {HEADER: pack_plain(header)} | {group: pack_plain(sections[group]) for group in sorted(sections)}
    offsets, inline = lay_out(parts)
    return KeyedStateHandle(*key_groups, offsets, inline, FORMAT_NAME)


def _beside(schema: pa.Schema, is_run: bool) -> pa.Schema:
    """By position, as a column may be called like what stands beside the rows."""
    fields = [pa.field(str(place), field.type) for place, field in enumerate(schema)]
    beside = ["time", "mark", *([_NUMBER] if is_run else [])]
    return pa.schema([*fields, *(pa.field(name, pa.int64()) for name in beside)])


def _narrow(columns: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [narrowed(each if isinstance(each, pa.Array) else pa.array(each)) for each in columns]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


@lru_cache(64)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))
