"""SlotRequest: one subtask that wants to run, and where it would best run; and the requests of a job's vertices.

Pure functions over the JobGraph. The SlotPool answers them. Flink: SlotProfile, PhysicalSlotRequest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...messages import JobGraph, Partitioning, TaskManagerId, VertexId
from ..job_graph import SubtaskKey, subtasks_of, topological_order


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """One subtask that wants to run, and where."""

    subtask: SubtaskKey
    group: str
    required_index: int | None = None
    """The only TaskManager, by index, that it can run on."""
    near: frozenset[SubtaskKey] = frozenset()
    """Subtasks whose slot it would best share."""
    preferred: tuple[TaskManagerId, ...] = ()
    """Where it would best run, the best first."""
    colocation: str | None = None
    """Its co-location constraint; one that has a TaskManager already counts for more than `preferred`."""


def slot_requests(
    graph: JobGraph, vertices: Collection[VertexId], last: Mapping[SubtaskKey, TaskManagerId]
) -> list[SlotRequest]:
    """What these vertices ask of the pool: those bound to a TaskManager first, then the others along the graph.

    `last` is where subtasks ran before; of one vertex these come first, so that the others do not take their places.
    """
    wanted = [vertex for vertex in topological_order(graph) if vertex.vertex_id in vertices]
    wanted.sort(key=lambda vertex: not vertex.task_manager_bound)
    return [
        SlotRequest(
            subtask,
            vertex.slot_sharing_group,
            required_index=vertex.first_task_manager + subtask.subtask_index if vertex.task_manager_bound else None,
            near=_forward_neighbours(graph, subtask),
            preferred=(last[subtask],) if subtask in last else (),
        )
        for vertex in wanted
        for subtask in sorted(subtasks_of(vertex), key=lambda subtask: subtask not in last)
    ]


def _forward_neighbours(graph: JobGraph, subtask: SubtaskKey) -> frozenset[SubtaskKey]:
    """The subtasks that this one feeds, or is fed by, one to one."""
    vertex_id, index = subtask
    ends = [{edge.source, edge.target} for edge in graph.edges if edge.partitioning is Partitioning.FORWARD]
    return frozenset(SubtaskKey(end, index) for pair in ends if vertex_id in pair for end in pair - {vertex_id})
