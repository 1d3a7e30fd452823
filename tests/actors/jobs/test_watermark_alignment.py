"""WatermarkAlignment: the slowest of each group. Flink: SourceCoordinatorAlignmentTest."""

from __future__ import annotations

from understudy.actors.job_graph import SubtaskKey
from understudy.actors.jobs.watermark_alignment import WatermarkAlignment
from understudy.messages import (
    END_OF_TIME,
    NO_WATERMARK,
    CheckpointConfig,
    ExecutionAttemptId,
    JobGraph,
    JobId,
    JobVertex,
    ReportWatermark,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubtaskIndex,
    VertexId,
)


def subtask(index: int, vertex: str = "v") -> SubtaskKey:
    return SubtaskKey(VertexId(vertex), SubtaskIndex(index))


def said(watermark_ms: int, group: str = "g", waited_for: bool = True) -> ReportWatermark:
    return ReportWatermark(JobId("job"), ExecutionAttemptId("attempt"), group, 80, watermark_ms, waited_for)


def alignment(**parallelism: int) -> WatermarkAlignment:
    vertices = tuple(JobVertex(VertexId(name), name, count, 128, ()) for name, count in parallelism.items())
    restart = RestartStrategyConfig(RestartStrategyKind.NONE)
    return WatermarkAlignment(JobGraph(JobId("job"), "job", vertices, (), CheckpointConfig(""), restart))


def test_a_subtask_that_has_not_reported_is_waited_for() -> None:
    group = alignment(v=2)
    assert group.report(subtask(0), said(500))[0] == NO_WATERMARK
    assert group.report(subtask(1), said(300)) == (300, (subtask(0), subtask(1)))


def test_idle_and_ended_members_hold_nobody() -> None:
    """FLINK-32414, FLINK-32496"""
    group = alignment(v=2)
    group.report(subtask(0), said(500))
    assert group.report(subtask(1), said(300, waited_for=False)) == (500, (subtask(0), subtask(1)))
    assert group.report(subtask(0), said(500, waited_for=False))[0] == END_OF_TIME
    assert group.report(subtask(1), said(300)) == (300, (subtask(0), subtask(1))), "active again: all learn it at once"


def test_small_steps_are_said_to_who_reports_alone() -> None:
    group = alignment(v=2)
    group.report(subtask(0), said(500))
    group.report(subtask(1), said(300))
    assert group.report(subtask(1), said(309)) == (309, (subtask(1),))
    assert group.report(subtask(1), said(310)) == (310, (subtask(0), subtask(1)))
    assert group.report(subtask(0), said(500)) == (310, (subtask(0),))


def test_a_new_attempt_that_is_behind_holds_the_others_again() -> None:
    group = alignment(v=2)
    group.report(subtask(0), said(500))
    group.report(subtask(1), said(400))
    assert group.report(subtask(1), said(100)) == (100, (subtask(0), subtask(1)))


def test_vertices_of_a_group_wait_for_each_other_and_other_groups_do_not() -> None:
    group = alignment(v=1, w=1, x=1)
    group.report(subtask(0, "v"), said(500))
    assert group.report(subtask(0, "w"), said(40))[0] == 40
    assert group.report(subtask(0, "x"), said(7, group="other")) == (7, (subtask(0, "x"),))
