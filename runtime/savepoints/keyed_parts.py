"""KeyedParts: one operator's keyed snapshots, state by state and key group by key group, in any format of ours.

Entries of states that are declared one by one come packed, as columns of keys and of values (`Entries`); what columnar
aggregations, windows and joins keep is Arrow already.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from ...messages import KeyedStateHandle, MalformedMessage, unpack_plain
from ...state.backends.group_parts import HEADER
from ...state.backends.keyed_snapshot import FORMAT_NAME as HEAP
from ...state.backends.keyed_snapshot import RUN_KEYS
from ...state.backends.stored_runs import format_of, is_of_runs
from ...state.errors import CorruptState
from ...state.kinds.schema_fit import Schema
from ..connectors.errors import require
from .arrow_formats import ARROW_FORMATS, ArrowFormat
from .errors import UnreadableState
from .run_parts import Payload, newest_payloads, run_handles
from .state_files import StateFiles
from .stored_table import StoredTable

ROCKS = "rocksdb"
HEAP_FORMATS = frozenset({HEAP, "memory", "filesystem"})
_IN_RUNS = frozenset({HEAP, *ARROW_FORMATS})
_DAMAGED = (MalformedMessage, LookupError, TypeError, ValueError, AttributeError, OSError)


class Entries(NamedTuple):
    """Of one key group and namespace, still packed."""

    namespace: Hashable
    keys: Any
    values: Any
    times: Any
    """When they were last updated, of a state with a TTL; else None."""


class Snapshot:
    """One keyed handle and its header."""

    def __init__(self, handle: KeyedStateHandle, header: dict[str, Any]) -> None:
        self.handle, self.header = handle, header

    @property
    def runs(self) -> Sequence[Snapshot]:
        """The snapshots that make it up, the oldest first."""
        return (self,)

    @property
    def in_arrow(self) -> ArrowFormat | None:
        """None: its entries are packed."""
        return ARROW_FORMATS.get(format_of(self.handle))

    @property
    def groups(self) -> Sequence[int]:
        return sorted(group for group in self.handle.offsets if group >= 0)

    def tables(self) -> list[StoredTable]:
        """Raises LookupError, TypeError or ValueError for a header of something else."""
        if self.in_arrow is not None:
            return list(self.in_arrow.tables(self.header))
        return [StoredTable(str(name), str(kind), [schema]) for name, kind, schema in self.header["states"]]


class RocksParts(Snapshot):
    """A snapshot of RocksDB: its files are fetched when the first key group is read, into a temporary folder."""

    def __init__(self, handle: KeyedStateHandle, files: StateFiles) -> None:
        require("rocksdict", extra="rocksdb", wanted_by="state in RocksDB")
        from ...state.rocks.rocks_snapshot import MainPart

        self._read = files.read
        main = MainPart.read(handle, self._read)
        kept = main.kept_states(main.key_groups, None)
        own = ([each.name, each.kind, each.schema] for each in main.states)
        beside = ([each.name, each.kind, each.schema] for each in kept)
        listed = _once(chain(own, beside))
        header = {"max_parallelism": main.max_parallelism, "key": main.key_schema, "states": listed}
        super().__init__(handle, header)
        self._files = files
        self._opened: Any = None
        self._release: Callable[[], Any] | None = None
        """Closes what is open."""

    @property
    def groups(self) -> range:
        """Any of them may hold something."""
        return range(self.handle.first_key_group, self.handle.last_key_group + 1)

    def common(self, group: int, without: Collection[str]) -> KeyedStateHandle | None:
        """What a key group holds, in the common format, but for the states of these names. Raises a StateError."""
        if self._opened is None:
            from ...state.rocks.common_format import RocksSnapshot

            self._opened = RocksSnapshot(self.handle, self._read)
            self._release = weakref.finalize(self, self._opened.close)
            self._files.fetched(self)
        found: KeyedStateHandle | None = self._opened.of(range(group, group + 1), without)
        return found

    def close(self) -> None:
        """The folder and its descriptors go; the next key group fetches the files again."""
        self._opened = None
        if self._release is not None:
            self._release()


class RunParts(Snapshot):
    """The runs of an incremental checkpoint, the oldest first: newer ones replace what older ones say of a key."""

    def __init__(self, handle: KeyedStateHandle, runs: Sequence[Snapshot]) -> None:
        newest = runs[-1]
        states = [state for run in runs for state in run.header.get("states", ()) if state[1] != RUN_KEYS]
        super().__init__(handle, newest.header | ({"states": _once(states)} if newest.in_arrow is None else {}))
        self._runs = runs

    @property
    def runs(self) -> Sequence[Snapshot]:
        return self._runs

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
            for table in self._checked(snapshot, snapshot.tables):
                known = found.setdefault(table.name, table)
                known.schemas = _once([*known.schemas, *table.schemas])
        return found

    def groups(self, first: int = 0, last: int = 1 << 15) -> list[int]:
        """The key groups that hold something, in order."""
        found = {group for each in self.snapshots for group in each.groups}
        return sorted(group for group in found if first <= group <= last)

    def entries(self, name: str, group: int) -> Iterator[tuple[Schema, Schema, Entries]]:
        """The schema of the keys, that of the values, and entries. Raises a StorageError."""
        for snapshot in self.snapshots:
            if snapshot.in_arrow is None and group in snapshot.groups:
                yield from self._entries(snapshot, name, group)

    def rows(self, name: str, group: int) -> Iterator[pa.RecordBatch]:
        """Of a table that is Arrow. Raises a StorageError."""
        for snapshot in self.snapshots:
            if snapshot.in_arrow is not None:
                parts = [part for run in snapshot.runs if (part := self._part(run, name, group)) is not None]
                read = snapshot.in_arrow.rows
                yield from self._checked(snapshot, partial(read, snapshot.header, name, parts))

    def whole_columns(self, handle: KeyedStateHandle) -> KeyedStateHandle:
        """What the runs in this handle hold, all in columns, as one snapshot, inline. Raises a StorageError."""
        snapshot = next(each for each in self.snapshots if isinstance(each, RunParts) and each.handle is handle)
        assert snapshot.in_arrow is not None
        joined: KeyedStateHandle = self._checked(snapshot, partial(snapshot.in_arrow.in_one, handle, self.files.read))
        return joined

    def _part(self, run: Snapshot, name: str, group: int) -> Any:
        """What the format makes of it; None: there is nothing of this key group."""
        if run.in_arrow is None or group not in run.handle.offsets:
            return None
        return self._checked(run, partial(run.in_arrow.part, run.header, name, self.files.group(run.handle, group)))

    def _entries(self, snapshot: Snapshot, name: str, group: int) -> Iterator[tuple[Schema, Schema, Entries]]:
        key = snapshot.header["key"]
        for each in self._payloads(snapshot, group):
            if each.state == name:
                yield key, each.schema, self._checked(snapshot, partial(_entry, each.data, each.schema))

    def payloads(self, group: int, without: Collection[str] = ()) -> Iterator[Payload]:
        """Of all states; those of the names in `without` may be left out. Raises a StorageError."""
        for snapshot in self.snapshots:
            if snapshot.in_arrow is None and group in snapshot.groups:
                yield from self._payloads(snapshot, group, without)

    def _payloads(self, snapshot: Snapshot, group: int, without: Collection[str] = ()) -> Iterator[Payload]:
        if isinstance(snapshot, RocksParts):
            common = snapshot.common(group, without)
            if common is not None:
                yield from self._payloads(Snapshot(common, self._header("", common)), group, without)
            return
        if isinstance(snapshot, RunParts):
            runs = [list(self._payloads(run, group, without)) if group in run.groups else [] for run in snapshot.runs]
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
        if handle.backend not in (*HEAP_FORMATS, *ARROW_FORMATS):
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


def _once(schemas: Iterable[Any]) -> list[Any]:
    """Without repetition. Of records the order of fields counts, which equal dicts may not have."""
    return list({repr(each): each for each in schemas}.values())


def _max_parallelism(snapshot: Snapshot) -> int:
    return int(snapshot.header["max_parallelism"])


def _payloads(data: bytes) -> list[Any]:
    return [(at, payload) for at, payload in unpack_plain(data)]


def _entry(payload: bytes, schema: Schema) -> Entries:
    is_timed = isinstance(schema, dict) and "ttl" in schema
    match unpack_plain(payload):
        case [namespace, keys, ["tuples", values, times]] if is_timed:
            return Entries(namespace, keys, values, times)
        case [namespace, keys, values] if not is_timed:
            return Entries(namespace, keys, values, None)
        case other:
            raise MalformedMessage(f"wanted a namespace, keys and values, found {other!r:.60}")
