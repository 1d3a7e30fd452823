"""Restart strategies against Flink's tests, on a virtual clock."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.restart_strategy import (
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    choose_strategy,
    make_restart_strategy,
)
from understudy.messages import RestartStrategyConfig, RestartStrategyKind

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "restart_strategies.json").read_text())

SETTINGS = {
    "attempts": "attempts",
    "delay_ms": "delay_ms",
    "max_failures": "max_failures_per_interval",
    "interval_ms": "failure_rate_interval_ms",
    "initial_ms": "initial_backoff_ms",
    "max_ms": "max_backoff_ms",
    "multiplier": "backoff_multiplier",
    "reset_ms": "reset_backoff_threshold_ms",
    "jitter": "jitter_factor",
}
"""The vectors' names for the fields of RestartStrategyConfig."""

JOB_CHOICES = {
    "none given": None,
    "none": RestartStrategyConfig(RestartStrategyKind.NONE),
    "execution retries 42, delay 1337 ms": RestartStrategyConfig(
        RestartStrategyKind.FIXED_DELAY, attempts=42, delay_ms=1337
    ),
    "fixed-delay 1 x 1000 ms": RestartStrategyConfig(RestartStrategyKind.FIXED_DELAY, attempts=1),
    "failure-rate 1 / 1000 ms / 1000 ms": RestartStrategyConfig(
        RestartStrategyKind.FAILURE_RATE, failure_rate_interval_ms=1000
    ),
}


def config_of(described: dict[str, Any]) -> RestartStrategyConfig:
    settings = {SETTINGS[name]: value for name, value in described.items() if name != "type"}
    return RestartStrategyConfig(RestartStrategyKind(described["type"]), **settings)


@pytest.mark.parametrize("scenario", VECTORS["scenarios"], ids=lambda scenario: scenario["name"])
@pytest.mark.parametrize("seed", range(5))
def test_scenario_restarts_as_flink_does(scenario: dict[str, Any], seed: int) -> None:
    strategy = make_restart_strategy(config_of(scenario["strategy"]), random.Random(seed))
    for step in scenario["steps"]:
        if step.get("before_any_failure"):
            assert isinstance(strategy, ExponentialDelay)
            assert [strategy.backoff_ms] == step["delay_ms_in"]
            continue
        now_ms = step["fail_at_ms"]
        assert strategy.can_restart(now_ms) == strategy.can_restart(now_ms) == step["restart"]
        assert strategy.on_failure(now_ms) in step.get("delay_ms_in", [step.get("delay_ms")])


@pytest.mark.parametrize("invalid", VECTORS["invalid_settings"], ids=str)
def test_invalid_setting_is_refused_with_what_was_found_and_wanted(invalid: dict[str, Any]) -> None:
    (setting,) = (SETTINGS[name] for name in invalid if name != "type")
    with pytest.raises(ValueError, match=rf"{setting} is \S+; wanted "):
        make_restart_strategy(config_of(invalid), random.Random(0))


@pytest.mark.parametrize("choice", VECTORS["strategy_selection"], ids=str)
def test_the_job_chooses_before_the_cluster(choice: dict[str, Any]) -> None:
    cluster = None if choice.get("cluster") == "none given" else choice.get("cluster")
    expect = choice["expect"]

    def choose() -> RestartStrategyConfig:
        return choose_strategy(JOB_CHOICES[choice["job"]], cluster, choice.get("checkpointing", True))

    if expect == "error":
        with pytest.raises(ValueError, match="unknown restart strategy 'invalid-strategy'; wanted one of none, "):
            choose()
    elif isinstance(expect, dict):
        assert choose() == config_of(expect)
    else:
        assert choose().kind.value == expect


def test_a_job_with_checkpoints_and_no_choice_is_always_restarted() -> None:
    chosen = choose_strategy(None, None, checkpointing=True)
    assert chosen == RestartStrategyConfig(RestartStrategyKind.EXPONENTIAL_DELAY)


def test_a_cluster_may_give_settings_or_a_name_with_flinks_defaults() -> None:
    settings = RestartStrategyConfig(RestartStrategyKind.FIXED_DELAY, attempts=7)
    assert choose_strategy(None, settings, checkpointing=False) is settings
    assert choose_strategy(None, "fixed-delay", checkpointing=True).attempts == 1


@given(
    failures=st.lists(st.integers(0, 30), max_size=40), max_failures=st.integers(1, 4), interval_ms=st.integers(1, 20)
)
def test_a_failure_is_final_if_it_is_not_more_than_the_interval_after_the_one_max_failures_before(
    failures: list[int], max_failures: int, interval_ms: int
) -> None:
    times = [sum(failures[: index + 1]) for index in range(len(failures))]
    strategy = FailureRate(max_failures, interval_ms, delay_ms=3)
    for index, now_ms in enumerate(times):
        is_final = index >= max_failures and now_ms - times[index - max_failures] <= interval_ms
        assert strategy.on_failure(now_ms) == (None if is_final else 3)


@given(attempts=st.integers(0, 5), questions=st.integers(0, 3))
def test_asking_uses_up_no_attempt(attempts: int, questions: int) -> None:
    strategy = FixedDelay(attempts, delay_ms=0)
    for _ in range(attempts):
        assert all(strategy.can_restart(0) for _ in range(questions))
        assert strategy.on_failure(0) == 0
    assert strategy.on_failure(0) is None


@given(seed=st.integers(), gaps=st.lists(st.integers(0, 100_000), max_size=30))
def test_exponential_delay_stays_between_the_jittered_initial_and_the_maximum(seed: int, gaps: list[int]) -> None:
    strategy = ExponentialDelay(100, 5000, 1.5, 60_000, 0.1, random=random.Random(seed), started_ms=1e9)
    now_ms = 1e9
    for gap_ms in gaps:
        now_ms += gap_ms
        delay_ms = strategy.on_failure(now_ms)
        assert delay_ms is not None
        assert 90 <= delay_ms <= 5000
        assert abs(delay_ms - strategy.backoff_ms) <= strategy.backoff_ms * 0.1
