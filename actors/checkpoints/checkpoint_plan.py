"""CheckpointPlan: which subtasks a job's checkpoints start at, wait for and notify. Flink: CheckpointPlan.

A plan names subtasks, not attempts: the CheckpointCoordinator learns by events which attempt runs a subtask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...messages import JobEdge, JobGraph, JobVertex, OperatorDescription, VertexId
from ..job_graph import SubtaskKey, subtasks_of


@dataclass(frozen=True, slots=True)
class VertexShape:
    """What a restore has to know of a vertex beside its state."""

    parallelism: int
    max_parallelism: int
    operators: tuple[OperatorDescription, ...] = ()
    """The chain, in order."""
    inputs: Mapping[int, JobEdge] = field(default_factory=dict)
    """Its in-edges by their index in the graph: what the channels of an unaligned snapshot refer to."""


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    trigger: tuple[SubtaskKey, ...]
    """They emit the barriers: the sources."""
    acknowledge: tuple[SubtaskKey, ...]
    """All of them have to acknowledge."""
    notify: tuple[SubtaskKey, ...]
    """They are notified of completion."""
    vertices: Mapping[VertexId, VertexShape]
    expect: tuple[SubtaskKey, ...] = ()
    """They are notified of a barrier that comes (`ExpectBarrier`): they may take no input otherwise."""

    @classmethod
    def of(cls, graph: JobGraph) -> CheckpointPlan:
        """Barriers start at the vertices without inputs; every subtask acknowledges and is notified."""
        fed = {edge.target for edge in graph.edges}
        loop_heads = {edge.target for edge in graph.edges if edge.feedback}
        everyone = tuple(subtask for vertex in graph.vertices for subtask in subtasks_of(vertex))
        return cls(
            trigger=tuple(subtask for subtask in everyone if subtask.vertex_id not in fed),
            acknowledge=everyone,
            notify=everyone,
            vertices={each.vertex_id: _shape(graph, each) for each in graph.vertices},
            expect=tuple(
                subtask
                for vertex in graph.vertices
                if vertex.vertex_id in loop_heads or (vertex.operators and vertex.operators[0].has_coroutines)
                for subtask in subtasks_of(vertex)
            ),
        )


def _shape(graph: JobGraph, vertex: JobVertex) -> VertexShape:
    inputs = {index: edge for index, edge in enumerate(graph.edges) if edge.target == vertex.vertex_id}
    return VertexShape(vertex.parallelism, vertex.max_parallelism, vertex.operators, inputs)
