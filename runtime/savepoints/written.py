"""A new savepoint in files: those of all subtasks, then the metadata, then the pointer, which makes it one.

State that is not edited is copied, verified on its way. A savepoint that could not be written leaves nothing behind.
The state of one subtask is held at a time, and the rows that are put.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

from ...messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorDescription,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    Predecessor,
    StateDescription,
    SubtaskIndex,
    SubtaskState,
    VertexId,
    pack_plain,
    unpack_plain,
)
from ...state.backends.backend import SnapshotTarget
from ...state.backends.group_parts import HEADER, Part, lay_out
from ...state.backends.operator_state import list_handle
from ...state.backends.stored_runs import format_of, is_of_runs
from ...state.backends.timer_queue import KIND as TIMERS
from ...state.checkpoint_folders import checkpoint_directory
from ...state.checkpoints.checkpoint_metadata import encode_metadata
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from ...state.checkpoints.savepoint_store import POINTER_VERSION, FilesystemSavepointStore, SavepointPointer
from ...state.checkpoints.savepoint_stores import FOLDER
from ...state.checkpoints.savepoints import METADATA
from ...state.checkpoints.snapshot_file import state_size_bytes, store_in_file
from ...state.keys.key_groups import DEFAULT_LOWER_BOUND, key_group_range
from ...state.kinds.state_descriptions import LIST_KINDS
from ...state.storage import CheckpointStorage
from .edit import OperatorEdit, SavepointEdit
from .edited_entries import EditedEntries
from .errors import InvalidEdit, UnreadableState
from .keyed_parts import HEAP_FORMATS, ROCKS
from .state_files import StateFiles
from .stored_types import NoSuchValue, stored_type


def write(edit: SavepointEdit, storage: CheckpointStorage) -> str:
    """The new savepoint's path. Raises InvalidEdit, a StorageError, UnwritableRoot or OSError."""
    storage.check(with_mark=False)
    writer = _Writer(edit, storage)
    try:
        return writer.write()
    except BaseException:
        with suppress(OSError):
            storage.delete_job(writer.job_id)
        raise


