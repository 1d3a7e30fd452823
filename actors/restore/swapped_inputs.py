"""Inputs that have changed sides between two versions of a program: `a.join(b)` that is `b.join(a)` now.

What is kept of the left input would be taken for the right one's. State without a type does not show it; what feeds the
inputs does, by the ids of the operators before them. Operators without a name have ids by their place in the program,
so this is a note for the user, and no refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...messages import JobEdge, JobGraph, OperatorDescription, OperatorId, VertexId
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ..job_graph import in_edges

Chains = Mapping[VertexId, Sequence[OperatorDescription]]
Inputs = Mapping[VertexId, Sequence[JobEdge]]


def swapped_inputs(
    graph: JobGraph, checkpoint: CompletedCheckpoint, kept: Mapping[OperatorId, OperatorDescription]
) -> Iterator[str]:
    """A sentence for each operator of `kept`, which has keyed state in the checkpoint, that has its inputs the other
    way round.
    """
    now = _sides(
        {each.vertex_id: each.operators for each in graph.vertices},
        {each.vertex_id: in_edges(graph, each.vertex_id) for each in graph.vertices},
    )
    were = _sides(
        {vertex_id: each.operators for vertex_id, each in checkpoint.vertices.items()},
        {vertex_id: list(each.inputs.values()) for vertex_id, each in checkpoint.vertices.items()},
    )
    for operator_id, operator in kept.items():
        if operator_id in now and operator_id in were:
            (left, right), (was_left, was_right) = now[operator_id], were[operator_id]
            if left & was_right and right & was_left and not (left & was_left or right & was_right):
                yield (
                    f"operator {operator.name!r}: its left input has {_listed(left & was_right)}, and its right one "
                    f"{_listed(right & was_left)}; in the savepoint it is the other way round, and what it has kept of "
                    "each would be taken for the other's: put the streams in their old order, or give the operator "
                    "another name to begin without this state"
                )


def _sides(chains: Chains, inputs: Inputs) -> dict[OperatorId, tuple[frozenset[OperatorId], frozenset[OperatorId]]]:
    """By operator with two inputs, which is the first of its chain: what is before one of them and not the other."""
    found = {}
    for vertex_id, edges in inputs.items():
        if chains[vertex_id] and any(edge.input_index == 1 for edge in edges):
            left, right = (_before(chains, inputs, edges, index) for index in (0, 1))
            found[chains[vertex_id][0].operator_id] = (left - right, right - left)
    return found


def _before(chains: Chains, inputs: Inputs, edges: Sequence[JobEdge], index: int) -> frozenset[OperatorId]:
    """All operators from which this input may have come."""
    waiting = [edge.source for edge in edges if edge.input_index == index and not edge.feedback]
    seen: set[VertexId] = set()
    while waiting:
        if (vertex_id := waiting.pop()) in chains and vertex_id not in seen:
            seen.add(vertex_id)
            waiting += [edge.source for edge in inputs[vertex_id] if not edge.feedback]
    return frozenset(each.operator_id for vertex_id in seen for each in chains[vertex_id])


def _listed(ids: frozenset[OperatorId]) -> str:
    return ", ".join(map(repr, sorted(ids)))
