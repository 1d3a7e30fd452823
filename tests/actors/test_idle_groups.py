"""Which subtasks are idle together: those that are behind one and the same subtask."""

from __future__ import annotations

from understudy.actors.idle_groups import idle_groups
from understudy.messages import JobGraph, Partitioning

from .graphs import edge, graph, source, vertex

FORWARD = Partitioning.FORWARD


def groups_of(job: JobGraph, name: str) -> list[int]:
    return [group for subtask, group in idle_groups(job).items() if subtask.vertex_id == name]


def test_all_that_one_subtask_feeds_are_one_group() -> None:
    job = graph(source("read"), vertex("map", 3), vertex("sum", 2), edges=[edge("read", "map"), edge("map", "sum")])

    assert groups_of(job, "map") * 2 == groups_of(job, "read") * 6
    assert groups_of(job, "sum") == groups_of(job, "read") * 2


def test_those_that_several_feed_are_none() -> None:
    job = graph(source("read", 2), vertex("map", 3), edges=[edge("read", "map")])

    assert len(set(groups_of(job, "map"))) == 3


def test_forward_each_is_with_its_own() -> None:
    job = graph(source("read", 2), vertex("map", 4), edges=[edge("read", "map", FORWARD)])
    first, second = groups_of(job, "read")

    assert groups_of(job, "map") == [first, first, second, second]


def test_who_says_it_by_itself_is_a_group_of_its_own() -> None:
    job = graph(source("read"), vertex("times", 2, says_idle=True), edges=[edge("read", "times")])

    assert len({*groups_of(job, "read"), *groups_of(job, "times")}) == 3


def test_two_branches_of_one_subtask_are_one_group_and_feedback_counts_for_nothing() -> None:
    job = graph(
        source("read"),
        vertex("head", 2),
        vertex("tail", 2),
        vertex("other", 2),
        edges=[
            edge("read", "head"),
            edge("head", "tail", FORWARD),
            edge("tail", "head", FORWARD, feedback=True),
            edge("read", "other"),
        ],
    )

    assert len(set(idle_groups(job).values())) == 1
