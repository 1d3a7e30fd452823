"""Histories of jobs that records are sent into: what was acknowledged is there, once and in order."""

from __future__ import annotations

import pytest

from understudy.runtime.simulation.histories.mix import standard_history
from understudy.runtime.simulation.histories.verdict import judge


@pytest.mark.parametrize("topology", ["inlet", "inlet-columns"])
def test_nothing_that_was_acknowledged_is_lost_or_comes_twice(topology: str) -> None:
    """Seed 11: a batch of which a part was there already. Seed 211: the next number was a killed process's."""
    for seed in (*range(6), 11, 211):
        assert judge(standard_history(seed, topology)).violations == (), seed
