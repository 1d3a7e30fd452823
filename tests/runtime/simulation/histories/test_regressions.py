"""Bugs of the product that histories found, where no smaller test shows them. See docs/bugs-found.md."""

from __future__ import annotations

import asyncio

import pytest

from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.world import world_cluster as simulated
from understudy.testing import Scenario, run_history

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


def test_a_savepoint_that_was_under_way_when_the_final_checkpoint_completed_is_no_trouble() -> None:
    assert run_history(standard_history(2_103_913, "asked")).violations == ()
