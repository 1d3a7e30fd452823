"""RestoredOperators: a checkpoint's state as a program's vertices get it. Works on handles alone; no file is read.

State belongs to an operator, known by its id. The operators of one vertex may have been in several when the checkpoint
was taken, with other parallelisms, so each is dealt out by itself. Flink: StateAssignmentOperation.

That data has ended belongs to the subtasks of a vertex: all operators of the chain have emitted their final results
then. A subtask of the new program has ended if all its operators that the checkpoint knows have, and so has all that
feeds it: an operator that is new has had no data that its final results could come from. With another parallelism an
operator has ended if it had in all of its old subtasks. Flink: VertexFinishedStateChecker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from ...messages import (
    JobGraph,
    JobVertex,
    OperatorDescription,
    OperatorId,
    OperatorSubtaskState,
    Partitioning,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from ...state import assign_operator, operator_states
from ...state.checkpoints.assignment import assign_ended, assign_vertex, subtask_states
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint, VertexSnapshot
from ..job_graph import SubtaskKey, in_edges, topological_order


@dataclass(frozen=True, slots=True)
class FoundOperator:
    """One operator in a checkpoint."""

    operator_id: OperatorId
    vertex: VertexSnapshot
    description: OperatorDescription | None
    """None in a checkpoint that does not describe its operators."""

    def states(self) -> list[OperatorSubtaskState]:
        """By old subtask."""
        return operator_states(self.vertex.subtasks, self.operator_id, self.vertex.parallelism)

    @property
    def has_state(self) -> bool:
        return any(holds_something(state) for state in self.states())

    def dealt_out(self, parallelism: int) -> list[OperatorSubtaskState]:
        """By new subtask."""
        old = self.vertex
        return assign_operator(old.subtasks, self.operator_id, old.parallelism, parallelism, old.max_parallelism)

    def had_ended(self) -> list[bool]:
        """By old subtask: whether its data had."""
        return self.has_ended(self.vertex.parallelism)

    def has_ended(self, parallelism: int) -> list[bool]:
        """By new subtask."""
        return assign_ended(subtask_states(self.vertex.subtasks, self.vertex.parallelism), parallelism)


class RestoredOperators:
    """One checkpoint, matched with one job graph."""

    def __init__(self, checkpoint: CompletedCheckpoint, graph: JobGraph) -> None:
        self.found = dict(_operators_in(checkpoint))
        self._checkpoint = checkpoint
        self._graph = graph

    def of_vertex(self, vertex: JobVertex) -> list[FoundOperator]:
        """The vertex's operators that the checkpoint knows, in the order of the chain."""
        return [self.found[each.operator_id] for each in vertex.operators if each.operator_id in self.found]

    @cached_property
    def ended(self) -> dict[VertexId, list[bool]]:
        """For each vertex of the program: whose data has ended, by subtask.

        A loop has ended when all that feeds it has: feedback edges do not count.
        """
        ended: dict[VertexId, list[bool]] = {}
        for vertex in topological_order(self._graph):
            own = [each.has_ended(vertex.parallelism) for each in self.of_vertex(vertex)]
            fed = [
                self._feeds(ended[edge.source], edge.partitioning, vertex.parallelism)
                for edge in in_edges(self._graph, vertex.vertex_id)
                if not edge.feedback
            ]
            columns = zip(*own, *fed, strict=True) if own else [[False]] * vertex.parallelism
            ended[vertex.vertex_id] = [all(column) for column in columns]
        return ended

    def states(self, vertices: Collection[VertexId]) -> dict[SubtaskKey, tuple[SubtaskState, ...]]:
        """What each subtask of these vertices restores; one without state has no entry."""
        states: dict[SubtaskKey, tuple[SubtaskState, ...]] = {}
        for vertex in self._graph.vertices:
            if vertex.vertex_id in vertices:
                for index, state in enumerate(self._vertex_states(vertex)):
                    if state != SubtaskState({}):
                        states[SubtaskKey(vertex.vertex_id, SubtaskIndex(index))] = (state,)
        return states

    def _vertex_states(self, vertex: JobVertex) -> list[SubtaskState]:
        dealt = {each.operator_id: each.dealt_out(vertex.parallelism) for each in self.of_vertex(vertex)}
        old = self._checkpoint.vertices.get(vertex.vertex_id)
        subtasks = [] if old is None else subtask_states(old.subtasks, old.parallelism)
        return assign_vertex(subtasks, dealt, self.ended[vertex.vertex_id])

    @staticmethod
    def _feeds(ended: list[bool], partitioning: Partitioning, parallelism: int) -> list[bool]:
        """Whether all that comes in along one edge has ended, by consumer."""
        return ended if partitioning is Partitioning.FORWARD else [all(ended)] * parallelism


def holds_something(state: OperatorSubtaskState) -> bool:
    """Whether there is anything in it that a restore would lose."""
    return bool(state.keyed) or any(len(handle.offsets) > 1 for handle in state.lists)


def _operators_in(checkpoint: CompletedCheckpoint) -> Iterable[tuple[OperatorId, FoundOperator]]:
    """Those described, and those that are not and have state all the same."""
    for vertex in checkpoint.vertices.values():
        described = {each.operator_id: each for each in vertex.operators}
        stored = (operator for state in vertex.subtasks.values() for operator in state.operators)
        for operator_id in dict.fromkeys((*described, *stored)):
            yield operator_id, FoundOperator(operator_id, vertex, described.get(operator_id))
