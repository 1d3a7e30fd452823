"""BackPressureTracker: what goes beyond Flink's scenarios, which are in tests/conformance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.job_graph import SubtaskKey
from understudy.actors.jobs.back_pressure import (
    BackPressureAnswer,
    BackPressureLevel,
    BackPressureRequested,
    BackPressureSettings,
    BackPressureTracker,
    JobEnded,
    SampleTaken,
    SamplingEnded,
    SubtaskBackPressure,
    TakeSamples,
    VertexBackPressure,
)
from understudy.actors.jobs.execution import Execution
from understudy.actors.jobs.slot_pool import SlotId
from understudy.messages import (
    ExecutionAttemptId,
    ExecutionState,
    JobVertex,
    SlotIndex,
    SubtaskIndex,
    TaskManagerId,
    VertexId,
)

VERTEX, OTHER = VertexId("a"), VertexId("b")
TWO_EACH = BackPressureSettings(samples=2, refresh_interval_ms=100, cleanup_interval_ms=1000)
ASK = BackPressureRequested(VERTEX, 2)
UNKNOWN = BackPressureAnswer(VERTEX, None, is_outdated=True)
TAKE = TakeSamples(VERTEX, 2, samples=2, delay_ms=50)


def sample(index: int, is_blocked: bool) -> SampleTaken:
    return SampleTaken(VERTEX, SubtaskIndex(index), is_blocked)


def sampled(*ratios: float, end_ms: float) -> VertexBackPressure:
    shares = (SubtaskBackPressure(SubtaskIndex(index), ratio) for index, ratio in enumerate(ratios))
    return VertexBackPressure(tuple(shares), end_ms)


def vertex(vertex_id: VertexId, parallelism: int) -> JobVertex:
    return JobVertex(vertex_id, vertex_id, parallelism, 128, ())


def running_subtasks(vertex_id: VertexId, count: int) -> list[Execution]:
    """Attempts that run, each on a TaskManager of its own."""
    found = []
    for index in range(count):
        execution = Execution(SubtaskKey(vertex_id, SubtaskIndex(index)), 0, ExecutionAttemptId(f"attempt-{index}"))
        execution.schedule()
        execution.deploy(SlotId(TaskManagerId(f"tm-{index}"), SlotIndex(0)))
        execution.update(ExecutionState.RUNNING)
        found.append(execution)
    return found


def tell_samples(tracker: BackPressureTracker, now_ms: float) -> None:
    for event in (sample(0, True), sample(1, False), sample(0, False), sample(1, False)):
        assert tracker.on(event, now_ms) == []


def test_no_samples_are_taken_while_some_are_pending() -> None:
    """backpressure.json: trigger_refused."""
    tracker = BackPressureTracker(TWO_EACH)
    assert tracker.on(ASK, 0) == [UNKNOWN, TAKE]
    assert tracker.on(ASK, 500) == [UNKNOWN]
    assert tracker.on(BackPressureRequested(OTHER, 1), 500)[1:] == [TakeSamples(OTHER, 1, 2, 50)]


def test_after_the_jobs_end_no_samples_are_taken_and_late_ones_are_dropped() -> None:
    """backpressure.json: trigger_refused."""
    tracker = BackPressureTracker(TWO_EACH)
    tracker.on(ASK, 0)
    tracker.on(JobEnded(), 1)
    tell_samples(tracker, 2)
    assert tracker.on(ASK, 3) == [UNKNOWN]


def test_figures_are_up_to_date_until_the_refresh_interval_is_over_and_are_still_told_then() -> None:
    tracker = BackPressureTracker(TWO_EACH)
    tracker.on(ASK, 0)
    tell_samples(tracker, 10)
    figures = sampled(0.5, 0.0, end_ms=10)
    assert tracker.on(ASK, 109) == [BackPressureAnswer(VERTEX, figures, is_outdated=False)]
    assert tracker.on(ASK, 110) == [BackPressureAnswer(VERTEX, figures, is_outdated=True), TAKE]


def test_figures_that_nobody_asks_for_are_forgotten() -> None:
    tracker = BackPressureTracker(TWO_EACH)
    tracker.on(ASK, 0)
    tell_samples(tracker, 0)
    assert tracker.on(ASK, 999)[0] == BackPressureAnswer(VERTEX, sampled(0.5, 0.0, end_ms=0), is_outdated=True)
    assert tracker.on(ASK, 1999) == [UNKNOWN]  # its samples are still pending


def test_figures_stay_while_they_are_asked_for_though_no_new_ones_come() -> None:
    tracker = BackPressureTracker(TWO_EACH)
    tracker.on(ASK, 0)
    tell_samples(tracker, 0)
    tracker.on(JobEnded(), 1)
    known = BackPressureAnswer(VERTEX, sampled(0.5, 0.0, end_ms=0), is_outdated=True)
    assert [tracker.on(ASK, now_ms) for now_ms in (999, 1998, 2997)] == [[known]] * 3
    assert tracker.on(ASK, 3997) == [UNKNOWN]


def test_new_figures_stay_as_long_as_first_ones() -> None:
    tracker = BackPressureTracker(TWO_EACH)
    tracker.on(ASK, 0)
    tell_samples(tracker, 0)
    tracker.on(ASK, 900)
    tell_samples(tracker, 1_800)
    tracker.on(JobEnded(), 1_801)
    known = BackPressureAnswer(VERTEX, sampled(0.5, 0.0, end_ms=1_800), is_outdated=True)
    assert tracker.on(ASK, 2_799) == [known]


def test_a_subtask_without_samples_is_not_blocked() -> None:
    tracker = BackPressureTracker(TWO_EACH)
    tracker.on(ASK, 0)
    tracker.on(sample(0, True), 1)
    tracker.on(SamplingEnded(VERTEX), 2)
    answer = tracker.on(ASK, 3)[0]
    assert answer == BackPressureAnswer(VERTEX, sampled(1.0, 0.0, end_ms=2), is_outdated=False)


def test_samples_that_nobody_waits_for_are_dropped() -> None:
    tracker = BackPressureTracker(TWO_EACH)
    tell_samples(tracker, 0)
    tracker.on(SamplingEnded(VERTEX), 0)
    assert tracker.on(ASK, 1) == [UNKNOWN, TAKE]
    for _ in range(3):
        tracker.on(sample(0, True), 2)
    tracker.on(sample(7, True), 2)
    tracker.on(SamplingEnded(VERTEX), 3)
    assert tracker.on(ASK, 4)[0] == BackPressureAnswer(VERTEX, sampled(1.0, 0.0, end_ms=3), is_outdated=False)


@given(ratios=st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_vertex_is_as_slow_as_its_slowest_subtask(ratios: list[float]) -> None:
    figures = sampled(*ratios, end_ms=0)
    order = list(BackPressureLevel)
    assert order.index(figures.level) == max(order.index(subtask.level) for subtask in figures.subtasks)
