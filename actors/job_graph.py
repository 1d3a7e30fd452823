"""JobGraph, looked at: is it valid, in which order do its vertices stand, what does it need, what fails together.

Pure functions over the `JobGraph` message. Flink: JobGraph, SlotSharingGroup, SchedulingPipelinedRegionComputeUtil.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..messages import JobEdge, JobGraph, JobVertex, Partitioning, SubtaskIndex, VertexId
from .errors import InvalidJobGraph

MAX_PARALLELISM = 32_768
"""As in Flink: key groups are counted in 15 bits."""


Region: TypeAlias = frozenset[VertexId]
"""Vertices that exchange data, directly or not, and so restart together. Flink: pipelined region."""


class SubtaskKey(NamedTuple):
    """One subtask of a job, whatever its attempt. Flink: ExecutionVertexID."""

    vertex_id: VertexId
    subtask_index: SubtaskIndex


@dataclass(frozen=True, slots=True)
class SlotDemand:
    """What a slot sharing group needs: a slot per subtask of its widest vertex, and one on each TaskManager that one of
    its vertices is bound to; the same slot may count for both.
    """

    widest: int
    bound_to: frozenset[int]
    """Indexes of TaskManagers."""

    @property
    def spare(self) -> int:
        """How many of its slots may be anywhere."""
        return max(0, self.widest - len(self.bound_to))

    @property
    def slots(self) -> int:
        return len(self.bound_to) + self.spare


def validate(graph: JobGraph) -> None:
    """Raises InvalidJobGraph for the first thing that is wrong, naming the vertex or operator.

    Both who builds a graph and who is sent one call this.
    """
    if not graph.vertices:
        raise InvalidJobGraph(f"job {graph.name!r} has no vertices")
    _check_ids(graph)
    for vertex in graph.vertices:
        _check_parallelism(vertex)
        _check_rate(vertex)
    for edge in graph.edges:
        _check_edge(graph, edge)
    topological_order(graph)
    for vertex in graph.vertices:
        _check_inputs(graph, vertex)
    for edge in graph.edges:
        if edge.feedback:
            _check_loop(graph, edge)


def vertex_of(graph: JobGraph, vertex_id: VertexId) -> JobVertex:
    """The vertex with this id; raises InvalidJobGraph when there is none."""
    for vertex in graph.vertices:
        if vertex.vertex_id == vertex_id:
            return vertex
    raise InvalidJobGraph(f"job {graph.name!r} has no vertex {vertex_id!r}")


def in_edges(graph: JobGraph, vertex_id: VertexId) -> tuple[JobEdge, ...]:
    """The edges into a vertex, in the graph's order; feedback edges too."""
    return tuple(edge for edge in graph.edges if edge.target == vertex_id)


def out_edges(graph: JobGraph, vertex_id: VertexId) -> tuple[JobEdge, ...]:
    """The edges out of a vertex, in the graph's order; feedback edges too."""
    return tuple(edge for edge in graph.edges if edge.source == vertex_id)


def subtasks_of(vertex: JobVertex) -> tuple[SubtaskKey, ...]:
    """A vertex's subtasks, by index."""
    return tuple(SubtaskKey(vertex.vertex_id, SubtaskIndex(index)) for index in range(vertex.parallelism))


def all_subtasks(graph: JobGraph) -> tuple[SubtaskKey, ...]:
    """Every subtask of the job, vertex by vertex in topological order."""
    return tuple(subtask for vertex in topological_order(graph) for subtask in subtasks_of(vertex))


def topological_order(graph: JobGraph) -> tuple[JobVertex, ...]:
    """Every vertex after all that feed it, sources first; feedback edges do not count.

    Raises InvalidJobGraph for a cycle without a feedback edge, naming the operators on it. Who goes along this order
    must not expect that what an `in_edges` feedback edge comes from has come before.
    """
    missing = Counter(edge.target for edge in graph.edges if not edge.feedback)
    ready = deque(vertex for vertex in graph.vertices if not missing[vertex.vertex_id])
    ordered: list[JobVertex] = []
    while ready:
        ordered.append(ready.popleft())
        for edge in out_edges(graph, ordered[-1].vertex_id):
            missing[edge.target] -= not edge.feedback
            if not edge.feedback and not missing[edge.target]:
                ready.append(vertex_of(graph, edge.target))
    if len(ordered) < len(graph.vertices):
        cycle = _cycle(graph, [vertex for vertex in graph.vertices if missing[vertex.vertex_id]])
        names = ", ".join(repr(operator.name) for vertex in cycle for operator in vertex.operators)
        raise InvalidJobGraph(f"job {graph.name!r} has a cycle without a feedback edge, of the operators {names}")
    return tuple(ordered)


