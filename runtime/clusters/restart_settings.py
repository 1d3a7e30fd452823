"""The restart strategy of jobs whose programs name none, as a cluster's configuration has it.

    restart-strategy.type                           none | fixed-delay | failure-rate | exponential-delay

    restart-strategy.fixed-delay.attempts           1
    restart-strategy.fixed-delay.delay-ms           1000
    restart-strategy.failure-rate.max-failures-per-interval     1
    restart-strategy.failure-rate.failure-rate-interval-ms      60000
    restart-strategy.failure-rate.delay-ms          1000
    restart-strategy.exponential-delay.initial-backoff-ms       1000
    restart-strategy.exponential-delay.max-backoff-ms           60000
    restart-strategy.exponential-delay.backoff-multiplier       1.5
    restart-strategy.exponential-delay.reset-backoff-threshold-ms   3600000
    restart-strategy.exponential-delay.jitter-factor            0.1
    restart-strategy.exponential-delay.attempts-before-reset-backoff   no limit

The strategy of a program comes first; without either, a job is restarted if it has checkpoints. Values are those of
Flink 2, in milliseconds. Flink: RestartStrategyOptions, RestartBackoffTimeStrategyFactoryLoader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...messages import RestartStrategyConfig, RestartStrategyKind
from ..api.errors import InvalidSetting
from ..api.restart import exponential_delay, failure_rate, fixed_delay, no_restart

TYPE = "restart-strategy.type"
TYPES = tuple(each.value for each in RestartStrategyKind)


@dataclass(frozen=True, slots=True)
class _Strategy:
    make: Callable[..., RestartStrategyConfig]
    arguments: Mapping[str, tuple[str, type[int] | type[float]]]
    """By the last part of the key: the argument, and what it is."""
    usual: Mapping[str, Any]
    """Of arguments that programs have to give."""


_STRATEGIES = {
    "none": _Strategy(no_restart, {}, {}),
    "fixed-delay": _Strategy(
        fixed_delay, {"attempts": ("attempts", int), "delay-ms": ("delay_ms", int)}, {"attempts": 1}
    ),
    "failure-rate": _Strategy(
        failure_rate,
        {
            "max-failures-per-interval": ("max_failures", int),
            "failure-rate-interval-ms": ("interval_ms", int),
            "delay-ms": ("delay_ms", int),
        },
        {"max_failures": 1},
    ),
    "exponential-delay": _Strategy(
        exponential_delay,
        {
            "initial-backoff-ms": ("initial_ms", int),
            "max-backoff-ms": ("max_ms", int),
            "backoff-multiplier": ("multiplier", float),
            "reset-backoff-threshold-ms": ("reset_after_ms", int),
            "jitter-factor": ("jitter", float),
            "attempts-before-reset-backoff": ("attempts", int),
        },
        {},
    ),
}
RESTART_NUMBERS = tuple(
    f"restart-strategy.{name}.{option}" for name, each in _STRATEGIES.items() for option in each.arguments
)
"""Keys whose values are numbers."""
RESTART_KEYS = (TYPE, *RESTART_NUMBERS)


def restart_strategy_of(config: Mapping[str, str]) -> RestartStrategyConfig | None:
    """None: the cluster has none. Keys of others are passed over, and those of strategies that are not chosen. Raises
    ValueError, with what was found and what was wanted.
    """
    given = [key for key in config if key in RESTART_NUMBERS]
    if TYPE not in config:
        if given:
            raise ValueError(
                f"{given[0]} is set, and {TYPE} is not, so nothing would use it: set {TYPE} to {given[0].split('.')[1]}"
            )
        return None
    if (chosen := _STRATEGIES.get(config[TYPE])) is None:
        raise ValueError(f"{TYPE} must be one of {', '.join(TYPES)}, found {config[TYPE]!r}")
    arguments = dict(chosen.usual)
    keys = {}
    for option, (argument, kind) in chosen.arguments.items():
        key = keys[argument] = f"restart-strategy.{config[TYPE]}.{option}"
        if key in config:
            arguments[argument] = _number(key, config[key], kind)
    try:
        return chosen.make(**arguments)
    except InvalidSetting as error:
        named = re.sub(rf"\b({'|'.join(keys)})\b", lambda found: keys[found[1]], str(error))
        raise ValueError(named) from error


def _number(key: str, text: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{key} must be {wanted}, found {text!r}") from None
