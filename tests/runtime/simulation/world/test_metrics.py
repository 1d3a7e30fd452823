"""Metrics and samples in the simulator: virtual time, and the same figures each time."""

from __future__ import annotations

import pytest

from understudy import JobMetrics
from understudy.actors.ask_errors import NotRunning
from understudy.actors.tasks import task_manager
from understudy.messages import VertexBackPressureReport
from understudy.runtime.simulation.world.cluster import SimulatedCluster

from .test_cluster import counting


def played(seed: int) -> tuple[VertexBackPressureReport, JobMetrics, float]:
    with SimulatedCluster(2, seed=seed) as cluster:
        job = cluster.submit(counting(records=1_000), "job")
        cluster.run_for(2_000)
        report = job.back_pressure("count")
        return report, job.metrics(), cluster.now_ms


def test_samples_take_virtual_time_and_the_figures_are_the_same_each_time() -> None:
    report, metrics, now_ms = played(7)
    assert (report.status, report.level, len(report.subtasks)) == ("ok", "ok", 2)
    assert now_ms > 2_000 + 99 * 50
    assert metrics.vertex("count").values["numRecordsIn"] > 0
    assert metrics.vertices[0].values["numRecordsOutPerSecond"] == pytest.approx(10, abs=2)
    again_report, again, _ = played(7)
    assert again_report.subtasks == report.subtasks
    assert [each.values for each in again.vertices] == [each.values for each in metrics.vertices]


def test_a_heartbeat_has_the_figures_of_some_tasks_and_all_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_manager, "METRICS_PER_BEAT", 2)
    with SimulatedCluster(1, 2, heartbeat_interval_ms=500) as cluster:
        job = cluster.submit(counting(records=1_000), "job")
        cluster.run_for(3_000)
        before = job.details().tasks
        cluster.run_for(1_000)
        assert len(before) > task_manager.METRICS_PER_BEAT
        after = {each.attempt_id: each.clock_ms for each in job.details().tasks}
        assert all(after[each.attempt_id] > each.clock_ms for each in before)
        assert len(set(after.values())) > 1, "not all with the same beat"


def test_figures_stay_after_the_jobs_end_and_samples_do_not_begin() -> None:
    with SimulatedCluster(1) as cluster:
        job = cluster.submit(counting())
        job.wait(timeout=60)
        metrics = job.metrics()
        assert metrics.vertex("count").values["numRecordsIn"] == 20
        assert metrics.values["numberOfCompletedCheckpoints"] > 0
        with pytest.raises(NotRunning, match="none of its tasks runs; the job is finished"):
            job.back_pressure("count")
        assert job.back_pressure("count", wait=False).status == "deprecated"
