"""Histories of a keyed stream with a broadcast one beside it; barriers overtake what is in flight in every second."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.runtime.simulation.histories.history import run_history
from understudy.runtime.simulation.histories.scenario import Scenario

FEW, MANY = range(12), range(12, 300)


def ruled(seed: int) -> Scenario:
    scenario = Scenario.of(seed, "ruled")
    return replace(scenario, workload=replace(scenario.workload, alignment_timeout_ms=100 if seed % 2 else None))


@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)])
def test_each_number_meets_each_rule_once(seed: int) -> None:
    outcome = run_history(ruled(seed))
    assert outcome.violations == (), ruled(seed).as_python()
