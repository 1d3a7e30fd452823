"""How large the key groups of a checkpoint are. It is read off its handles, which say where each key group lies, so it
costs nothing until somebody asks, and no record anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

from ...messages import CheckpointId, JobGraph, JobVertex, KeyGroups, KeyGroupSize, OperatorKeyGroups, SubtaskIndex
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ...state.keys.key_groups import operator_index_of

SHOWN = 5
"""The number of key groups of an operator that are named."""


def key_groups_of(graph: JobGraph, newest: CompletedCheckpoint | None) -> KeyGroups:
    """See KeyGroups."""
    if newest is None:
        return KeyGroups(graph.job_id, CheckpointId(0))
    operators = tuple(found for vertex in graph.vertices for found in _of_vertex(vertex, newest))
    return KeyGroups(graph.job_id, newest.checkpoint_id, operators)


def _of_vertex(vertex: JobVertex, newest: CompletedCheckpoint) -> Iterator[OperatorKeyGroups]:
    snapshot = newest.vertices.get(vertex.vertex_id)
    if snapshot is None:
        return
    for each in vertex.operators:
        sizes: Counter[int] = Counter()
        for subtask in snapshot.subtasks.values():
            state = subtask.operators.get(each.operator_id)
            for handle in state.keyed if state is not None else ():
                sizes.update({group: where[1] for group, where in handle.offsets.items() if group >= 0})
        if sizes:
            largest = nlargest(SHOWN, sizes.items(), key=lambda one: (one[1], -one[0]))
            yield OperatorKeyGroups(
                each.operator_id,
                vertex.max_parallelism,
                len(sizes),
                sizes.total(),
                tuple(KeyGroupSize(group, _owner(vertex, group), size) for group, size in largest),
            )


def _owner(vertex: JobVertex, key_group: int) -> SubtaskIndex:
    return SubtaskIndex(operator_index_of(key_group, vertex.max_parallelism, vertex.parallelism))
