"""Which subtask should I look at? The culprit before those that suffer from it."""

from __future__ import annotations

from dataclasses import replace

from understudy.messages import JobStatus, JobView
from understudy.runtime.web.flink_jobs import by_vertex
from understudy.runtime.web.top import MOST, Suspect, first, suspects_of

from .views import job_view


def suspects(view: JobView) -> list[Suspect]:
    tasks, feeds = {each.attempt_id: each for each in view.details.tasks}, {edge.source for edge in view.graph.edges}
    of_vertex = by_vertex(view)
    found = []
    for vertex in view.graph.vertices:
        subtasks = of_vertex[vertex.vertex_id]
        heard = [tasks.get(each.attempt_id) for each in subtasks]
        found += suspects_of(vertex, subtasks, heard, feeds=vertex.vertex_id in feeds)
    return first(found)


def test_the_busy_one_comes_before_those_that_wait_for_it() -> None:
    found = suspects(job_view(vertices=4, slow_vertex=2))
    assert [each.vertex_id for each in found] == ["v2", "v2", "v0", "v0", "v1", "v1"]
    assert found[0].why == "busy 97%"
    assert found[2].why == "waits for its outputs 80%"


def test_none_stands_out_of_a_job_that_runs_easily_or_has_ended() -> None:
    assert suspects(job_view(slow_vertex=None)) == []
    assert suspects(job_view(status=JobStatus.CANCELED)) == []


def test_one_that_takes_more_than_its_peers_is_named() -> None:
    view = job_view(vertices=2, parallelism=4, slow_vertex=None)
    greedy = replace(view.subtasks[5], records_in_per_second=9000.0)
    found = suspects(replace(view, subtasks=(*view.subtasks[:5], greedy, *view.subtasks[6:])))
    assert [(each.vertex_id, each.subtask_index) for each in found] == [("v1", 1)]
    assert found[0].why == "takes 3.0 times the mean of its 4 subtasks"


def test_one_whose_event_time_stands_is_named() -> None:
    view = job_view(vertices=2, slow_vertex=None)
    time = view.details.tasks[3].event_time
    assert time is not None
    stands = replace(view.details.tasks[3], event_time=replace(time, standing_ms=90_000))
    found = suspects(replace(view, details=replace(view.details, tasks=(*view.details.tasks[:3], stands))))
    assert [(each.vertex_id, each.why) for each in found] == [("v1", "event time stands for 90 s")]


def test_of_many_the_ten_worst_are_shown() -> None:
    assert len(suspects(job_view(vertices=10, parallelism=100, slow_vertex=5))) == MOST
