"""The restart strategy of a cluster, for jobs whose programs name none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy import (
    InvalidSettings,
    LocalCluster,
    StandaloneCluster,
    StreamEnvironment,
    exponential_delay,
    failure_rate,
    fixed_delay,
    no_restart,
)
from understudy.messages import RestartStrategyConfig
from understudy.runtime.clusters.configuration import Configuration, InvalidConfiguration
from understudy.runtime.hosts.settings_sources import load_settings
from understudy.runtime.system import CurveKeys

TYPE = "restart-strategy.type"
FIXED = "restart-strategy.fixed-delay"
RATE = "restart-strategy.failure-rate"
GROWING = "restart-strategy.exponential-delay"


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({}, None),
        ({TYPE: "none"}, no_restart()),
        ({TYPE: "fixed-delay"}, fixed_delay(1)),
        ({TYPE: "fixed-delay", f"{FIXED}.attempts": 3, f"{FIXED}.delay-ms": "0"}, fixed_delay(3, 0)),
        (
            {
                TYPE: "failure-rate",
                f"{RATE}.max-failures-per-interval": 2,
                f"{RATE}.failure-rate-interval-ms": 5_000,
                f"{RATE}.delay-ms": 7,
            },
            failure_rate(2, 5_000, 7),
        ),
        ({TYPE: "exponential-delay"}, exponential_delay()),
        (
            {
                TYPE: "exponential-delay",
                f"{GROWING}.initial-backoff-ms": 10,
                f"{GROWING}.max-backoff-ms": 20,
                f"{GROWING}.backoff-multiplier": 1.25,
                f"{GROWING}.reset-backoff-threshold-ms": 30,
                f"{GROWING}.jitter-factor": 0,
                f"{GROWING}.attempts-before-reset-backoff": 4,
                f"{FIXED}.attempts": 9,
            },
            exponential_delay(10, 20, 1.25, 30, 0, 4),
        ),
    ],
)
def test_the_keys_are_those_of_flink(config: dict[str, Any], strategy: RestartStrategyConfig | None) -> None:
    assert Configuration.of(config).restart == strategy
    assert load_settings(None, {key: str(value) for key, value in config.items()}, {}).settings.restart == strategy


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            {TYPE: "fixed"},
            f"{TYPE} must be one of none, fixed-delay, failure-rate, exponential-delay, found 'fixed'",
        ),
        (
            {f"{FIXED}.attempts": 3},
            f"{FIXED}.attempts is set, and {TYPE} is not, so nothing would use it: set {TYPE} to fixed-delay",
        ),
        ({TYPE: "fixed-delay", f"{FIXED}.attempts": "x"}, f"{FIXED}.attempts must be a whole number, found 'x'"),
        ({TYPE: "fixed-delay", f"{FIXED}.delay-ms": 1.5}, f"{FIXED}.delay-ms must be a whole number, found '1.5'"),
        ({TYPE: "fixed-delay", f"{FIXED}.attempts": -1}, f"{FIXED}.attempts: wanted .*, found -1"),
        (
            {TYPE: "exponential-delay", f"{GROWING}.max-backoff-ms": 5},
            rf"{GROWING}.max-backoff-ms: wanted at least {GROWING}.initial-backoff-ms \(1000\), found 5",
        ),
        ({f"{FIXED}.delay": "10 s"}, f"unknown configuration key '{FIXED}.delay'; did you mean '{FIXED}.delay-ms'"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(config: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=text):
        Configuration.of(config)


def test_a_setting_of_hosts_that_nothing_would_use_is_refused_too() -> None:
    with pytest.raises(InvalidSettings, match=f"{FIXED}.attempts is set, and {TYPE} is not, .* to fixed-delay"):
        load_settings(None, {f"{FIXED}.attempts": "3"}, {})


@pytest.mark.parametrize("checkpoint_interval_ms", [None, 1_000])
def test_what_a_program_says_comes_before_its_cluster(checkpoint_interval_ms: int | None) -> None:
    def strategy(config: dict[str, Any], given: RestartStrategyConfig | None) -> RestartStrategyConfig:
        env = StreamEnvironment(checkpoint_interval_ms=checkpoint_interval_ms, restart_strategy=given)
        env.from_collection([1]).collect(name="out")
        return LocalCluster(config=config).translate(env).graph.restart

    cluster = {TYPE: "fixed-delay", f"{FIXED}.attempts": 5}
    assert strategy(cluster, None) == fixed_delay(5)
    assert strategy(cluster, no_restart()) == no_restart()
    assert strategy({TYPE: "none"}, None) == no_restart()
    usual = no_restart() if checkpoint_interval_ms is None else exponential_delay(initial_ms=200)
    assert strategy({}, None) == usual


def test_who_submits_to_hosts_reads_it_in_their_settings(tmp_path: Path) -> None:
    CurveKeys.generate().save(tmp_path / "key")
    file = tmp_path / "understudy.yaml"
    file.write_text(f"security.key-file: key\nstorage.dir: shared\n{TYPE}: fixed-delay\n{FIXED}.attempts: 5\n")
    env = StreamEnvironment()
    env.from_collection([1]).collect(name="out")
    assert StandaloneCluster(file)._translated(env, "job", None).graph.restart == fixed_delay(5)
