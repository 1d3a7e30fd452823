"""A feedback edge, as each reader of a JobGraph takes it."""

from __future__ import annotations

import pytest

from understudy.actors.checkpoints.checkpoint_plan import CheckpointPlan
from understudy.actors.errors import InvalidJobGraph
from understudy.actors.job_graph import (
    SubtaskKey,
    all_subtasks,
    in_edges,
    loop_edges,
    regions,
    topological_order,
    validate,
)
from understudy.actors.jobs.slot_requests import slot_requests
from understudy.actors.restore.restored_operators import RestoredOperators
from understudy.messages import JobEdge, JobGraph, Partitioning, SubtaskIndex, VertexId

from .graphs import edge, graph, source, vertex
from .savepoints import chain, checkpoint, list_state

FORWARD = Partitioning.FORWARD
LOOP = graph(
    source("read"),
    vertex("head"),
    vertex("tail"),
    vertex("sink"),
    edges=[
        edge("read", "head"),
        edge("head", "tail", FORWARD),
        edge("tail", "head", FORWARD, feedback=True),
        edge("tail", "sink"),
    ],
)


def test_the_topological_order_ignores_it() -> None:
    assert [each.name for each in topological_order(LOOP)] == ["read", "head", "tail", "sink"]
    assert [str(subtask.vertex_id) for subtask in all_subtasks(LOOP)] == ["read", "head", "tail", "sink"]


def test_a_cycle_without_one_is_refused_naming_its_operators_and_no_others() -> None:
    cycle = graph(
        source("a"),
        vertex("b"),
        vertex("c"),
        vertex("behind"),
        edges=[edge("a", "b"), edge("b", "c"), edge("c", "b"), edge("c", "behind")],
    )
    with pytest.raises(InvalidJobGraph, match=r"without a feedback edge, of the operators 'b', 'c'$"):
        topological_order(cycle)


def test_one_feedback_edge_does_not_excuse_another_cycle() -> None:
    two = graph(source("a"), vertex("b"), edges=[edge("a", "b"), edge("b", "b", feedback=True), edge("b", "b")])
    with pytest.raises(InvalidJobGraph, match="of the operators 'b'"):
        topological_order(two)


def test_it_is_an_input_of_its_vertex() -> None:
    assert [each.source for each in in_edges(LOOP, VertexId("head"))] == ["read", "tail"]


def test_a_loop_restarts_as_a_whole() -> None:
    apart = graph(source("a"), vertex("b"), edges=[edge("b", "a", feedback=True)])
    assert regions(apart) == (frozenset({"a", "b"}),)


def test_a_forward_one_shares_slots_as_any_forward_edge_does() -> None:
    everything = [each.vertex_id for each in LOOP.vertices]
    near = {each.subtask.vertex_id: each.near for each in slot_requests(LOOP, everything, {})}
    assert near[VertexId("head")] == {SubtaskKey(VertexId("tail"), SubtaskIndex(0))}


def test_a_checkpoint_is_triggered_at_sources_only_and_acknowledged_by_the_loop() -> None:
    plan = CheckpointPlan.of(LOOP)
    assert [str(subtask.vertex_id) for subtask in plan.trigger] == ["read"]
    assert {str(subtask.vertex_id) for subtask in plan.acknowledge} == {"read", "head", "tail", "sink"}


def test_a_restored_loop_has_ended_when_all_that_feeds_it_has() -> None:
    ended = [(chain(f"op-{each.name}"), [{f"op-{each.name}": list_state("s", 1)}], [True]) for each in LOOP.vertices]
    assert RestoredOperators(checkpoint(*ended), LOOP).ended == {each.vertex_id: [True] for each in LOOP.vertices}
    head_anew = [ended[0], *ended[2:]]
    assert RestoredOperators(checkpoint(*head_anew), LOOP).ended == {
        VertexId("read"): [True],
        **{VertexId(name): [False] for name in ("head", "tail", "sink")},
    }


def test_each_tail_has_to_reach_each_head() -> None:
    with pytest.raises(
        InvalidJobGraph, match=r"from vertex 'tail' \(tail\) back to vertex 'head' \(head\) is a forward"
    ):
        validate(LOOP)


def loop(*edges: JobEdge) -> JobGraph:
    return graph(source("read"), vertex("a"), vertex("b"), vertex("c"), vertex("sink"), edges=list(edges))


def test_the_edges_of_a_loop_are_those_between_its_head_and_its_tails() -> None:
    made = loop(
        edge("read", "a"),
        edge("a", "b"),
        edge("b", "c"),
        edge("c", "a", feedback=True),
        edge("b", "sink"),
        edge("read", "b"),
        edge("b", "a", feedback=True),
    )
    validate(made)
    assert loop_edges(made) == {1, 2, 3, 6}


def test_a_loop_that_nothing_closes_and_one_inside_another_are_refused() -> None:
    apart = loop(edge("read", "a"), edge("read", "b"), edge("b", "c"), edge("c", "a", feedback=True), edge("a", "sink"))
    with pytest.raises(InvalidJobGraph, match=r"back to vertex 'a' \(a\): nothing leads from there to here"):
        validate(apart)
    nested = loop(
        edge("read", "a"),
        edge("a", "b"),
        edge("b", "c"),
        edge("c", "b", feedback=True),
        edge("c", "a", feedback=True),
        edge("c", "sink"),
    )
    with pytest.raises(InvalidJobGraph, match=r"the loop of vertex 'a' \(a\) has another loop in it, of vertex 'b'"):
        validate(nested)


def test_who_reads_a_loop_expects_barriers() -> None:
    """Its head takes what comes back before it takes input, where a barrier may stand."""
    assert CheckpointPlan.of(LOOP).expect == (SubtaskKey(VertexId("head"), SubtaskIndex(0)),)


def test_what_is_fed_by_feedback_only_has_no_input() -> None:
    lonely = graph(source("a"), vertex("b"), edges=[edge("b", "b", feedback=True)])
    with pytest.raises(InvalidJobGraph, match=r"operator 'b' .* has feedback edges only"):
        validate(lonely)
