"""Bugs of the product that histories found, where no smaller test shows them. See docs/bugs-found.md."""

from __future__ import annotations

import asyncio

import pytest

from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.world import world_cluster as simulated
from understudy.testing import (
    KillProcess,
    PowerFailure,
    RestartFromSavepoint,
    Scenario,
    SlowFiles,
    SlowLink,
    StopWithSavepoint,
    Workload,
    run_history,
)

pytestmark = pytest.mark.every_run


def test_a_task_manager_tells_its_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends while its last task is still stopping, and used to tell again when that one was gone."""
    told_again: list[str] = []

    def settle(ended: asyncio.Future[str], reason: str) -> None:
        if ended.done():
            told_again.append(reason)
        else:
            ended.set_result(reason)

    monkeypatch.setattr(simulated, "_settle", settle)
    for seed in range(10):
        run_history(Scenario.of(seed))
    assert told_again == []


@pytest.mark.parametrize("seed", [900_168, 900_271])
def test_checkpoints_that_are_needed_stay_and_others_are_not_asked_for(seed: int) -> None:
    """After a full checkpoint the next one named files that were gone; and the oracle asked for an old savepoint though
    the job goes back to a newer one, which its user had disposed of.
    """
    assert run_history(standard_history(seed)).violations == ()


def test_a_user_whose_savepoint_fits_no_other_parallelism_keeps_the_old_one() -> None:
    """Data had ended in one of two subtasks. And the TaskManagers of a refused submission are its own alone."""
    assert run_history(standard_history(2_002_258, "asked")).violations == ()


def test_what_an_earlier_attempt_of_a_sink_left_is_removed_for_ever() -> None:
    """Also if the power fails before the sink has written anything."""
    assert run_history(standard_history(2_104_578, "answered")).violations == ()


def test_what_a_sink_removed_before_its_job_ended_does_not_come_back() -> None:
    """Though the power fails when the job has ended, and nobody comes to remove it again."""
    scenario = Scenario(
        seed=1,
        topology="quiet",
        workload=Workload(
            records=3,
            keys=3,
            parallelism=1,
            checkpoint_interval_ms=1_000,
            retain_checkpoints="never",
            inline_threshold_bytes=1_500,
        ),
        task_managers=1,
        faults=(PowerFailure(1_000.0, after_sync="hidden output"), PowerFailure(3_400.0, after_sync="savepoint")),
        actions=(StopWithSavepoint(at_ms=3_000.0), RestartFromSavepoint(at_ms=3_400.0)),
    )
    assert run_history(scenario).violations == ()


def test_a_task_that_is_still_writing_what_is_discarded_has_time_to_remove_it() -> None:
    """As long as its files are slow."""
    workload = Workload(records=42, keys=1, parallelism=1, checkpoint_interval_ms=500, max_concurrent_checkpoints=3)
    slow = SlowFiles(at_ms=4_590.0, for_ms=28.1, who=1, extra_ms=16_507.8)
    assert run_history(Scenario(seed=1, topology="chain", workload=workload, faults=(slow,))).violations == ()


def test_a_source_that_falls_silent_is_waited_for_until_its_one_record_is_there() -> None:
    """Its idleness was judged behind a link that was slower than that took: the record was late then, rightly."""
    scenario = Scenario(
        seed=1_504_269,
        topology="quiet",
        workload=Workload(records=6, keys=1, retain_checkpoints="on_cancellation", inline_threshold_bytes=60),
        faults=(
            SlowLink(at_ms=900.0, for_ms=11_000.0, one=1, other=0, extra_latency_ms=1_256.4),
            KillProcess(at_ms=3_000.0, who=0),
            KillProcess(at_ms=8_000.0, who=1),
        ),
        storage_ms=700.0,
    )
    assert run_history(scenario).violations == ()


def test_a_savepoint_that_was_under_way_when_the_final_checkpoint_completed_is_no_trouble() -> None:
    assert run_history(standard_history(2_103_913, "asked")).violations == ()
