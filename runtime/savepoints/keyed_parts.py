"""KeyedParts: one operator's keyed snapshots, state by state and key group by key group, in any format of ours.

Entries of states that are declared one by one come packed, as columns of keys and of values (`Entries`); what columnar
aggregations, windows and joins keep is Arrow already.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from ...messages import KeyedStateHandle, MalformedMessage, unpack_plain
from ...state.backends.group_parts import HEADER
from ...state.backends.keyed_snapshot import FORMAT_NAME as HEAP
from ...state.backends.keyed_snapshot import RUN_KEYS
from ...state.backends.stored_runs import format_of, is_of_runs
from ...state.backends.timer_queue import KIND as TIMERS
from ...state.columnar.group_sections import FORMAT_NAME as COLUMNAR
from ...state.columnar.group_sections import write_sections
from ...state.columnar.rows_format import FORMAT_NAME as ROWS
from ...state.columnar.rows_format import SideRows, in_one, side_of
from ...state.columnar.rows_format import newest_rows as newest_kept_rows
from ...state.columnar.window_runs import RUN, without_gone
from ...state.columns.column_values import widened
from ...state.errors import CorruptState
from ...state.keys.key_groups import KeyGroupRange
from ...state.kinds.aggregation_fit import AGGREGATION, STATE_NAME
from ...state.kinds.rows_fit import ROWS as ROWS_KIND
from ...state.kinds.rows_fit import ROWS_NAME
from ...state.kinds.schema_fit import Schema
from ..connectors.errors import require
from .errors import UnreadableState
from .run_parts import Payload, newest_payloads, newest_rows, run_handles
from .state_files import StateFiles

ROCKS = "rocksdb"
HEAP_FORMATS = frozenset({HEAP, "memory", "filesystem"})
_IN_RUNS = frozenset({HEAP, COLUMNAR, ROWS})
_DAMAGED = (MalformedMessage, LookupError, TypeError, ValueError, AttributeError, OSError)


class Entries(NamedTuple):
    """Of one key group and namespace, still packed."""

    namespace: Hashable
    keys: Any
    values: Any
    times: Any
    """When they were last updated, of a state with a TTL; else None."""


@dataclass(slots=True)
class StoredTable:
    """One state of one operator, in all its snapshots."""

    name: str
    kind: str
    schemas: list[Schema] = field(default_factory=list)
    """Those that it was written under, each once: after an upgrade a state may be carried along under its old one."""
    is_arrow: bool = False
    keys: tuple[str, ...] = ()
    """The key columns, of a table that is Arrow."""

    @property
    def is_timers(self) -> bool:
        return self.kind == TIMERS

    @property
    def has_ttl(self) -> bool:
        return any(isinstance(schema, dict) and "ttl" in schema for schema in self.schemas)


class Snapshot:
    """One keyed handle and its header."""

    def __init__(self, handle: KeyedStateHandle, header: dict[str, Any]) -> None:
        self.handle, self.header = handle, header

    @property
    def is_heap(self) -> bool:
        return self.handle.backend in HEAP_FORMATS

    @property
    def groups(self) -> Sequence[int]:
        return sorted(group for group in self.handle.offsets if group >= 0)


class RocksParts(Snapshot):
    """A snapshot of RocksDB: its files are fetched when the first key group is read, into a temporary folder."""

    def __init__(self, handle: KeyedStateHandle, files: StateFiles) -> None:
        require("rocksdict", extra="rocksdb", wanted_by="state in RocksDB")
        from ...state.rocks.rocks_snapshot import MainPart

        self._read = files.read
        main = MainPart.read(handle, self._read)
        listed: list[list[Any]] = []
        kept = main.kept_states(main.key_groups, None)
        for state in chain(
            ([each.name, each.kind, each.schema] for each in main.states),
            ([each.name, each.kind, each.schema] for each in kept),
        ):
            listed += [] if state in listed else [state]
        header = {"max_parallelism": main.max_parallelism, "key": main.key_schema, "states": listed}
        super().__init__(handle, header)
        self._opened: Any = None

    @property
    def is_heap(self) -> bool:
        return True

    @property
    def groups(self) -> range:
        """Any of them may hold something."""
        return range(self.handle.first_key_group, self.handle.last_key_group + 1)

    def common(self, group: int) -> KeyedStateHandle | None:
        """What a key group holds, in the common format. Raises a StateError."""
        if self._opened is None:
            from ...state.rocks.common_format import RocksSnapshot

            self._opened = RocksSnapshot(self.handle, self._read)
            weakref.finalize(self, self._opened.close)
        found: KeyedStateHandle | None = self._opened.of(range(group, group + 1))
        return found


class RunParts(Snapshot):
    """The runs of an incremental checkpoint, the oldest first: newer ones replace what older ones say of a key."""

    def __init__(self, handle: KeyedStateHandle, runs: Sequence[Snapshot]) -> None:
        newest = runs[-1]
        states = [state for run in runs for state in run.header.get("states", ()) if state[1] != RUN_KEYS]
        listed = [state for at, state in enumerate(states) if state not in states[:at]]
        super().__init__(handle, newest.header | ({"states": listed} if newest.is_heap else {}))
        self.runs = runs

    @property
    def is_heap(self) -> bool:
        return self.runs[-1].is_heap

    @property
    def groups(self) -> Sequence[int]:
        return sorted({group for run in self.runs for group in run.groups})


class KeyedParts:
    """Of one operator. `handles`: those of all its subtasks."""

    def __init__(self, operator: str, handles: Sequence[KeyedStateHandle], files: StateFiles) -> None:
        self.files = files
        self.snapshots = [self._snapshot(operator, handle) for handle in handles]
        self.max_parallelism: int | None = None
        for each in self.snapshots:
            self.max_parallelism = self._checked(each, partial(_max_parallelism, each))

    def tables(self) -> dict[str, StoredTable]:
        """By the name of the state. Raises CorruptState."""
        found: dict[str, StoredTable] = {}
        for snapshot in self.snapshots:
            for table in self._checked(snapshot, partial(_tables, snapshot)):
                known = found.setdefault(table.name, table)
                known.schemas += [schema for schema in table.schemas if schema not in known.schemas]
        return found

    def groups(self, first: int = 0, last: int = 1 << 15) -> list[int]:
        """The key groups that hold something, in order."""
        found = {group for each in self.snapshots for group in each.groups}
        return sorted(group for group in found if first <= group <= last)

    def entries(self, name: str, group: int) -> Iterator[tuple[Schema, Schema, Entries]]:
        """The schema of the keys, that of the values, and entries. Raises a StorageError."""
        for snapshot in self.snapshots:
            if snapshot.is_heap and group in snapshot.groups:
                yield from self._entries(snapshot, name, group)

    def rows(self, name: str, group: int) -> Iterator[pa.RecordBatch]:
        """Of a table that is Arrow. Raises a StorageError."""
        for snapshot in self.snapshots:
            if isinstance(snapshot, RunParts) and not snapshot.is_heap:
                yield from self._rows_of_runs(snapshot, name, group)
            elif not snapshot.is_heap and (batch := self._rows(snapshot, name, group)) is not None:
                yield batch

    def whole_columns(self, handle: KeyedStateHandle) -> KeyedStateHandle:
        """What the runs in this handle hold, all in columns, as one snapshot, inline. Raises a StorageError."""
        snapshot = next(each for each in self.snapshots if isinstance(each, RunParts) and each.handle is handle)
        if format_of(handle) == ROWS:
            joined: KeyedStateHandle = self._checked(snapshot, partial(in_one, handle, self.files.read))
            return joined
        header = {what: each for what, each in snapshot.header.items() if what != RUN}
        schema = pa.ipc.read_schema(pa.py_buffer(header["schema"]))
        batches: list[pa.RecordBatch] = []
        shares, end = [], 0
        for group in snapshot.groups:
            found = self._rows_of_runs(snapshot, STATE_NAME, group)
            batches += found
            shares.append((group, end, end := end + sum(batch.num_rows for batch in found)))
        (rows,) = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
        own = KeyGroupRange(handle.first_key_group, handle.last_key_group)
        return write_sections(own, header, schema, rows, shares)

    def _rows_of_runs(self, snapshot: RunParts, name: str, group: int) -> list[pa.RecordBatch]:
        if format_of(snapshot.handle) == ROWS:
            runs = [part for run in snapshot.runs if (part := self._side(run, name, group)) is not None]
            found = self._checked(snapshot, lambda: newest_kept_rows(runs))
            return [] if found is None else [_named(found, snapshot.header, name)]
        batches = [batch for run in snapshot.runs if (batch := self._rows(run, name, group)) is not None]
        left = newest_rows(batches, snapshot.header["keys"])
        if RUN not in snapshot.header:
            return list(left)
        found = self._checked(snapshot, lambda: [without_gone(batch, snapshot.header) for batch in left])
        return [batch for batch in found if batch.num_rows]

    def _side(self, run: Snapshot, name: str, group: int) -> SideRows | None:
        if group not in run.handle.offsets:
            return None
        data = self.files.group(run.handle, group)
        found: SideRows | None = self._checked(run, partial(_side_rows, run.header, name, data))
        return found

    def _rows(self, snapshot: Snapshot, name: str, group: int) -> pa.RecordBatch | None:
        if group not in snapshot.handle.offsets:
            return None
        data = self.files.group(snapshot.handle, group)
        found: pa.RecordBatch | None = self._checked(snapshot, partial(_rows, snapshot, name, data))
        return found

    def _entries(self, snapshot: Snapshot, name: str, group: int) -> Iterator[tuple[Schema, Schema, Entries]]:
        key = snapshot.header["key"]
        for each in self._payloads(snapshot, group):
            if each.state == name:
                yield key, each.schema, self._checked(snapshot, partial(_entry, each.data, each.schema))

    def payloads(self, group: int) -> Iterator[Payload]:
        """Of all states. Raises a StorageError."""
        for snapshot in self.snapshots:
            if snapshot.is_heap and group in snapshot.groups:
                yield from self._payloads(snapshot, group)

    def _payloads(self, snapshot: Snapshot, group: int) -> Iterator[Payload]:
        if isinstance(snapshot, RocksParts):
            common = snapshot.common(group)
            if common is not None:
                yield from self._payloads(Snapshot(common, self._header("", common)), group)
            return
        if isinstance(snapshot, RunParts):
            runs = [list(self._payloads(run, group)) if group in run.groups else [] for run in snapshot.runs]
            yield from self._checked(snapshot, lambda: list(newest_payloads(runs)))
            return
        states = snapshot.header["states"]
        data = self.files.group(snapshot.handle, group)
        for at, payload in self._checked(snapshot, partial(_payloads, data)):
            name, kind, schema = self._checked(snapshot, partial(states.__getitem__, at))
            yield Payload(name, kind, schema, payload)

    def _snapshot(self, operator: str, handle: KeyedStateHandle) -> Snapshot:
        if handle.backend == ROCKS:
            return RocksParts(handle, self.files)
        if not is_of_runs(handle):
            return Snapshot(handle, self._header(operator, handle))
        runs = [Snapshot(run, self._header(operator, run)) for run in run_handles(handle, self.files)]
        formats = {run.handle.backend for run in runs}
        if len(formats) != 1 or not formats <= _IN_RUNS:
            found, wanted = (", ".join(sorted(each)) or "none" for each in (formats, _IN_RUNS))
            raise CorruptState(self.files.path_of(handle.handle), f"runs of one format, of {wanted}", found)
        return RunParts(handle, runs)

    def _header(self, operator: str, handle: KeyedStateHandle) -> dict[str, Any]:
        if handle.backend not in (*HEAP_FORMATS, COLUMNAR, ROWS):
            raise UnreadableState(
                f"operator {operator!r}: its keyed state is a snapshot of the format {handle.backend!r}, which this "
                "release does not know: read it with the release that wrote it"
            )
        data = self.files.group(handle, HEADER)
        header = self._checked(Snapshot(handle, {}), partial(unpack_plain, data))
        if not isinstance(header, dict):
            raise CorruptState(self.files.path_of(handle.handle), "the header of a snapshot", f"{header!r:.60}")
        return header

    def _checked(self, snapshot: Snapshot, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except _DAMAGED as error:
            path = self.files.path_of(snapshot.handle.handle)
            text = str(error)
            if isinstance(error, MalformedMessage) and "is loaded here" in text:
                raise UnreadableState(f"{path}: {text}: import the module that defines it first") from error
            raise CorruptState(path, "a snapshot of keyed state", f"{type(error).__name__}: {text}") from error


def _max_parallelism(snapshot: Snapshot) -> int:
    return int(snapshot.header["max_parallelism"])


def _payloads(data: bytes) -> list[Any]:
    return [(at, payload) for at, payload in unpack_plain(data)]


def _tables(snapshot: Snapshot) -> list[StoredTable]:
    return list(_each_table(snapshot))


def _each_table(snapshot: Snapshot) -> Iterator[StoredTable]:
    header = snapshot.header
    if snapshot.is_heap:
        for name, kind, schema in header["states"]:
            yield StoredTable(str(name), str(kind), [schema])
    elif format_of(snapshot.handle) == COLUMNAR:
        schema = {what: header[what] for what in ("keys", "aggregates", "windows") if what in header}
        yield StoredTable(STATE_NAME, AGGREGATION, [schema], is_arrow=True, keys=tuple(header["keys"]))
    else:
        for name, each in zip(_sides(header), header["rows"]["sides"], strict=True):
            yield StoredTable(name, ROWS_KIND, [each], is_arrow=True, keys=tuple(each["keys"]))


_OF_INPUT = f"{ROWS_NAME} of input "


def is_side(name: str) -> bool:
    """Whether this table is one of several that an operator keeps rows in."""
    return name.startswith(_OF_INPUT)


def _sides(header: dict[str, Any]) -> list[str]:
    """The names of the tables, side by side."""
    number = len(header["rows"]["sides"])
    return [ROWS_NAME] if number == 1 else [f"{_OF_INPUT}{side}" for side in range(1, number + 1)]


def _entry(payload: bytes, schema: Schema) -> Entries:
    is_timed = isinstance(schema, dict) and "ttl" in schema
    match unpack_plain(payload):
        case [namespace, keys, ["tuples", values, times]] if is_timed:
            return Entries(namespace, keys, values, times)
        case [namespace, keys, values] if not is_timed:
            return Entries(namespace, keys, values, None)
        case other:
            raise MalformedMessage(f"wanted a namespace, keys and values, found {other!r:.60}")


def _rows(snapshot: Snapshot, name: str, data: bytes) -> pa.RecordBatch | None:
    header = snapshot.header
    if snapshot.handle.backend == COLUMNAR:
        schema = pa.ipc.read_schema(pa.py_buffer(header["schema"]))
        stored = schema if "stored" not in header else pa.ipc.read_schema(pa.py_buffer(header["stored"]))
        return widened(pa.ipc.read_record_batch(pa.py_buffer(data), stored), schema)
    found = _side_rows(header, name, data)
    return None if found is None else _named(found.batch, header, name)


def _side_rows(header: dict[str, Any], name: str, data: bytes) -> SideRows | None:
    return side_of(header, unpack_plain(data), _sides(header).index(name))


def _named(rows: pa.RecordBatch, header: dict[str, Any], name: str) -> pa.RecordBatch:
    own = list(header["rows"]["sides"][_sides(header).index(name)]["types"])
    names = [*own, *(beside + "'" * (beside in own) for beside in ("time", "mark"))]
    return pa.RecordBatch.from_arrays(rows.columns[: len(names)], names=names)
