"""Which subtasks of a job are idle together: those whose records come from one and the same subtask.

A source, or a task with an `assign_timestamps`, says by itself that it is idle. Any other subtask is idle when all that
feed it are. Two whose records come from one subtask alone are idle at the same times, and as far then as that one, but
for what is on its way. Whoever reads from both must not take one for idle any more when the other is active again: that
one's watermark may come first, and records of the other would be late.

Subtasks behind several are no group: how far they are when they are idle may differ until the next records, as where
one of the several has ended before another was idle.
"""

from __future__ import annotations

from ..messages import JobGraph, JobVertex, Partitioning, SubtaskIndex
from .job_graph import SubtaskKey, in_edges, pointwise_producers, subtasks_of, topological_order, vertex_of


def idle_groups(graph: JobGraph) -> dict[SubtaskKey, int]:
    """The number of each subtask's group. Feedback edges count for nothing, as they hold no event time back."""
    origins: dict[SubtaskKey, SubtaskKey] = {}
    """The one subtask that each is behind; itself where it says by itself that it is idle, or is behind several."""
    for vertex in topological_order(graph):
        pointwise: list[JobVertex] = []
        behind_all: set[SubtaskKey] = set()
        for edge in in_edges(graph, vertex.vertex_id):
            if edge.feedback:
                continue
            source = vertex_of(graph, edge.source)
            if edge.partitioning is Partitioning.FORWARD:
                pointwise.append(source)
            else:
                behind_all.update(origins[producer] for producer in subtasks_of(source))
        for subtask in subtasks_of(vertex):
            found = set(behind_all)
            for source in pointwise:
                producers = pointwise_producers(source.parallelism, vertex.parallelism, subtask.subtask_index)
                found.update(origins[SubtaskKey(source.vertex_id, SubtaskIndex(index))] for index in producers)
            origins[subtask] = found.pop() if len(found) == 1 and not vertex.says_idle else subtask
    numbers: dict[SubtaskKey, int] = {}
    return {subtask: numbers.setdefault(origin, len(numbers)) for subtask, origin in origins.items()}
