"""Where the rows of a state table come from: keyed entries, Arrow partials, or the items of operator lists.

A source gives rows share by share; the shares are key groups, or for a list the subtasks. Each share is read alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...messages import MalformedMessage, OperatorListHandle, records_as_data, unpack_plain
from ...state.backends.backend import NO_NAMESPACE
from ...state.backends.group_parts import Part
from ...state.columns.packed_columns import unpacked
from ...state.errors import CorruptState
from ...state.keys.key_groups import key_group
from .arrow_columns import column_of, inferred, packed_column
from .keyed_parts import Entries, KeyedParts
from .state_files import StateFiles
from .stored_table import StoredTable
from .stored_types import PlainType, hashable, stored_type

Row: TypeAlias = dict[str, Any]
Only: TypeAlias = "tuple[Any, ...]"
"""The one key whose rows are wanted; empty: all are."""

ANY = PlainType("", None)


class RowSource(Protocol):
    """One state's rows."""

    def shares(self) -> list[int]:
        """Those that may hold rows."""
        ...

    def share_of(self, key: Any) -> int:
        """The one share in which a key is. Raises InvalidKey, and LookupError where rows have no key."""
        ...

    def batches(self, share: int, only: Only = ()) -> Iterator[pa.RecordBatch]:
        """The rows of a share; the types of columns may differ from batch to batch. Raises a StorageError."""
        ...

    def rows(self, share: int, only: Only = ()) -> Iterator[Row]:
        """The same, as Python values."""
        ...

    def identified(self, share: int) -> dict[Hashable, Any]:
        """The same: what tells each row from the others, and what it holds."""
        ...

    def described(self, value: Any) -> Any:
        """One of these values as people want to see it."""
        ...


class EntrySource:
    """A state that is declared by itself, or timers."""

    def __init__(self, parts: KeyedParts, table: StoredTable) -> None:
        self._parts, self._table = parts, table
        self._domain = table.name.partition("-")[0] if table.is_timers else ""

    def shares(self) -> list[int]:
        return self._parts.groups()

    def share_of(self, key: Any) -> int:
        return key_group(key, self._parts.max_parallelism or 1)

    def batches(self, share: int, only: Only = ()) -> Iterator[pa.RecordBatch]:
        with records_as_data():
            found = self._found(share, only)
            is_spaced = self._is_spaced(entries for _, _, entries in found)
            made = [
                self._batch(packed_column(entries.keys, stored_type(key_schema)), schema, entries, is_spaced)
                for key_schema, schema, entries in found
            ]
        yield from made

    def rows(self, share: int, only: Only = ()) -> Iterator[Row]:
        with records_as_data():
            found = self._found(share, only)
            is_spaced = self._is_spaced(entries for _, _, entries in found)
            listed = [row for each in found for row in self._rows_of(*each, is_spaced)]
        yield from listed

    def identified(self, share: int) -> dict[Hashable, Any]:
        if self._table.is_timers:
            return {(hashable(row["key"]), *list(row.values())[1:]): True for row in self.rows(share)}
        found: dict[Hashable, Any] = {}
        with records_as_data():
            for key_schema, schema, entries in self._parts.entries(self._table.name, share):
                of_key, of_value = stored_type(key_schema).decode, stored_type(schema).decode
                keys, values = unpacked(entries.keys), unpacked(entries.values)
                keys = keys if of_key is None else [hashable(of_key(key)) for key in keys]
                if entries.namespace != NO_NAMESPACE:
                    space = hashable(entries.namespace)
                    keys = [(key, space) for key in keys]
                found.update(zip(keys, values if of_value is None else map(of_value, values), strict=True))
        return found

    def described(self, value: Any) -> Any:
        return value

    def _found(self, share: int, only: Only) -> list[tuple[Any, Any, Entries]]:
        found = list(self._parts.entries(self._table.name, share))
        if not only:
            return found
        own = ((schema, value_schema, _of_key(entries, schema, only[0])) for schema, value_schema, entries in found)
        return [each for each in own if unpacked(each[2].keys)]

    def _is_spaced(self, found: Any) -> bool:
        return not self._table.is_timers and any(entries.namespace != NO_NAMESPACE for entries in found)

    def _batch(self, keys: pa.Array, schema: Any, entries: Entries, is_spaced: bool) -> pa.RecordBatch:
        columns = {"key": keys}
        if self._table.is_timers:
            timers = unpacked(entries.values)
            columns["domain"] = pa.array([self._domain] * len(timers), pa.string())
            columns["time_ms"] = pa.array([each[0] for each in timers], pa.int64())
            columns["namespace"] = inferred([None if each[1] == NO_NAMESPACE else each[1] for each in timers])
            return pa.RecordBatch.from_pydict(columns)
        if is_spaced:
            space = None if entries.namespace == NO_NAMESPACE else entries.namespace
            columns["namespace"] = inferred([space] * len(keys))
        columns["value"] = packed_column(entries.values, stored_type(schema))
        if entries.times is not None:
            columns["updated_ms"] = column_of(unpacked(entries.times), ANY)
        return pa.RecordBatch.from_pydict(columns)

    def _rows_of(self, key_schema: Any, schema: Any, entries: Entries, is_spaced: bool) -> Iterator[Row]:
        of_key, of_value = stored_type(key_schema).decode, stored_type(schema).decode
        keys, values = unpacked(entries.keys), unpacked(entries.values)
        times = None if entries.times is None else unpacked(entries.times)
        for at, (key, value) in enumerate(zip(keys, values, strict=True)):
            row: Row = {"key": key if of_key is None else of_key(key)}
            if self._table.is_timers:
                yield row | {
                    "domain": self._domain,
                    "time_ms": value[0],
                    "namespace": None if value[1] == NO_NAMESPACE else value[1],
                }
                continue
            if is_spaced:
                row["namespace"] = None if entries.namespace == NO_NAMESPACE else entries.namespace
            row["value"] = value if of_value is None else of_value(value)
            if times is not None:
                row["updated_ms"] = times[at]
            yield row


