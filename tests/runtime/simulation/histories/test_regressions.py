"""Bugs of the product that histories found, where no smaller test shows them. See docs/bugs-found.md."""

from __future__ import annotations

import asyncio

import pytest

from understudy.runtime.simulation.world import world_cluster as simulated
from understudy.testing import Scenario, run_history


def test_a_task_manager_tells_its_end_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends while its last task is still stopping, and used to tell again when that one was gone."""
    told_again: list[str] = []

    def settle(ended: asyncio.Future[str], reason: str) -> None:
        if ended.done():
            told_again.append(reason)
        else:
            ended.set_result(reason)

    monkeypatch.setattr(simulated, "_settle", settle)
    for seed in range(20):
        run_history(Scenario.of(seed))
    assert told_again == []
