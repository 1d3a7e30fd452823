"""restart_strategies.json: each strategy on a virtual clock, which one a job gets, and which settings are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from understudy.actors.jobs.restart_strategy import ExponentialDelay, make_restart_strategy
from understudy.messages import RestartStrategyConfig, RestartStrategyKind
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.restart import exponential_delay, failure_rate, fixed_delay, no_restart
from understudy.runtime.api.translation import translate
from understudy.runtime.clusters.configuration import Configuration, InvalidConfiguration
from understudy.runtime.clusters.restart_settings import TYPE

from .scenario import REMARKS, Difference, Scenario, Skipped, UnknownWord, Words, compare, said, scenarios_of

KEYS = frozenset({"strategy", "strategy_selection", "invalid_settings", "config_defaults", "fail_at_ms"})
"""Words that only this schema has."""

SEEDS = range(5)
"""A delay with jitter is drawn anew for each."""

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
"""The file's names for the fields of RestartStrategyConfig."""

OPTIONS = {
    "attempts": "attempts",
    "delay": "delay_ms",
    "max-failures-per-interval": "max_failures_per_interval",
    "failure-rate-interval": "failure_rate_interval_ms",
    "initial-backoff": "initial_backoff_ms",
    "max-backoff": "max_backoff_ms",
    "backoff-multiplier": "backoff_multiplier",
    "reset-backoff-threshold": "reset_backoff_threshold_ms",
    "jitter-factor": "jitter_factor",
}
"""Flink's configuration options for the fields of RestartStrategyConfig."""

NONE_GIVEN = "none given"

UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "scenarios", _play)
    yield from scenarios_of(document, "strategy_selection", _select, _choice)
    yield from scenarios_of(document, "invalid_settings", _refuse, str)
    for name, options in document.get("config_defaults", {}).items():
        yield Scenario(f"config_defaults/{name}", lambda name=name, options=options: _defaults(name, options))  # type: ignore[misc]


def config_of(described: Words) -> RestartStrategyConfig:
    settings: Words = {}
    for name, value in said(described).items():
        if name in SETTINGS:
            settings[SETTINGS[name]] = value
        elif name != "type" and name not in REMARKS:
            raise UnknownWord(f"found the setting {name!r}; wanted one of {', '.join(SETTINGS)}")
    return RestartStrategyConfig(RestartStrategyKind(described["type"]), **settings)


def _play(words: Words) -> Iterator[Difference]:
    for seed in SEEDS:
        strategy = make_restart_strategy(config_of(words["strategy"]), random.Random(seed))
        for number, step in enumerate(words["steps"]):
            where = f"step {number}"
            if step.get("before_any_failure"):
                grows = isinstance(strategy, ExponentialDelay)
                delay_ms = strategy.backoff_ms if grows else config_of(words["strategy"]).delay_ms  # type: ignore[attr-defined]
                yield from _compare_delay(where, step, delay_ms)
                continue
            now_ms = step["fail_at_ms"]
            asked = [strategy.can_restart(now_ms) for _ in range(2)]
            yield from compare(f"{where}: restart", [step["restart"]] * 2, asked)
            yield from _compare_delay(where, step, strategy.on_failure(now_ms))


def _compare_delay(where: str, step: Words, found: int | None) -> Iterator[Difference]:
    if "delay_ms_in" in step:
        if found not in step["delay_ms_in"]:
            yield Difference(f"{where}: delay_ms_in", step["delay_ms_in"], found)
    else:
        yield from compare(f"{where}: delay_ms", step.get("delay_ms"), found)


# ------------------------------------------------------------------------------------------------- who decides


def _choice(case: Words) -> str:
    return f"{case['job']}, cluster {case.get('cluster', 'none given')}"


def _select(case: Words) -> Iterator[Difference]:
    given = None if case["job"] == NONE_GIVEN else _of_program(case["job"])
    cluster = said(case).get("cluster", NONE_GIVEN)
    try:
        cluster_has = Configuration.of({} if cluster == NONE_GIVEN else {TYPE: cluster}).restart
    except InvalidConfiguration as error:
        yield from compare("refused", case["expect"], "error" if cluster in str(error) else str(error))
        return
    interval_ms = 1_000 if said(case).get("checkpointing") else None
    env = StreamEnvironment(checkpoint_interval_ms=interval_ms, restart_strategy=given)
    env.from_collection([1]).collect(name="out")
    found = translate(
        env, default_parallelism=1, task_managers=1, work_dir="/checkpoints", restart=cluster_has
    ).graph.restart
    expected = {"type": case["expect"]} if isinstance(case["expect"], str) else case["expect"]
    yield from compare("type", expected["type"], found.kind.value)
    for name in expected.keys() - {"type"}:
        yield from compare(name, expected[name], getattr(found, SETTINGS[name]))


def _of_program(text: str) -> RestartStrategyConfig:
    """What a program says, as in "failure-rate 1 / 1000 ms / 1000 ms"; `execution retries` were fixed delays."""
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    kinds = {"none": no_restart, "fixed-delay": fixed_delay, "execution retries": fixed_delay}
    kinds |= {"failure-rate": failure_rate, "exponential-delay": exponential_delay}
    for name, make in kinds.items():
        if text.startswith(name):
            return make(*numbers)
    raise UnknownWord(f"found the strategy {text!r} of a job; wanted one that begins with {', '.join(kinds)}")


# ------------------------------------------------------------------------------------------ settings, defaults


def _refuse(case: Words) -> Iterator[Difference]:
    settings = [SETTINGS[name] for name in case if name in SETTINGS]
    try:
        make_restart_strategy(config_of(case), random.Random(0))
    except ValueError as error:
        if not any(setting in str(error) for setting in settings) or "wanted" not in str(error):
            yield Difference("error text", f"{' or '.join(settings)}, and what was wanted", str(error))
    else:
        yield Difference("refused", True, False)


_USUAL: dict[RestartStrategyKind, Callable[[], RestartStrategyConfig]] = {
    RestartStrategyKind.NONE: no_restart,
    RestartStrategyKind.FIXED_DELAY: lambda: fixed_delay(1),
    RestartStrategyKind.FAILURE_RATE: lambda: failure_rate(1),
    RestartStrategyKind.EXPONENTIAL_DELAY: exponential_delay,
}
_ALWAYS_SAID = frozenset({"attempts", "max-failures-per-interval"})
"""Settings that programs must give: they have no default here."""


def _defaults(name: str, options: Words) -> Iterator[Difference]:
    kind, _, release = name.partition("_")
    if release and release != "2_3":
        raise Skipped(f"defaults of {name}: ours are those of 2.3")
    config = _USUAL[RestartStrategyKind(kind)]()
    for option, value in options.items():
        if option in _ALWAYS_SAID:
            continue
        if option == "attempts-before-reset-backoff":
            yield from compare(option, value, 2**31 - 1)  # ours has no limit
        elif option not in OPTIONS:
            raise UnknownWord(f"no setting is known for {option!r}")
        else:
            yield from compare(option, _in_ms(value), getattr(config, OPTIONS[option]))


def _in_ms(value: str | float) -> float:
    """`"5 min"`, or a plain number; what stands in parentheses behind it is about older releases."""
    if not isinstance(value, str):
        return value
    found = re.match(r"(\d+) ?(ms|s|min|h)\b", value)
    if found is None:
        raise UnknownWord(f"found the duration {value!r}; wanted one like '5 min'")
    return int(found[1]) * UNITS_MS[found[2]]