class _Writer:
    def __init__(self, edit: SavepointEdit, storage: CheckpointStorage) -> None:
        self._edit, self._storage = edit, storage
        self._base = edit.base.found.checkpoint if edit.base is not None else None
        self.job_id = JobId(f"job-{uuid4().hex}")
        self._id = self._base.checkpoint_id if self._base is not None else CheckpointId(1)
        self._time_ms = self._base.timestamp_ms if self._base is not None else time.time_ns() // 1_000_000
        self._entries: dict[int, EditedEntries] = {}
        self._edits = {each.source.uid: each for each in edit.operators() if each.source is not None}

    def write(self) -> str:
        self._check()
        vertices = dict(self._vertices())
        predecessors: tuple[Predecessor, ...] = ()
        if self._base is not None:
            predecessors = (*self._base.predecessors, Predecessor(self._base.job_id, self._base.checkpoint_id))
        metadata = f"{checkpoint_directory(self.job_id, self._id)}/{METADATA}"
        size = sum(state_size_bytes(state) for vertex in vertices.values() for state in vertex.subtasks.values())
        is_final = self._base is not None and self._base.is_final
        completed = CompletedCheckpoint(
            self.job_id, self._id, self._time_ms, self._time_ms, size, vertices, True, is_final, metadata, predecessors
        )
        self._storage.write_sealed(metadata, encode_metadata(completed))
        root = self._storage.location()
        pointer = SavepointPointer(POINTER_VERSION, self.job_id, self._id, root, metadata, self._time_ms)
        store = FilesystemSavepointStore(self._storage, folder=FOLDER)
        return store.canonical(store.store(pointer))

    def _check(self) -> None:
        uids = [each.uid for each in self._edit.operators()]
        if twice := [uid for uid in uids if uids.count(uid) > 1]:
            raise InvalidEdit(f"two operators would have the uid {twice[0]!r}")
        if self._base is not None and any(state.channels for state in self._base.states()):
            raise InvalidEdit(
                "it is an unaligned checkpoint, with records on their way, which only the very same job can take up: "
                "take a savepoint, and edit that"
            )

    # -- vertices

    def _vertices(self) -> Iterator[tuple[VertexId, VertexSnapshot]]:
        for vertex_id, vertex in (self._base.vertices if self._base is not None else {}).items():
            groups = self._edit.new_max_parallelism or vertex.max_parallelism
            self._check_parallelism(vertex_id, vertex.parallelism, groups)
            subtasks = map(SubtaskIndex, range(vertex.parallelism))
            made = {index: self._subtask(vertex_id, vertex, groups, index) for index in subtasks}
            states = {index: state for index, state in made.items() if state.operators or index in vertex.subtasks}
            described = tuple(self._described(each) for each in vertex.operators)
            yield vertex_id, replace(vertex, max_parallelism=groups, subtasks=states, operators=described)
        for edit in self._edit.operators():
            if edit.source is None and not edit.dropped:
                yield VertexId(edit.uid), self._new_vertex(edit)

    def _new_vertex(self, edit: OperatorEdit) -> VertexSnapshot:
        known = [vertex.max_parallelism for vertex in self._base.vertices.values()] if self._base is not None else []
        groups = self._edit.new_max_parallelism or max(known, default=DEFAULT_LOWER_BOUND)
        self._check_parallelism(edit.uid, edit.parallelism, groups)
        entries = EditedEntries(edit, groups, self._time_ms)
        states: dict[SubtaskIndex, SubtaskState] = {}
        for index in map(SubtaskIndex, range(edit.parallelism)):
            handle = entries.handle(key_group_range(groups, edit.parallelism, index))
            own = {} if handle is None else {edit.uid: OperatorSubtaskState((handle,))}
            states[index] = self._stored(SubtaskState(own), VertexId(edit.uid), index)
        described = OperatorDescription(edit.uid, edit.name, "operator", self._descriptions(edit, ()))
        return VertexSnapshot(edit.parallelism, groups, states, (described,))

    @staticmethod
    def _check_parallelism(where: str, parallelism: int, groups: int) -> None:
        if not 1 <= parallelism <= groups:
            raise InvalidEdit(f"{where}: parallelism {parallelism} with max_parallelism {groups}; wanted 1 to {groups}")

    def _described(self, operator: OperatorDescription) -> OperatorDescription:
        edit = self._edits[operator.operator_id]
        if edit.dropped:
            return replace(operator, operator_id=edit.uid, name=edit.name)
        return replace(operator, operator_id=edit.uid, name=edit.name, states=self._descriptions(edit, operator.states))

    @staticmethod
    def _descriptions(edit: OperatorEdit, known: tuple[StateDescription, ...]) -> tuple[StateDescription, ...]:
        gone = {each.name for each in edit.states.values() if each.is_gone}
        known = tuple(each for each in known if each.name not in gone)
        names = {each.name for each in known} | gone
        new = (each for each in edit.states.values() if each.name not in names and each.kind != TIMERS)
        return (*known, *(StateDescription(each.name, each.kind, each.value_schema) for each in new))

    # -- subtasks

    def _subtask(self, vertex_id: VertexId, vertex: VertexSnapshot, groups: int, index: SubtaskIndex) -> SubtaskState:
        state = vertex.subtasks.get(index, SubtaskState({}))
        operators: dict[OperatorId, OperatorSubtaskState] = {}
        uids = {*state.operators, *(each.operator_id for each in vertex.operators)}
        for uid in sorted(uids):
            edit, old = self._edits[uid], state.operators.get(uid, OperatorSubtaskState())
            if edit.dropped:
                continue
            keyed = self._keyed(edit, old, vertex, groups, index)
            lists = tuple(each for handle in old.lists for each in self._list(edit, handle))
            if keyed or lists:
                operators[edit.uid] = OperatorSubtaskState(keyed, lists)
        return self._stored(replace(state, operators=operators), vertex_id, index)

    def _stored(self, state: SubtaskState, vertex_id: VertexId, index: SubtaskIndex) -> SubtaskState:
        attempt = ExecutionAttemptId("edited")
        return store_in_file(state, SnapshotTarget(self._storage, self.job_id, self._id, vertex_id, index, attempt))

    def _keyed(
        self, edit: OperatorEdit, old: OperatorSubtaskState, vertex: VertexSnapshot, groups: int, index: SubtaskIndex
    ) -> tuple[KeyedStateHandle, ...]:
        keyed_edits = [each for each in edit.states.values() if each.is_touched and each.kind not in LIST_KINDS]
        is_regrouped = groups != vertex.max_parallelism
        in_columns = [each for each in old.keyed if format_of(each) not in (*HEAP_FORMATS, ROCKS)]
        if not keyed_edits and not is_regrouped:
            if in_columns or not any(map(is_of_runs, old.keyed)):
                return tuple(each for handle in old.keyed for each in self._copied(edit, handle))
        elif in_columns:
            raise InvalidEdit(
                f"operator {edit.uid!r}: its state is in columns ({format_of(in_columns[0])}), which can be dropped "
                "with the operator, and given neither other values nor another max_parallelism"
            )
        handle = self._entries_of(edit, groups).handle(key_group_range(groups, vertex.parallelism, index))
        in_flight = sum(each.in_flight for each in old.keyed)
        return () if handle is None else (replace(handle, in_flight=in_flight),)

    def _entries_of(self, edit: OperatorEdit, groups: int) -> EditedEntries:
        known = self._entries.get(id(edit))
        if known is None:
            known = self._entries[id(edit)] = EditedEntries(edit, groups, self._time_ms)
        return known

    def _copied(self, edit: OperatorEdit, handle: KeyedStateHandle) -> Iterator[KeyedStateHandle]:
        if handle.backend == ROCKS:
            yield from self._in_common_format(handle)
            return
        if is_of_runs(handle):
            assert edit.source is not None
            yield edit.source.keyed.whole_columns(handle)
            return
        if handle.shared:
            raise UnreadableState(
                f"a snapshot of the format {handle.backend!r} shares files, and cannot be copied here"
            )
        groups = [HEADER, *(group for group in handle.offsets if group != HEADER)]
        offsets, inline = lay_out({group: self._files.group(handle, group) for group in groups})
        yield replace(handle, offsets=offsets, handle=inline)

    def _in_common_format(self, handle: KeyedStateHandle) -> Iterator[KeyedStateHandle]:
        """A snapshot of RocksDB as it would be on the heap: the new savepoint needs no RocksDB."""
        from ...state.rocks.common_format import in_common_format

        groups = range(handle.first_key_group, handle.last_key_group + 1)
        yield from in_common_format([handle], self._files.read, groups)

    def _list(self, edit: OperatorEdit, handle: OperatorListHandle) -> Iterator[OperatorListHandle]:
        state = edit.states.get(handle.name)
        items = list(self._items(handle))
        if state is not None and state.dropped:
            return
        for step in state.steps if state is not None else ():
            assert callable(step)
            items = [new for at, item in enumerate(items) for new in _changed(step, at, item, handle.name)]
        if items:
            yield list_handle(handle.name, handle.mode, items)

    def _items(self, handle: OperatorListHandle) -> Iterator[bytes]:
        offsets = handle.offsets
        if len(offsets) > 1:
            data = self._files.part(handle.handle, Part(offsets[0], offsets[-1] - offsets[0], None))
            yield from (data[a - offsets[0] : b - offsets[0]] for a, b in pairwise(offsets))

    @property
    def _files(self) -> StateFiles:
        assert self._edit.base is not None
        return self._edit.base.files


def _changed(change: object, at: int, item: bytes, name: str) -> Iterator[bytes]:
    """The item that a change makes of one; nothing where that is None."""
    assert callable(change)
    schema, raw = unpack_plain(item)
    kind = stored_type(unpack_plain(schema))
    value = change(at, raw if kind.decode is None else kind.decode(raw))
    if value is not None:
        try:
            yield pack_plain([schema, kind.encode(value)])
        except NoSuchValue as error:
            raise InvalidEdit(f"list {name!r}, item {at}: {error}") from error
