"""SavepointReader and SavepointOperator: a savepoint, or a checkpoint, as operators that have states.

Opening reads its pointer and its metadata; states are read when they are asked for. The files belong to somebody else,
and are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Self

from ...messages import CheckpointId, JobId, KeyedStateHandle, OperatorDescription, OperatorId, operator_id_of
from ...state.backends.keyed_snapshot import RUN_KEYS
from ...state.backends.stored_runs import is_of_runs
from ...state.backends.timer_queue import KIND
from ...state.checkpoints.assignment import operator_states
from ...state.checkpoints.completed_checkpoints import VertexSnapshot
from ...state.file_locations import AnyPath
from ...state.kinds.rows_fit import ROWS
from ...state.kinds.state_descriptions import LIST_KINDS
from .arrow_formats import is_side
from .errors import NoSuchState
from .found import Found, find
from .keyed_parts import KeyedParts
from .run_parts import run_handles
from .sources_of_rows import ArrowSource, EntrySource, ListSource, RowSource
from .state_files import StateFiles
from .state_table import StateTable
from .stored_table import StoredTable

ALL_TIMERS = "timers"
"""The name of the table of both domains."""


class SavepointReader:
    """A savepoint's operators and states."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.files = StateFiles(found.storage)

    @classmethod
    def open(cls, path: AnyPath) -> Self:
        """A savepoint's path, a checkpoint's folder or its `_metadata`; local, or a URL. Raises NotASavepoint,
        IncompleteSavepoint, MissingState, CorruptState, and UnreachableRoot.
        """
        return cls(find(path))

    def close(self) -> None:
        """Give back the files that state of RocksDB has put on this machine, and their descriptors. It may be read
        afterwards, and fetches them again; twice, this does nothing. A `with` block closes it at its end.
        """
        self.files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> str:
        return self.found.path

    @property
    def job_id(self) -> JobId:
        return self.found.checkpoint.job_id

    @property
    def checkpoint_id(self) -> CheckpointId:
        return self.found.checkpoint.checkpoint_id

    @property
    def taken_at(self) -> datetime:
        return datetime.fromtimestamp(self.found.checkpoint.timestamp_ms / 1000, UTC)

    @property
    def size_bytes(self) -> int:
        """Of its state, in files and inside the metadata."""
        return self.found.checkpoint.state_size_bytes

    @cached_property
    def _operators(self) -> dict[OperatorId, SavepointOperator]:
        found: dict[OperatorId, SavepointOperator] = {}
        for vertex in self.found.checkpoint.vertices.values():
            described = {each.operator_id: each for each in vertex.operators}
            stored = (operator for state in vertex.subtasks.values() for operator in state.operators)
            for operator_id in dict.fromkeys((*described, *stored)):
                found[operator_id] = SavepointOperator(self, operator_id, vertex, described.get(operator_id))
        return found

    def operators(self) -> list[SavepointOperator]:
        """All of the job's, those without state too, in the order of the job graph."""
        return list(self._operators.values())

    def operator(self, uid: str) -> SavepointOperator:
        """By its uid, or else its name. Raises NoSuchState, which lists those that there are."""
        known = self._operators.get(OperatorId(uid)) or self._operators.get(operator_id_of(uid))
        named = [each for each in self._operators.values() if each.name == uid]
        if known is None and len(named) == 1:
            return named[0]
        if known is None:
            raise NoSuchState(self.path, f"operator {uid!r}", self._operators)
        return known

    def tables(self) -> Iterator[StateTable]:
        """Every state of every operator."""
        for operator in self.operators():
            yield from operator.states()

    def __repr__(self) -> str:
        return f"<Savepoint {self.path}: checkpoint {self.checkpoint_id} of {self.job_id}>"