class ArrowSource:
    """What a columnar aggregation, windows or a join keep."""

    def __init__(self, parts: KeyedParts, table: StoredTable) -> None:
        self._parts, self._table = parts, table
        self._names: tuple[str, ...] = ()

    def shares(self) -> list[int]:
        return self._parts.groups()

    def share_of(self, key: Any) -> int:
        return key_group(key, self._parts.max_parallelism or 1)

    def batches(self, share: int, only: Only = ()) -> Iterator[pa.RecordBatch]:
        for batch in self._parts.rows(self._table.name, share):
            yield self._of_key(batch, only[0]) if only else batch

    def rows(self, share: int, only: Only = ()) -> Iterator[Row]:
        for batch in self.batches(share, only):
            yield from batch.to_pylist()

    def identified(self, share: int) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = {}
        for batch in self._parts.rows(self._table.name, share):
            columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            own = [columns.pop(name) for name in self._table.keys]
            keys = list(zip(*own, strict=True)) if len(own) > 1 else own[0]
            self._names = tuple(columns)
            found.update(zip(_numbered(keys, found), zip(*columns.values(), strict=True), strict=True))
        return found

    def described(self, value: Any) -> Any:
        return dict(zip(self._names, value, strict=True))

    def _of_key(self, batch: pa.RecordBatch, key: Any) -> pa.RecordBatch:
        """The rows of one key."""
        parts = key if len(self._table.keys) > 1 else (key,)
        for name, part in zip(self._table.keys, parts, strict=True):
            batch = batch.filter(pc.equal(batch.column(name), pa.scalar(part, batch.schema.field(name).type)))
        return batch


class ListSource:
    """Lists of one name, by subtask. `handles`: of each subtask, several after an upgrade."""

    def __init__(self, handles: Sequence[Sequence[OperatorListHandle]], files: StateFiles) -> None:
        self._handles, self._files = handles, files

    def shares(self) -> list[int]:
        return [
            subtask for subtask, handles in enumerate(self._handles) if any(len(each.offsets) > 1 for each in handles)
        ]

    def share_of(self, key: Any) -> int:
        raise LookupError("a list belongs to a subtask and has no keys")

    def batches(self, share: int, only: Only = ()) -> Iterator[pa.RecordBatch]:
        rows = list(self.rows(share))
        if rows:
            numbers = {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("subtask", "position")}
            yield pa.RecordBatch.from_pydict(numbers | {"value": inferred([row["value"] for row in rows])})

    def rows(self, share: int, only: Only = ()) -> Iterator[Row]:
        with records_as_data():
            listed = [
                {"subtask": share, "position": position, "value": value}
                for position, value in enumerate(value for each in self._handles[share] for value in self._values(each))
            ]
        yield from listed

    def identified(self, share: int) -> dict[Hashable, Any]:
        return {(share, row["position"]): row["value"] for row in self.rows(share)}

    def described(self, value: Any) -> Any:
        return value

    def _values(self, handle: OperatorListHandle) -> Iterator[Any]:
        if len(handle.offsets) < 2:
            return
        start, end = handle.offsets[0], handle.offsets[-1]
        data = self._files.part(handle.handle, Part(start, end - start, None))
        for first, last in pairwise(handle.offsets):
            try:
                packed_schema, raw = unpack_plain(data[first - start : last - start])
                decode = stored_type(unpack_plain(packed_schema)).decode
                yield raw if decode is None else decode(raw)
            except (MalformedMessage, TypeError, ValueError) as error:
                path = self._files.path_of(handle.handle)
                raise CorruptState(
                    path, f"items of list {handle.name!r}", f"{type(error).__name__}: {error}"
                ) from error


def _of_key(entries: Entries, key_schema: Any, key: Any) -> Entries:
    """Those of one key."""
    decode = stored_type(key_schema).decode
    own = [at for at, each in enumerate(unpacked(entries.keys)) if (each if decode is None else decode(each)) == key]
    every, held = unpacked(entries.keys), unpacked(entries.values)
    keys, values = ["plain", [every[at] for at in own]], ["plain", [held[at] for at in own]]
    times = None if entries.times is None else ["plain", [unpacked(entries.times)[at] for at in own]]
    return Entries(entries.namespace, keys, values, times)


def _numbered(keys: Sequence[Any], known: dict[Hashable, Any]) -> Sequence[Hashable]:
    """The keys; of several rows of one, as joins and windows keep, each but the first with its number."""
    try:
        if len(set(keys)) == len(keys) and not known:
            return keys
    except TypeError:
        keys = [hashable(key) for key in keys]
    counts: dict[Hashable, int] = {}
    numbered: list[Hashable] = []
    for key in keys:
        number = counts[key] = counts.get(key, -1) + 1
        numbered.append((key, number) if number or key in known else key)
    return numbered
