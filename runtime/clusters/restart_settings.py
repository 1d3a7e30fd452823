"""The restart strategy of jobs whose programs name none, as a cluster's configuration has it: the table of its keys.

`restart-strategy.type` is one of the kinds; each kind has options of its own, such as
`restart-strategy.fixed-delay.attempts`. Without an option the default of its function in `api/restart` holds.

The strategy of a program comes first; without either, a job is restarted if it has checkpoints. Values are those of
Flink 2, in milliseconds. Flink: RestartStrategyOptions, RestartBackoffTimeStrategyFactoryLoader.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...actors.setting_limits import most_of
from ...messages import RestartStrategyConfig, RestartStrategyKind
from ..api.errors import InvalidSetting
from ..api.restart import exponential_delay, failure_rate, fixed_delay, no_restart
from .setting_kinds import Number, Whole, WrongValue

TYPE = "restart-strategy.type"
TYPES = tuple(each.value for each in RestartStrategyKind)
MAKERS: Mapping[str, Callable[..., RestartStrategyConfig]] = {
    "none": no_restart,
    "fixed-delay": fixed_delay,
    "failure-rate": failure_rate,
    "exponential-delay": exponential_delay,
}
"""By type."""
_USUAL = {"attempts": 1, "max_failures": 1}
"""Of arguments that programs have to give."""


@dataclass(frozen=True, slots=True)
class RestartOption:
    """One row of the table."""

    key: str
    argument: str
    """Of the type's function in `api/restart`."""
    kind: Whole | Number
    text: str
    """What it means, in a line."""

    @property
    def type(self) -> str:
        """The strategy that it is an option of."""
        return self.key.split(".")[1]

    @property
    def default(self) -> Any:
        """What holds without it."""
        usual = inspect.signature(MAKERS[self.type]).parameters[self.argument].default
        return _USUAL[self.argument] if usual is inspect.Parameter.empty else usual


def _option(key: str, argument: str, least: int | Number, text: str) -> RestartOption:
    kind = Whole(least, most_of(argument)) if isinstance(least, int) else least
    return RestartOption(f"restart-strategy.{key}", argument, kind, text)


_OPTIONS = (
    _option("fixed-delay.attempts", "attempts", 0, "Restarts in the life of a job."),
    _option("fixed-delay.delay-ms", "delay_ms", 0, "Delay before each."),
    _option("failure-rate.max-failures-per-interval", "max_failures", 1, "More of them end the job."),
    _option("failure-rate.failure-rate-interval-ms", "interval_ms", 1, "That interval."),
    _option("failure-rate.delay-ms", "delay_ms", 0, "Delay before each restart."),
    _option("exponential-delay.initial-backoff-ms", "initial_ms", 1, "The first delay."),
    _option("exponential-delay.max-backoff-ms", "max_ms", 1, "The longest one."),
    _option(
        "exponential-delay.backoff-multiplier", "multiplier", Number(1.0, 1e12, is_above=True), "How a delay grows."
    ),
    _option(
        "exponential-delay.reset-backoff-threshold-ms",
        "reset_after_ms",
        1,
        "After so long without a failure the delay is the first one again.",
    ),
    _option("exponential-delay.jitter-factor", "jitter", Number(0.0, 1.0), "Share by which a delay varies."),
    _option(
        "exponential-delay.attempts-before-reset-backoff",
        "attempts",
        0,
        "Restarts with growing delay, before the job ends.",
    ),
)
RESTART_OPTIONS: Mapping[str, RestartOption] = {each.key: each for each in _OPTIONS}
"""By key. Their values are numbers."""
RESTART_KEYS = (TYPE, *RESTART_OPTIONS)


def restart_strategy_of(config: Mapping[str, str]) -> RestartStrategyConfig | None:
    """None: the cluster has none. Keys of others are passed over, and those of strategies that are not chosen. Raises
    ValueError, with what was found and what was wanted.
    """
    given = [option for key, option in RESTART_OPTIONS.items() if key in config]
    if TYPE not in config:
        if given:
            key, kind = given[0].key, given[0].type
            raise ValueError(f"{key} is set, and {TYPE} is not, so nothing would use it: set {TYPE} to {kind}")
        return None
    if (make := MAKERS.get(config[TYPE])) is None:
        raise ValueError(f"{TYPE} must be one of {', '.join(TYPES)}, found {config[TYPE]!r}")
    options = {each.argument: each for each in RESTART_OPTIONS.values() if each.type == config[TYPE]}
    try:
        return make(**{name: _value(each, config) for name, each in options.items()})
    except InvalidSetting as error:
        named = re.sub(r"\w+", lambda word: options[word[0]].key if word[0] in options else word[0], str(error))
        raise ValueError(named) from error


def _value(option: RestartOption, config: Mapping[str, str]) -> int | float:
    if option.key not in config:
        default: int | float = option.default
        return default
    try:
        return option.kind.parse(config[option.key])
    except WrongValue as error:
        raise ValueError(f"{option.key} must be {error}, found {config[option.key]!r}") from None