def _cycle(graph: JobGraph, waiting: Sequence[JobVertex]) -> list[JobVertex]:
    """The vertices of one cycle, along it. Each of `waiting` is fed by another of them, so a way back ends in one."""
    ids = {vertex.vertex_id for vertex in waiting}
    path = [waiting[0].vertex_id]
    while True:
        before = next(edge.source for edge in in_edges(graph, path[-1]) if edge.source in ids and not edge.feedback)
        if before in path:
            first, *back = path[path.index(before) :]
            return [vertex_of(graph, each) for each in (first, *reversed(back))]
        path.append(before)


def slots_needed(graph: JobGraph) -> int:
    """How many slots the job takes, all its slot sharing groups together."""
    return sum(demand.slots for demand in slot_demands(graph).values())


def slot_demands(graph: JobGraph) -> dict[str, SlotDemand]:
    """What each slot sharing group needs."""
    widest: Counter[str] = Counter()
    bound_to: dict[str, set[int]] = {}
    for vertex in graph.vertices:
        group, first = vertex.slot_sharing_group, vertex.first_task_manager
        widest[group] = max(widest[group], vertex.parallelism)
        indexes = range(first, first + vertex.parallelism) if vertex.task_manager_bound else ()
        bound_to.setdefault(group, set()).update(indexes)
    return {group: SlotDemand(widest[group], frozenset(bound_to[group])) for group in widest}