class SavepointOperator:
    """One operator in a savepoint."""

    def __init__(
        self, savepoint: SavepointReader, uid: OperatorId, vertex: VertexSnapshot, described: OperatorDescription | None
    ) -> None:
        self.savepoint = savepoint
        self.uid = uid
        """Its identity: the uid, or what the name became."""
        self.vertex, self.described = vertex, described

    @property
    def name(self) -> str:
        return self.described.name if self.described else self.uid

    @property
    def kind(self) -> str:
        """ "source", "operator" or "sink"."""
        return self.described.kind if self.described else "operator"

    @property
    def parallelism(self) -> int:
        return self.vertex.parallelism

    @property
    def max_parallelism(self) -> int:
        return self.vertex.max_parallelism

    @cached_property
    def keyed(self) -> KeyedParts:
        """Its keyed snapshots. Raises a StorageError, or UnreadableState."""
        return KeyedParts(self.name, self._keyed_handles, self.savepoint.files)

    @property
    def _keyed_handles(self) -> list[KeyedStateHandle]:
        states = operator_states(self.vertex.subtasks, self.uid, self.vertex.parallelism)
        return [handle for state in states for handle in state.keyed]

    def decode_runs(self) -> None:
        """Decode all that is in the runs of its keyed state, also what newer ones replace; but not which keys they
        replace, which is decoded with the rows. Raises a StorageError.
        """
        files = self.savepoint.files
        for handle in filter(is_of_runs, self._keyed_handles):
            parts = KeyedParts(self.name, run_handles(handle, files), files)
            for table in parts.tables().values():
                if table.kind != RUN_KEYS:
                    _decode(_source(parts, table))

    @cached_property
    def _tables(self) -> dict[str, StateTable]:
        declared = {each.name: each for each in self.described.states} if self.described else {}
        found = {name: self._keyed_table(table) for name, table in self.keyed.tables().items()}
        for name, handles in self._lists().items():
            state = declared.get(name)
            kind = state.kind if state is not None and state.kind in LIST_KINDS else "OperatorListState"
            table = StoredTable(name, kind, [state.schema if state is not None else "object"])
            found[name] = self._table(table, [ListSource(handles, self.savepoint.files)])
        for name, state in declared.items():
            if name not in found and not (state.kind == ROWS and any(map(is_side, found))):
                found[name] = self._table(StoredTable(name, state.kind, [state.schema]), [])
        order = [*declared, *found]
        return {name: found[name] for name in sorted(found, key=order.index)}

    def _keyed_table(self, table: StoredTable) -> StateTable:
        return self._table(table, [_source(self.keyed, table)])

    def _lists(self) -> dict[str, list[list[Any]]]:
        found: dict[str, list[list[Any]]] = {}
        for subtask, state in enumerate(operator_states(self.vertex.subtasks, self.uid, self.vertex.parallelism)):
            for handle in state.lists:
                lists = found.setdefault(handle.name, [[] for _ in range(self.vertex.parallelism)])
                lists[subtask].append(handle)
        return found

    def _table(self, table: StoredTable, sources: Sequence[RowSource]) -> StateTable:
        again = partial(reopened, self.savepoint.path, self.uid, table.name)
        return StateTable((self.savepoint.path, self.uid), table, sources, again)

    def states(self) -> list[StateTable]:
        """All that it declared or holds: keyed states, timers, lists, the offset of a source, a sink's transactions."""
        return list(self._tables.values())

    def table_names(self) -> list[str]:
        """Of its states."""
        return list(self._tables)

    def state(self, name: str) -> StateTable:
        """Raises NoSuchState, which lists those that there are."""
        found = self._tables.get(name)
        if found is None:
            raise NoSuchState(f"{self.savepoint.path}: operator {self.name!r}", f"state {name!r}", self._tables)
        return found

    def timers(self) -> StateTable:
        """Those of event time and of processing time together; `domain` says which."""
        tables = [table for table in self.keyed.tables().values() if table.is_timers]
        return self._table(StoredTable(ALL_TIMERS, KIND, [None]), [EntrySource(self.keyed, each) for each in tables])

    def __repr__(self) -> str:
        return f"<SavepointOperator {self.uid}: {', '.join(self._tables) or 'no state'}>"


def _source(parts: KeyedParts, table: StoredTable) -> RowSource:
    return ArrowSource(parts, table) if table.is_arrow else EntrySource(parts, table)


def _decode(source: RowSource) -> None:
    for share in source.shares():
        for _ in source.rows(share):
            pass


def reopened(path: str, uid: str, name: str) -> StateTable:
    """A table, in another process."""
    found = SavepointReader.open(path).operator(uid)
    return found.timers() if name == ALL_TIMERS else found.state(name)
