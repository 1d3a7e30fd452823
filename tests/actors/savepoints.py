"""Checkpoints for tests that start jobs from them: `checkpoint((chain("a", "b"), [{"a": state}, {}]))`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from understudy.messages import (
    ChannelStateHandle,
    CheckpointId,
    JobEdge,
    JobId,
    JobVertex,
    KeyedStateHandle,
    OperatorDescription,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    StateDescription,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import inline_handle
from understudy.state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot

OLD_JOB = JobId("old")


def operator(name: str, *states: StateDescription, kind: str = "operator", id: str = "") -> OperatorDescription:
    """Its id is its name, unless it has another."""
    return OperatorDescription(OperatorId(id or name), name, kind, states)


def chain(*operators: str | OperatorDescription, parallelism: int = 1, **fields: Any) -> JobVertex:
    """A vertex, with the id of its first operator. A string is an operator without declared state."""
    described = tuple(operator(each) if isinstance(each, str) else each for each in operators)
    settings: dict[str, Any] = {"max_parallelism": 128, **fields}
    head = described[0].operator_id
    return JobVertex(VertexId(head), head, parallelism, operators=described, **settings)


def keyed_state(groups: range, data: str = "", backend: str = "memory", in_flight: int = 0) -> OperatorSubtaskState:
    offsets: dict[int, tuple[int, ...]] = {group: (group, 1) for group in groups}
    return OperatorSubtaskState(
        (KeyedStateHandle(groups[0], groups[-1], offsets, inline_handle(data.encode()), backend, in_flight=in_flight),)
    )


def list_state(name: str, items: int, mode: str = "split") -> OperatorSubtaskState:
    handle = OperatorListHandle(name, mode, tuple(range(items + 1)), inline_handle(b"x" * items))
    return OperatorSubtaskState(lists=(handle,))


def checkpoint(
    *vertices: tuple[Any, ...], edges: Sequence[JobEdge] = (), checkpoint_id: int = 7
) -> CompletedCheckpoint:
    """Each vertex: a JobVertex, by subtask the states of its operators, and perhaps whether its data had ended, and
    what was in flight."""
    snapshots = {vertex.vertex_id: _snapshot(vertex, *rest, edges=edges) for vertex, *rest in vertices}
    return CompletedCheckpoint(OLD_JOB, CheckpointId(checkpoint_id), 1, 2, 3, snapshots, is_savepoint=True)


def _snapshot(
    vertex: JobVertex,
    states: Sequence[Mapping[str, OperatorSubtaskState]],
    ended: Sequence[bool] = (),
    channels: Sequence[tuple[ChannelStateHandle, ...]] = (),
    *,
    edges: Sequence[JobEdge],
) -> VertexSnapshot:
    subtasks = {
        SubtaskIndex(index): SubtaskState(
            {OperatorId(name): state for name, state in own.items()},
            bool(ended) and ended[index],
            channels[index] if channels else (),
        )
        for index, own in enumerate(states)
    }
    inputs = {index: edge for index, edge in enumerate(edges) if edge.target == vertex.vertex_id}
    return VertexSnapshot(vertex.parallelism, vertex.max_parallelism, subtasks, vertex.operators, inputs)
