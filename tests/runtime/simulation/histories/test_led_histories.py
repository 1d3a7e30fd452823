"""Led histories: leaders die in each of their moments, which is read from what happened, and the output is exact."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import pytest
from click.testing import CliRunner

from understudy.runtime.simulation.histories import led_history
from understudy.runtime.simulation.histories.led_course import KillMoment
from understudy.runtime.simulation.histories.led_history import MOMENTS, LedVerdict, judge_led

FEW = 6 * len(MOMENTS)


@lru_cache(maxsize=1)
def verdicts() -> list[LedVerdict]:
    return [judge_led(seed) for seed in range(FEW)]


def test_leaders_die_in_each_moment_and_the_output_is_exact() -> None:
    found = Counter(moment for verdict in verdicts() for moment in verdict.moments)
    assert [(verdict.seed, verdict.violations) for verdict in verdicts() if verdict.violations] == []
    assert {moment: count for moment, count in found.items() if count < 2} == {}
    assert set(found) == set(KillMoment)


def test_a_led_history_is_the_same_each_time() -> None:
    assert [judge_led(seed) for seed in range(4)] == verdicts()[:4]


def test_who_runs_them_counts_the_moments_and_says_how_many_were_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(led_history.main, ["--histories", "8"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "8 led histories, 8 exact")
    assert all(moment.value in done.output for moment in MOMENTS)
    monkeypatch.setattr(led_history, "EXPECTED", [])
    wrong = CliRunner().invoke(led_history.main, ["--histories", "1"])
    assert (wrong.exit_code, wrong.output.splitlines()[-1]) == (1, "1 led histories, 0 exact")
    assert "seed 0: " in wrong.output


@pytest.mark.slow
def test_so_it_is_in_a_thousand() -> None:
    found: Counter[KillMoment] = Counter()
    for seed in range(1_000):
        verdict = judge_led(seed)
        assert not verdict.violations, verdict
        found.update(verdict.moments)
    assert min(found[moment] for moment in MOMENTS) >= 30
