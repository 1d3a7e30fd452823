"""Histories that nobody has run before: the seeds are drawn from the clock, printed, and named when one fails."""

from __future__ import annotations

import os
import time

import pytest

from understudy.runtime.simulation.histories.campaign import Plan, run_campaign

VARIABLE = "UNDERSTUDY_SIMULATE_SEED"


@pytest.mark.parametrize("histories", [30, pytest.param(1_000, marks=pytest.mark.slow)])
def test_fresh_histories_break_no_oracle(capsys: pytest.CaptureFixture[str], histories: int) -> None:
    first_seed = int(os.environ.get(VARIABLE) or time.time_ns() % 1_000_000_000)
    with capsys.disabled():
        print(f"\n{histories} histories from seed {first_seed} (set {VARIABLE} to repeat them)", end=" ", flush=True)
    figures = run_campaign(Plan(first_seed, histories))
    for failed in figures.failed:
        seed = failed.scenario.seed
        pytest.fail(f"{failed.broken}\n{failed.traceback}python -m understudy simulate --seed {seed}", pytrace=False)
    assert figures.histories == histories
