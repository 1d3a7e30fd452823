"""A heartbeat says that a TaskManager lives, whatever becomes of its figures."""

from __future__ import annotations

import pytest

from understudy.actors.job_manager.task_manager_links import _readable
from understudy.messages import ExecutionAttemptId, Heartbeat, SubtaskIndex, TaskMetrics, VertexId, packed_heartbeat

TASK = TaskMetrics(ExecutionAttemptId("a"), VertexId("v"), "v", SubtaskIndex(0), 1, 2, 3, 4, 5, "running")


def test_figures_are_read_from_a_table_and_as_earlier_releases_say_them() -> None:
    assert _readable(packed_heartbeat("tm", 1, (TASK,), None, True)).metrics == (TASK,)
    assert _readable(Heartbeat("tm", 1, (TASK,))).metrics == (TASK,)


def test_figures_that_cannot_be_read_are_dropped_and_no_task_is_taken_for_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    beat = _readable(Heartbeat("tm-7", 1, metric_table=b"no table"))
    assert beat == Heartbeat("tm-7", 1, is_last_part=False)
    assert "dropped the figures of a heartbeat of tm-7" in caplog.text
