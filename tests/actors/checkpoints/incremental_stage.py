"""One subtask with incremental checkpoints, and all that its files are kept and deleted by, without a clock.

Snapshots are taken, written, acknowledged, completed, declined, and heard of, each when the test says so. What a
checkpoint must restore is kept beside it; `check_files` compares the files that there are with those that are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from understudy.actors.checkpoints.checkpoint_effects import Discard
from understudy.actors.checkpoints.checkpoint_files import CheckpointFiles
from understudy.actors.job_manager.job_files import delete_discarded
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import CheckpointStorage, SnapshotTarget, SubtaskSnapshot, handle_reader
from understudy.state.backends.backend import IncrementalBackend, KeyedSnapshot, KeyedStateBackend
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.assignment import assign_state
from understudy.state.checkpoints.completed_checkpoints import (
    CompletedCheckpoint,
    StandaloneCompletedCheckpointStore,
    VertexSnapshot,
)
from understudy.state.checkpoints.shared_state import SharedStateRegistry
from understudy.state.checkpoints.snapshot_file import state_handles
from understudy.state.checkpoints.state_backends import FILESYSTEM
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.keys.key_groups import KeyGroupRange, key_group_range
from understudy.state.kinds.aggregates import Count, Min, Sum
from understudy.state.kinds.descriptors import ReducingState, ValueState

JOB, VERTEX, OPERATOR, FIRST = JobId("job"), VertexId("v"), OperatorId("op"), SubtaskIndex(0)
GROUPS = 16

Reads = dict[int, Any]
"""What each key holds."""


class Kind(Protocol):
    """A backend, and how it is written and read."""

    def make(self, groups: range) -> Any: ...

    def others(self, groups: range) -> list[Any]:
        """Further backends that restore its snapshots."""

    def put(self, backend: Any, keys: Sequence[int], value: int) -> None: ...

    def clear(self, backend: Any, key: int) -> None: ...

    def read(self, backend: Any) -> Reads: ...


class Columnar:
    """Aggregates: a key never goes."""

    def make(self, groups: range) -> ColumnarBackend:
        aggregates = {"count": Count(), "total": Sum("value"), "least": Min("value")}
        return ColumnarBackend(["key"], aggregates, KeyGroupRange(groups[0], groups[-1]), GROUPS)

    def others(self, groups: range) -> list[Any]:
        return []

    def put(self, backend: ColumnarBackend, keys: Sequence[int], value: int) -> None:
        batch = pa.RecordBatch.from_pydict({"key": list(keys), "value": [value] * len(keys)})
        backend.changed(backend.table_for(batch.schema).update(batch))

    def clear(self, backend: ColumnarBackend, key: int) -> None:
        pass

    def read(self, backend: ColumnarBackend) -> Reads:
        if not backend.table:
            return {}
        rows = backend.table.results(backend.table.all_slots()).to_pylist()
        return {row.pop("key"): row for row in rows}


class Compiled:
    """Values that come and go, and timers."""

    value = ValueState(int)
    total = ReducingState(int, lambda held, added: held + added)

    def make(self, groups: range) -> SlotBackend:
        return SlotBackend(groups[0], groups[-1], GROUPS)

    def others(self, groups: range) -> list[Any]:
        return [HeapBackend(groups[0], groups[-1], GROUPS)]

    def put(self, backend: SlotBackend, keys: Sequence[int], value: int) -> None:
        """As a kernel does it; one of the keys by the accessors, as all Python does."""
        slots = backend.slots_of([pa.array(keys, pa.int64())])
        backend.state(self.total)
        columns = backend.columns(self.value)
        columns.present[slots] = True
        columns.values[0][slots] = np.asarray(keys) * 1000 + value
        backend.current_key = keys[0]
        backend.state(self.total).add(value)
        for key in keys[:2]:
            backend.timers().event.add((value % 5, key, ()))

    def clear(self, backend: SlotBackend, key: int) -> None:
        backend.current_key = key
        backend.state(self.value).clear()
        if key % 2:
            backend.state(self.total).clear()
            for time_ms in range(5):
                backend.timers().event.remove((time_ms, key, ()))

    def read(self, backend: KeyedStateBackend) -> Reads:
        found: dict[int, Any] = {}
        value: Any = backend.state(self.value)
        total: Any = backend.state(self.total)
        timers = sorted((key, time_ms) for time_ms, key, _ in backend.timers().event)
        for key in {*backend.keys("value"), *backend.keys("total"), *(key for key, _ in timers)}:
            backend.current_key = key
            own = [time_ms for of, time_ms in timers if of == key]
            found[key] = (value.value(), total.get(), own)
        return found


for each, name in ((Compiled.value, "value"), (Compiled.total, "total")):
    each.__set_name__(Compiled, name)


@dataclass(slots=True)
class Taken:
    """A snapshot that has been taken."""

    checkpoint_id: CheckpointId
    write: KeyedSnapshot
    expected: Reads
    is_savepoint: bool = False
    state: SubtaskState | None = None
    """Once it is acknowledged."""


@dataclass(slots=True)
class IncrementalStage:
    """One attempt of one subtask, and its JobManager."""

    kind: Kind
    retained: int = 1
    storage: CheckpointStorage = field(default_factory=lambda: CheckpointStorage(f"memory://runs-{uuid4().hex}"))
    registry: SharedStateRegistry = field(default_factory=SharedStateRegistry)
    pending: list[Taken] = field(default_factory=list)
    unheard: list[CheckpointId] = field(default_factory=list)
    """Completed, and the task does not know it yet."""
    completed: dict[CheckpointId, tuple[CompletedCheckpoint, Reads]] = field(default_factory=dict)
    """Those that are retained, and savepoints that nobody has disposed of."""
    last_id: int = 0
    attempt: int = 1
    files: CheckpointFiles = field(init=False)
    store: StandaloneCompletedCheckpointStore = field(init=False)
    backend: Any = field(init=False)

    def __post_init__(self) -> None:
        self.files = CheckpointFiles(JOB, self.storage.location(), self.registry)
        self.store = StandaloneCompletedCheckpointStore(self.retained)
        self.backend = self._tracking()

    def take(self, *, is_savepoint: bool = False, is_full: bool = False) -> Taken:
        """`is_full`: a checkpoint that names no file of earlier ones, as a savepoint does."""
        self.last_id += 1
        checkpoint_id = CheckpointId(self.last_id)
        backend: IncrementalBackend = self.backend
        expected = self.kind.read(backend)
        write = backend.snapshot(checkpoint_id) if is_savepoint or is_full else backend.increment(checkpoint_id)
        taken = Taken(checkpoint_id, write, expected, is_savepoint)
        self.pending.append(taken)
        return taken

    def acknowledge(self, taken: Taken) -> SubtaskState:
        parts = SubtaskSnapshot()
        parts.add(OPERATOR, taken.write)
        ids = (JOB, taken.checkpoint_id, VERTEX, FIRST, ExecutionAttemptId(f"try-{self.attempt}"))
        taken.state = parts.write(SnapshotTarget(self.storage, *ids, inline_below_bytes=1), FILESYSTEM.store)
        self.files.acknowledged(taken.checkpoint_id, taken.state)
        return taken.state

    def complete(self, taken: Taken, *, heard: bool = True) -> CompletedCheckpoint:
        """All have acknowledged it. Older ones that still wait are given up, but savepoints."""
        if taken.state is None:
            self.acknowledge(taken)
        assert taken.state is not None
        self.pending.remove(taken)
        for older in [each for each in self.pending if each.checkpoint_id < taken.checkpoint_id]:
            if not (older.is_savepoint or taken.is_savepoint):
                self.decline(older)
        vertices = {VERTEX: VertexSnapshot(1, GROUPS, {FIRST: taken.state})}
        done = CompletedCheckpoint(JOB, taken.checkpoint_id, 1, 2, 0, vertices, taken.is_savepoint)
        self.files.completed(done, [f"savepoint-{taken.checkpoint_id}"] if taken.is_savepoint else [])
        self.completed[taken.checkpoint_id] = done, taken.expected
        for dropped in self.store.add(done):
            self._discard(self.files.drop(dropped))
            del self.completed[dropped.checkpoint_id]
        self.unheard.append(taken.checkpoint_id)
        if heard:
            self.hear()
        return done

    def hear(self) -> None:
        """The task learns of the oldest completion that it does not know."""
        self.backend.checkpoint_complete(self.unheard.pop(0))

    def decline(self, taken: Taken) -> None:
        self.pending.remove(taken)
        states = () if taken.state is None else (taken.state,)
        self._discard(self.files.give_up(taken.checkpoint_id, states))

    def arrive_late(self, taken: Taken) -> None:
        """It was given up before its state came."""
        self.decline(taken)
        parts = SubtaskSnapshot()
        parts.add(OPERATOR, taken.write)
        ids = (JOB, taken.checkpoint_id, VERTEX, FIRST, ExecutionAttemptId(f"try-{self.attempt}"))
        state = parts.write(SnapshotTarget(self.storage, *ids, inline_below_bytes=1), FILESYSTEM.store)
        self._discard(self.files.unowned(state))

    def restart(self) -> None:
        """The attempt is lost; the next one goes on from the newest checkpoint."""
        for taken in list(self.pending):
            self.decline(taken)
        self.unheard.clear()
        self.attempt += 1
        newest = next(self.store.restorable(), None)
        self.backend = self._tracking()
        if newest is not None:
            self.backend.restore(self._handles(newest, 1)[0], handle_reader(self.storage))

    def restored(self, done: CompletedCheckpoint, parallelism: int) -> list[Reads]:
        """What its subtasks read in all: once by this kind of backend, once by each other one."""
        shares = self._handles(done, parallelism)
        ranges = [key_group_range(GROUPS, parallelism, index).groups for index in range(parallelism)]
        makers: list[Callable[[range], Any]] = [self.kind.make]
        makers += [lambda own, at=at: self.kind.others(own)[at] for at in range(len(self.kind.others(range(GROUPS))))]
        found = []
        for make in makers:
            whole: Reads = {}
            for own, handles in zip(ranges, shares, strict=True):
                backend = make(own)
                backend.restore(handles, handle_reader(self.storage))
                whole |= self.kind.read(backend)
            found.append(whole)
        return found

    def close(self) -> None:
        for path in self.storage.list_files():
            self.storage.delete(path)

    def check_restores(self, parallelism: int = 1) -> None:
        for done, expected in self.completed.values():
            for found in self.restored(done, parallelism):
                assert found == expected, f"checkpoint {done.checkpoint_id}"

    def check_files(self) -> None:
        """They are exactly those that some checkpoint refers to, which may still be pending."""
        states = [taken.state for taken in self.pending if taken.state is not None]
        states += [state for done, _ in self.completed.values() for state in done.states()]
        wanted = {handle.path for state in states for handle in state_handles(state) if handle.path is not None}
        assert set(self.storage.list_files()) == wanted

    def runs(self, state: SubtaskState) -> int:
        """Of how many runs it is made."""
        (handle,) = state.operators[OPERATOR].keyed
        return len(handle.shared)

    def _tracking(self) -> Any:
        backend = self.kind.make(range(GROUPS))
        backend.track_changes(OPERATOR)
        return backend

    def _handles(self, done: CompletedCheckpoint, parallelism: int) -> list[tuple[KeyedStateHandle, ...]]:
        shares = assign_state(done.vertices[VERTEX].subtasks, 1, parallelism, GROUPS)
        return [() if share is None else share.operators[OPERATOR].keyed for share in shares]

    def _discard(self, discard: Discard | None) -> None:
        if discard is not None:
            delete_discarded(self.storage, discard)
