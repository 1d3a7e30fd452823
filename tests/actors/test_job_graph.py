"""JobGraph: validation, order, slots, regions."""

from __future__ import annotations

import math

import pytest

from understudy.actors.errors import InvalidJobGraph
from understudy.actors.job_graph import (
    all_subtasks,
    in_edges,
    out_edges,
    regions,
    slots_needed,
    topological_order,
    validate,
    vertex_of,
)
from understudy.messages import JobGraph, Partitioning, VertexId

from .graphs import edge, graph, operator, source, vertex

FORWARD = Partitioning.FORWARD

DIAMOND = graph(
    vertex("join", 2),
    source("left", 2),
    source("right", 3),
    vertex("sink"),
    edges=[edge("left", "join"), edge("right", "join", input_index=1), edge("join", "sink", Partitioning.REBALANCE)],
)


def test_a_valid_graph_passes() -> None:
    validate(DIAMOND)


def test_a_union_and_two_edges_between_the_same_vertices_are_valid() -> None:
    validate(graph(source("a"), source("b"), vertex("c"), edges=[edge("a", "c"), edge("a", "c"), edge("b", "c")]))


INVALID: list[tuple[JobGraph, str]] = [
    (graph(), "job 'test job' has no vertices"),
    (graph(source("a"), source("a")), r"vertex 'a' \(a\): another vertex has the same id"),
    (
        graph(source("a"), source("b", operators=(operator("a", "source"),))),
        r"operator 'a' of vertex 'a' \(a\): another operator has the same id, 'op-a'",
    ),
    (graph(source("a", operators=())), r"vertex 'a' \(a\) has no operators"),
    (graph(source("a", 0)), "'a' .* has parallelism 0; wanted 1 to its max_parallelism, 128"),
    (graph(source("a", 5, max_parallelism=4)), "has parallelism 5; wanted 1 to its max_parallelism, 4"),
    (graph(source("a", max_parallelism=0)), "has max_parallelism 0; wanted 1 to 32768"),
    (graph(source("a", max_parallelism=32_769)), "has max_parallelism 32769; wanted 1 to 32768"),
    (graph(source("a", first_task_manager=-1)), "has first_task_manager -1; wanted 0 or more"),
    *(
        (
            graph(source("a", operators=(operator("b", "source", rate_per_second=rate),))),
            rf"operator 'b' of vertex 'a' \(a\) has rate_per_second {rate}; wanted a number above 0",
        )
        for rate in (0.0, -1.0, math.inf, math.nan)
    ),
    (graph(source("a"), edges=[edge("a", "x")]), "the edge from 'a' to 'x': there is no vertex 'x'"),
    (graph(source("a"), edges=[edge("x", "a")]), "the edge from 'x' to 'a': there is no vertex 'x'"),
    (
        graph(source("a", 2), vertex("b", 3), edges=[edge("a", "b", FORWARD)]),
        r"the forward edge from vertex 'a' \(a\) to vertex 'b' \(b\) joins parallelism 2 with 3",
    ),
    (
        graph(source("a"), vertex("b"), vertex("c"), edges=[edge("a", "b"), edge("b", "c"), edge("c", "b")]),
        "has a cycle without a feedback edge, of the operators 'b', 'c'",
    ),
    (graph(vertex("a"), edges=[edge("a", "a")]), "has a cycle without a feedback edge, of the operators 'a'"),
    (graph(source("a"), vertex("b")), r"operator 'b' of vertex 'b' \(b\) has no input and is not a source"),
    (graph(source("a"), source("b"), edges=[edge("a", "b")]), "source 'b' of vertex 'b' .* has an input"),
    (graph(source("a"), vertex("b"), edges=[edge("a", "b", input_index=1)]), r"inputs \[1\]; wanted 0, or 0 and 1"),
    (
        graph(source("a"), vertex("b"), edges=[edge("a", "b"), edge("a", "b", input_index=2)]),
        r"inputs \[0, 2\]; wanted 0, or 0 and 1",
    ),
    (
        graph(source("a", operators=(operator("a", "source"), operator("z", "source")))),
        "source 'z' of vertex 'a' .* is chained behind 'a'",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), INVALID, ids=[message for _, message in INVALID])
def test_an_invalid_graph_is_refused_by_name(wrong: JobGraph, message: str) -> None:
    with pytest.raises(InvalidJobGraph, match=message):
        validate(wrong)


def test_vertices_come_after_all_that_feed_them() -> None:
    assert [vertex.name for vertex in topological_order(DIAMOND)] == ["left", "right", "join", "sink"]


def test_subtasks_come_vertex_by_vertex() -> None:
    assert [f"{vertex}{index}" for vertex, index in all_subtasks(DIAMOND)] == [
        *("left0", "left1", "right0", "right1", "right2", "join0", "join1", "sink0")
    ]


def test_edges_of_a_vertex() -> None:
    assert [edge.source for edge in in_edges(DIAMOND, VertexId("join"))] == ["left", "right"]
    assert [edge.target for edge in out_edges(DIAMOND, VertexId("join"))] == ["sink"]
    with pytest.raises(InvalidJobGraph, match="no vertex 'x'"):
        vertex_of(DIAMOND, VertexId("x"))


def test_bound_sources_on_different_task_managers_need_a_slot_on_each() -> None:
    flights = source("flights", 2, task_manager_bound=True)
    weather = source("weather", 2, task_manager_bound=True, first_task_manager=1)
    assert slots_needed(graph(flights, weather, vertex("join", 2))) == 3


def test_regions_are_the_connected_components() -> None:
    job = graph(
        source("a", 3),
        source("lone"),
        vertex("b", 2),
        source("c", 2),
        vertex("d", 2),
        vertex("e", 2),
        edges=[edge("a", "b"), edge("c", "d", FORWARD), edge("b", "e"), edge("d", "e", FORWARD, input_index=1)],
    )
    assert regions(job) == (frozenset("abcde"), frozenset({"lone"}))


def test_pipelines_that_do_not_meet_are_regions_of_their_own() -> None:
    job = graph(source("a"), vertex("b"), source("c"), vertex("d"), edges=[edge("a", "b"), edge("c", "d")])
    assert regions(job) == (frozenset("ab"), frozenset("cd"))
