"""A savepoint made by the backends themselves, without a cluster: each state's content is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from understudy import (
    Count,
    FoldingState,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    Savepoint,
    Sum,
    Ttl,
    ValueState,
)
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    OperatorDescription,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import (
    HeapBackend,
    OperatorStateBackend,
    assign_operator,
    backend_named,
    channel_handle,
    handle_reader,
)
from understudy.state.backends.backend import KeyedStateBackend, SnapshotTarget
from understudy.state.checkpoint_folders import checkpoint_directory
from understudy.state.checkpoints.checkpoint_metadata import encode_metadata
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from understudy.state.checkpoints.savepoint_store import (
    POINTER_VERSION,
    FilesystemSavepointStore,
    SavepointPointer,
)
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot, state_size_bytes, store_in_file
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.rows_format import KeptRows, describe_rows
from understudy.state.keys.key_groups import KeyGroupRange, key_group, key_group_range, key_groups_of
from understudy.state.kinds.state_descriptions import describe_states
from understudy.state.storage import CheckpointStorage

MAX_PARALLELISM = 16
TAKEN_MS = 2_000
"""When a savepoint was taken: a second after its states were updated."""


@dataclass(frozen=True)
class Leg:
    """A record of the user's."""

    origin: str
    delay: float = 0.0


class Clock:
    def processing_ms(self) -> int:
        return 1_000

    def event_ms(self) -> int:
        return 1_000

    def written_ms(self, what: str) -> int:
        return 1_000


class Declared:
    """One state of each kind."""

    value = ValueState(int, default=0)
    leg = ValueState(Leg)
    items = ListState(int)
    table = MapState(str, int)
    total = ReducingState(int, lambda held, added: held + added)
    folded = FoldingState(tuple, (0, 0.0), lambda held, added: held)
    fresh = ValueState(int, default=0, ttl=Ttl(hours=1))
    plain = ValueState(object)


class Lists:
    noted = OperatorListState(int)


KEYS = [*range(30), "JFK", "LGA", ("JFK", 1), 2.5]


class Subtask(NamedTuple):
    index: int
    groups: KeyGroupRange


Fill = Callable[[SubtaskSnapshot, Subtask], None]
"""Adds to the snapshot of one subtask what an operator holds there."""


_open: list[KeyedStateBackend] = []


def keyed_backend(state_backend: str, subtask: Subtask) -> Any:
    """Closed once what it holds is written: one of RocksDB has files open."""
    _open.append(backend_named(state_backend).keyed_backend(subtask.groups, MAX_PARALLELISM))
    return _open[-1]


def declared_states(
    keys: Sequence[Any] = KEYS, value: Callable[[int], int] = lambda at: at * 10, state_backend: str = "filesystem"
) -> Fill:
    """`value(i)` is what the i-th key holds."""

    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = keyed_backend(state_backend, subtask)
        backend.clock = Clock()
        states = {name: backend.state(each) for name, each in vars(Declared).items() if not name.startswith("_")}
        timers = backend.timers()
        for at, key in enumerate(keys):
            if key_group(key, MAX_PARALLELISM) not in subtask.groups.groups:
                continue
            backend.current_key = key
            states["value"].update(value(at))
            states["leg"].update(Leg(f"origin {at}", at / 2))
            states["items"].update(range(at % 4))
            states["table"].put(f"entry {at}", at)
            states["total"].add(at)
            states["folded"].add(at)
            states["fresh"].update(at)
            states["plain"].update({"at": at} if at % 2 else (at, "odd"))
            timers.event.add((1_000 + at, key, ()))
            timers.processing.add((2_000 + at, key, ("window", at)))
        snapshot.add(OperatorId("declared"), backend.snapshot(CheckpointId(1)))

    return fill


def aggregation(rows: int = 40, *, incremental: bool = False, coded: pa.ExtensionType | None = None) -> Fill:
    """`incremental`: as a list of runs, which only a periodic checkpoint is. `coded`: keys are texts of this type."""

    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        aggregates = {"readings": Count(), "total": Sum("amount")}
        backend = ColumnarBackend(["sensor"], aggregates, subtask.groups, MAX_PARALLELISM)
        sensors = pa.array(range(rows))
        if coded is not None:
            sensors = pa.ExtensionArray.from_storage(coded, pa.array(list(map(str, range(rows)))))
        own = [group in subtask.groups.groups for group in key_groups_of(sensors, MAX_PARALLELISM).tolist()]
        batch = pa.RecordBatch.from_pydict({"sensor": sensors, "amount": pa.array(range(rows))}).filter(pa.array(own))
        if incremental:
            backend.track_changes("aggregation")
        backend.table_for(batch.schema).update(batch)
        take = backend.increment if incremental else backend.snapshot
        snapshot.add(OperatorId("aggregation"), take(CheckpointId(1)))

    return fill


