"""The restart strategy of a cluster, for jobs whose programs name none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    InvalidSetting,
    InvalidSettings,
    LocalCluster,
    StandaloneCluster,
    StreamEnvironment,
    exponential_delay,
    failure_rate,
    fixed_delay,
    no_restart,
)
from understudy.actors.setting_limits import MOST_MS
from understudy.messages import RestartStrategyConfig, RestartStrategyKind
from understudy.runtime.clusters.configuration import Configuration, InvalidConfiguration
from understudy.runtime.clusters.restart_settings import MAKERS, RESTART_OPTIONS, RestartOption
from understudy.runtime.clusters.setting_kinds import Whole
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
        ({TYPE: "fixed-delay", f"{FIXED}.attempts": "x"}, f"{FIXED}.attempts must be an integer from 0 .*, found 'x'"),
        (
            {TYPE: "fixed-delay", f"{FIXED}.delay-ms": 1.5},
            f"{FIXED}.delay-ms must be an integer from 0 .*, found '1.5'",
        ),
        ({TYPE: "fixed-delay", f"{FIXED}.attempts": -1}, f"{FIXED}.attempts must be an integer from 0 .*, found '-1'"),
        (
            {TYPE: "exponential-delay", f"{GROWING}.max-backoff-ms": 5},
            rf"{GROWING}.max-backoff-ms: wanted at least {GROWING}.initial-backoff-ms \(1000\), found 5",
        ),
        (
            {TYPE: "exponential-delay", f"{GROWING}.backoff-multiplier": 1},
            rf"{GROWING}.backoff-multiplier must be a number above 1 up to 1e\+12, found '1'",
        ),
        ({f"{FIXED}.delay": "10 s"}, f"unknown configuration key '{FIXED}.delay'; did you mean '{FIXED}.delay-ms'"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(config: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=text):
        Configuration.of(config)


@pytest.mark.parametrize("option", RESTART_OPTIONS.values(), ids=lambda option: option.key)
def test_what_a_key_takes_the_function_takes_and_no_more(option: RestartOption) -> None:
    usual = {each.argument: each.default for each in RESTART_OPTIONS.values() if each.type == option.type}
    if option.argument == "initial_ms":
        usual["max_ms"] = MOST_MS
    elif option.argument == "max_ms":
        usual["initial_ms"] = 1

    def is_taken(value: float) -> bool:
        try:
            MAKERS[option.type](**usual | {option.argument: value})
        except InvalidSetting:
            return False
        return True

    step = 1 if isinstance(option.kind, Whole) else 0.1
    least, most = option.kind.least, option.kind.most
    assert is_taken(least + step)
    assert not is_taken(least - step)
    assert is_taken(least) == (not getattr(option.kind, "is_above", False))
    assert is_taken(most)
    assert not is_taken(most + step)


def test_what_holds_without_an_option_is_the_same_in_the_message() -> None:
    assert fixed_delay(1) == RestartStrategyConfig(RestartStrategyKind.FIXED_DELAY, attempts=1)
    assert failure_rate(1) == RestartStrategyConfig(RestartStrategyKind.FAILURE_RATE)
    assert exponential_delay() == RestartStrategyConfig(RestartStrategyKind.EXPONENTIAL_DELAY)


def test_the_table_in_docs_says_what_holds_without_each_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "failures.md").read_text()
    said = {
        f"restart-strategy.{kind}.{option}": 2**31 - 1 if value == "no limit" else float(value)
        for kind, row in re.findall(r"^\| `([a-z-]+)` \| (`restart-strategy.*) \|$", page, re.MULTILINE)
        for option, value in re.findall(r"`[a-z.-]*\.([a-z-]+)` ([\d.]+|no limit)", row)
    }
    assert said == {key: option.default for key, option in RESTART_OPTIONS.items()}


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
    assert StandaloneCluster(file)._translated(env, "job", None, is_named=False).graph.restart == fixed_delay(5)