def pointwise_producers(producers: int, consumers: int, index: int) -> range:
    """Which of a vertex's subtasks feed consumer `index` of `consumers` where each feeds, or is fed by, a few others.

    Consecutive ones, as evenly as it goes; with equal parallelism the one with the same index.
    Flink: EdgeManagerBuildUtil.connectPointwise.
    """
    first = index * producers // consumers
    return range(first, max(first + 1, (index + 1) * producers // consumers))


def loop_edges(graph: JobGraph) -> frozenset[int]:
    """The indexes of the edges both of whose ends are in one loop, feedback edges too."""
    loops = [_vertices_between(graph, edge.target, edge.source) for edge in graph.edges if edge.feedback]
    return frozenset(
        index
        for index, edge in enumerate(graph.edges)
        if any(edge.source in inside and edge.target in inside for inside in loops)
    )


def vertices_in_rounds(graph: JobGraph) -> frozenset[VertexId]:
    """The vertices inside loops that go in rounds."""
    loops = [_vertices_between(graph, edge.target, edge.source) for edge in graph.edges if edge.by_round]
    return frozenset().union(*loops)


def _vertices_between(graph: JobGraph, first: VertexId, last: VertexId) -> frozenset[VertexId]:
    """The vertices on the ways from one to the other, with both; empty if there is no way."""
    ahead = _reached(first, [(edge.source, edge.target) for edge in graph.edges if not edge.feedback])
    behind = _reached(last, [(edge.target, edge.source) for edge in graph.edges if not edge.feedback])
    return ahead & behind


def _reached(start: VertexId, steps: Sequence[tuple[VertexId, VertexId]]) -> frozenset[VertexId]:
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        new = {to for at, to in steps if at == here} - found
        todo += new
        found |= new
    return frozenset(found)


def regions(graph: JobGraph) -> tuple[Region, ...]:
    """The connected components: sets of vertices that exchange data, directly or not, and so restart together. A
    feedback edge connects as any other does.

    In topological order of their first vertices. Flink: pipelined regions.
    """
    found: list[Region] = []
    for vertex in topological_order(graph):
        if not any(vertex.vertex_id in region for region in found):
            found.append(_connected_to(graph, vertex.vertex_id))
    return tuple(found)


def _connected_to(graph: JobGraph, vertex_id: VertexId) -> Region:
    region, todo = {vertex_id}, [vertex_id]
    while todo:
        here = todo.pop()
        ends = {end for edge in graph.edges if here in (edge.source, edge.target) for end in (edge.source, edge.target)}
        todo += ends - region
        region |= ends
    return frozenset(region)


def _check_ids(graph: JobGraph) -> None:
    vertex_ids = Counter(vertex.vertex_id for vertex in graph.vertices)
    operator_ids = Counter(operator.operator_id for vertex in graph.vertices for operator in vertex.operators)
    for vertex in graph.vertices:
        if vertex_ids[vertex.vertex_id] > 1:
            raise InvalidJobGraph(f"{_name(vertex)}: another vertex has the same id")
        if not vertex.operators:
            raise InvalidJobGraph(f"{_name(vertex)} has no operators")
        for operator in vertex.operators:
            if operator_ids[operator.operator_id] > 1:
                raise InvalidJobGraph(
                    f"operator {operator.name!r} of {_name(vertex)}: another operator has the same id, "
                    f"{operator.operator_id!r}"
                )


def _check_rate(vertex: JobVertex) -> None:
    for operator in vertex.operators:
        rate = operator.rate_per_second
        if rate is not None and not 0 < rate < math.inf:
            raise InvalidJobGraph(
                f"operator {operator.name!r} of {_name(vertex)} has rate_per_second {rate}; wanted a number above 0"
            )


def _check_parallelism(vertex: JobVertex) -> None:
    if not 1 <= vertex.max_parallelism <= MAX_PARALLELISM:
        raise InvalidJobGraph(
            f"{_name(vertex)} has max_parallelism {vertex.max_parallelism}; wanted 1 to {MAX_PARALLELISM}"
        )
    if not 1 <= vertex.parallelism <= vertex.max_parallelism:
        raise InvalidJobGraph(
            f"{_name(vertex)} has parallelism {vertex.parallelism}; wanted 1 to its max_parallelism, "
            f"{vertex.max_parallelism}"
        )
    if vertex.first_task_manager < 0:
        raise InvalidJobGraph(f"{_name(vertex)} has first_task_manager {vertex.first_task_manager}; wanted 0 or more")


def _check_edge(graph: JobGraph, edge: JobEdge) -> None:
    known = {vertex.vertex_id for vertex in graph.vertices}
    for end in (edge.source, edge.target):
        if end not in known:
            raise InvalidJobGraph(f"the edge from {edge.source!r} to {edge.target!r}: there is no vertex {end!r}")
    source, target = vertex_of(graph, edge.source), vertex_of(graph, edge.target)
    if edge.partitioning is Partitioning.FORWARD and source.parallelism != target.parallelism:
        raise InvalidJobGraph(
            f"the forward edge from {_name(source)} to {_name(target)} joins parallelism {source.parallelism} "
            f"with {target.parallelism}; wanted the same on both sides"
        )


def _check_loop(graph: JobGraph, edge: JobEdge) -> None:
    tail, head = vertex_of(graph, edge.source), vertex_of(graph, edge.target)
    back = f"the edge from {_name(tail)} back to {_name(head)}"
    if edge.partitioning is Partitioning.FORWARD:
        raise InvalidJobGraph(f"{back} is a forward edge; wanted one by which each subtask reaches each other one")
    inside = _vertices_between(graph, edge.target, edge.source)
    if not inside:
        raise InvalidJobGraph(f"{back}: nothing leads from there to here, so it closes no loop")
    for other in graph.edges:
        if other.feedback and other.target != edge.target and other.target in inside:
            inner = vertex_of(graph, other.target)
            raise InvalidJobGraph(f"the loop of {_name(head)} has another loop in it, of {_name(inner)}; wanted one")


def _check_inputs(graph: JobGraph, vertex: JobVertex) -> None:
    indexes = {edge.input_index for edge in in_edges(graph, vertex.vertex_id)}
    first = vertex.operators[0]
    if indexes and all(edge.feedback for edge in in_edges(graph, vertex.vertex_id)):
        raise InvalidJobGraph(f"operator {first.name!r} of {_name(vertex)} has feedback edges only; wanted an input")
    if first.kind == "source" and indexes:
        raise InvalidJobGraph(f"source {first.name!r} of {_name(vertex)} has an input; wanted none")
    if first.kind != "source" and not indexes:
        raise InvalidJobGraph(f"operator {first.name!r} of {_name(vertex)} has no input and is not a source")
    if indexes not in (set(), {0}, {0, 1}):
        raise InvalidJobGraph(f"{_name(vertex)} has the inputs {sorted(indexes)}; wanted 0, or 0 and 1")
    for operator in vertex.operators[1:]:
        if operator.kind == "source":
            raise InvalidJobGraph(f"source {operator.name!r} of {_name(vertex)} is chained behind {first.name!r}")


def _name(vertex: JobVertex) -> str:
    return f"vertex {vertex.name!r} ({vertex.vertex_id})"