def joined_rows(rows: int = 20) -> Fill:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        schemas = [side.schema for side in _ROWS]
        backend = KeyedRows(_ROWS, subtask.groups, MAX_PARALLELISM)
        ids = pa.array([at % 7 for at in range(rows)])
        own = pa.array([group in subtask.groups.groups for group in key_groups_of(ids, MAX_PARALLELISM).tolist()])
        for side, (store, schema) in enumerate(zip(backend.stores, schemas, strict=True)):
            texts = pa.array([f"row {at}" for at in range(rows)])
            batch = pa.RecordBatch.from_arrays([ids, texts], schema=schema).filter(own)
            store.append(batch, backend.slots_of(side, batch), batch.column(0).to_numpy() * 100)
        snapshot.add(OperatorId("rows"), backend.snapshot(CheckpointId(1)))

    return fill


def lists(count: int = 5) -> Fill:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = OperatorStateBackend()
        backend.state(Lists.noted).add_all(range(subtask.index * 100, subtask.index * 100 + count))
        snapshot.add(OperatorId("lists"), None, backend.snapshot())

    return fill


ALL: Mapping[str, Fill] = {
    "declared": declared_states(),
    "aggregation": aggregation(),
    "rows": joined_rows(),
    "lists": lists(),
}
_ROWS = [KeptRows(("id",), pa.schema([("id", pa.int64()), (name, pa.string())])) for name in ("left", "right")]
_STATES = {
    "declared": describe_states(Declared),
    "lists": describe_states(Lists),
    "rows": (describe_rows(_ROWS),),
}


def savepoint(
    root: Path,
    operators: Mapping[str, Fill] = ALL,
    *,
    parallelism: int = 2,
    checkpoint_id: int = 3,
    inline: int = 0,
    in_flight: bool = False,
) -> Path:
    """Store it below this checkpoint directory as a job does, and return the path of the pointer. `in_flight`: with a
    batch on its way.
    """
    storage = CheckpointStorage(str(root))
    job_id = JobId(f"job-{checkpoint_id:08}0000")
    vertices = {}
    for name, fill in operators.items():
        states: dict[SubtaskIndex, SubtaskState] = {}
        for index in range(parallelism):
            snapshot = SubtaskSnapshot()
            fill(snapshot, Subtask(index, key_group_range(MAX_PARALLELISM, parallelism, index)))
            target = SnapshotTarget(
                storage, job_id, CheckpointId(checkpoint_id), VertexId(name), SubtaskIndex(index),
                ExecutionAttemptId(f"attempt-{index}"), inline,
            )  # fmt: skip
            channels = (channel_handle(0, SubtaskIndex(0), [b"a batch"]),) if in_flight else ()
            states[SubtaskIndex(index)] = snapshot.write(target, store_in_file, channels)
            while _open:
                _open.pop().close()
        described = (OperatorDescription(OperatorId(name), name, "operator", _STATES.get(name, ())),)
        vertices[VertexId(name)] = VertexSnapshot(parallelism, MAX_PARALLELISM, states, described)
    completed = CompletedCheckpoint(
        job_id, CheckpointId(checkpoint_id), TAKEN_MS, TAKEN_MS + 1, 0, vertices, is_savepoint=True
    )
    size = sum(map(state_size_bytes, completed.states()))
    metadata = f"{checkpoint_directory(job_id, completed.checkpoint_id)}/_metadata"
    completed = replace(completed, state_size_bytes=size, metadata_path=metadata)
    storage.write_sealed(metadata, encode_metadata(completed))
    store = FilesystemSavepointStore(storage, folder="savepoints", new_suffix=lambda: f"{checkpoint_id:012}")
    pointer = SavepointPointer(POINTER_VERSION, job_id, completed.checkpoint_id, str(root), metadata, TAKEN_MS)
    return Path(store.store(pointer))


def by_key(opened: Savepoint, operator: str, state: str) -> dict[Any, Any]:
    return {row["key"]: row["value"] for row in opened.operator(operator).state(state).rows()}


def restored(opened: Savepoint, operator: str, parallelism: int = 3) -> list[HeapBackend]:
    """What the subtasks of a job that starts from it hold."""
    (vertex,) = (each.vertex for each in opened.operators() if each.uid == operator)
    groups = vertex.max_parallelism
    shares = assign_operator(vertex.subtasks, OperatorId(operator), vertex.parallelism, parallelism, groups)
    backends = []
    for index, share in enumerate(shares):
        own = key_group_range(groups, parallelism, index)
        backend = HeapBackend(own.first, own.last, groups)
        backend.clock = Clock()
        backend.restore(share.keyed, handle_reader(opened.found.storage))
        backends.append(backend)
    return backends
