"""VertexSamples: orders to the tasks of a vertex, what comes back, and what clients get of it."""

from __future__ import annotations

from understudy.actors.jobs.back_pressure import BackPressureSettings
from understudy.actors.jobs.vertex_samples import (
    SamplesEffect,
    SamplesOverdue,
    TriggerSample,
    VertexSampled,
    VertexSamples,
    merged_frames,
)
from understudy.messages import (
    ExecutionState,
    JobId,
    RequestFlameGraph,
    SampledFrame,
    StackTraceSample,
    SubtaskIndex,
    TriggerStackTraceSample,
    VertexId,
)

from .test_back_pressure import running_subtasks, vertex

JOB, VERTEX = JobId("job"), VertexId("a")
TWO = vertex(VERTEX, 2)
FOUR_EACH = BackPressureSettings(samples=4, refresh_interval_ms=100)
WORKS = SampledFrame(-1, "(works)", "", 0, "state", 3)
WAITS = SampledFrame(-1, "(waits for input)", "", 0, "state", 1)


def called(parent: int, name: str, samples: int) -> SampledFrame:
    return SampledFrame(parent, name, "job.py", 7, "user", samples)


def orders(effects: list[SamplesEffect]) -> list[TriggerStackTraceSample]:
    return [effect.message for effect in effects if isinstance(effect, TriggerSample)]


def answer(order: TriggerStackTraceSample, *held_back: bool, frames: tuple[SampledFrame, ...] = ()) -> StackTraceSample:
    return StackTraceSample(JOB, order.attempt_id, order.number, held_back, frames)


def test_each_running_task_is_asked_once_and_the_vertex_is_known_when_all_have_answered() -> None:
    samples, running = VertexSamples(JOB, FOUR_EACH), running_subtasks(VERTEX, 2)
    _, effects = samples.request(TWO, running, 0)
    first, second = orders(effects)
    assert (first.samples, first.delay_ms) == (4, 50)
    assert effects[-1] == SamplesOverdue(VERTEX, 1, 10_200)
    assert samples.heard(answer(first, True, True, True, False), 50, 1_050) == []
    assert samples.heard(answer(second, False, False, False, False), 60, 1_060) == [VertexSampled(VERTEX)]
    known, more = samples.request(TWO, running, 70)
    report = samples.report(TWO, known, {SubtaskIndex(1): (0.25, 0.75)}, 70, 1_070)
    assert more == []
    assert (report.status, report.level, report.end_ms) == ("ok", "high", 1_060)
    assert [(each.ratio, each.level) for each in report.subtasks] == [(0.75, "high"), (0.0, "ok")]
    assert [(each.idle_ratio, each.busy_ratio) for each in report.subtasks] == [(None, None), (0.25, 0.75)]


def test_what_has_come_counts_when_a_task_does_not_answer() -> None:
    samples, running = VertexSamples(JOB, FOUR_EACH), running_subtasks(VERTEX, 2)
    _, effects = samples.request(TWO, running, 0)
    first, late = orders(effects)
    samples.heard(answer(first, True), 50, 50)
    overdue = effects[-1]
    assert isinstance(overdue, SamplesOverdue)
    assert samples.overdue(overdue, 10_200, 10_200) == [VertexSampled(VERTEX)]
    assert samples.heard(answer(late, True), 10_201, 10_201) == []
    known, _ = samples.request(TWO, running, 10_210)
    assert known.figures is not None
    assert [each.ratio for each in known.figures.subtasks] == [1.0, 0.0]
    assert samples.overdue(overdue, 10_220, 10_220) == [], "of a sampling that is over"


def test_a_vertex_of_which_no_task_runs_is_not_sampled_and_keeps_what_is_known_of_it() -> None:
    samples, running = VertexSamples(JOB, FOUR_EACH), running_subtasks(VERTEX, 2)
    nothing, effects = samples.request(TWO, [], 0)
    assert (nothing.figures, nothing.is_outdated, effects) == (None, True, [])
    _, effects = samples.request(TWO, running, 1)
    for order in orders(effects):
        samples.heard(answer(order, True), 2, 2)
    fresh, _ = samples.request(TWO, running, 3)
    for execution in running:
        execution.update(ExecutionState.FAILED)
    old, effects = samples.request(TWO, running, 1_000)
    assert (old.figures, old.is_outdated, effects) == (fresh.figures, True, [])


def test_those_who_wait_are_answered_when_the_job_ends() -> None:
    samples, running = VertexSamples(JOB, FOUR_EACH), running_subtasks(VERTEX, 2)
    samples.request(TWO, running, 0)
    assert samples.job_ended(1) == [VertexSampled(VERTEX)]
    assert not samples.is_under_way(VERTEX)
    assert samples.request(TWO, running, 500)[1] == []


def test_a_flame_graph_is_the_stacks_of_all_subtasks_on_top_of_each_other() -> None:
    samples, running = VertexSamples(JOB, FOUR_EACH), running_subtasks(VERTEX, 2)
    _, effects = samples.request(TWO, running, 0)
    one, other = orders(effects)
    samples.heard(answer(one, frames=(WORKS, called(0, "process", 3), called(1, "parse", 2), WAITS)), 1, 1)
    samples.heard(answer(other, frames=(WAITS, WORKS, called(1, "process", 3))), 2, 2)
    graph = samples.flame_graph(TWO, RequestFlameGraph(JOB, "a"))
    assert graph.samples == 8
    assert [(each.parent, each.function, each.samples) for each in graph.frames] == [
        (-1, "(works)", 6),
        (0, "process", 6),
        (1, "parse", 2),
        (-1, "(waits for input)", 2),
    ]
    alone = samples.flame_graph(TWO, RequestFlameGraph(JOB, "a", SubtaskIndex(1), "on_cpu"))
    assert [(each.function, each.samples) for each in alone.frames] == [("(works)", 3), ("process", 3)]
    waiting = samples.flame_graph(TWO, RequestFlameGraph(JOB, "a", kind="off_cpu"))
    assert [each.function for each in waiting.frames] == ["(waits for input)"]


def test_frames_below_an_unwanted_one_are_unwanted() -> None:
    deep = (WAITS, called(0, "a", 1), called(1, "b", 1), WORKS, called(3, "c", 1))
    assert [each.function for each in merged_frames([deep], "on_cpu")] == ["(works)", "c"]
