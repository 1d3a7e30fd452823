"""A heartbeat says that a TaskManager lives, whatever becomes of its figures."""

from __future__ import annotations

import pytest

from understudy.actors.job_manager.task_manager_links import _readable, _with_remedy
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


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("failed: RuntimeError: can't start new thread", "so this user may have no more threads"),
        ("failed: MemoryError: ", "so this TaskManager gets no more memory"),
        ("failed: OSError: [Errno 24] Too many open files", "ulimit -n"),
        ("failed: KeyError: 'x'", ""),
        ("unreachable: the connection broke", ""),
    ],
)
def test_a_taskmanager_that_ran_out_of_something_is_lost_with_what_to_do(reason: str, remedy: str) -> None:
    said = _with_remedy(reason)
    assert said.startswith(reason)
    assert remedy in said
    assert bool(remedy) == (said != reason)
