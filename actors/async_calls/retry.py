"""Retry: how often a call that has failed is tried again, and when."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from ...messages.known_names import known_names
from ..setting_limits import limits_in_words, most_of


@known_names
@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after which pauses, a failed call is tried again. Raises ValueError for what makes no sense.

    The pause after the first try is `first_delay_ms`, and each further one `factor` times as long, up to
    `max_delay_ms`. Each is shortened by a random part of at most `jitter`, so that calls that failed together are not
    tried again together. Errors of other classes than `on` are not tried again.
    """

    attempts: int = 3
    """How often a call is tried in all: 1 is no retry."""
    first_delay_ms: float = 100
    factor: float = 2.0
    max_delay_ms: float = 30_000
    jitter: float = 0.2
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        attempts = self.attempts
        _check("attempts", attempts, "a whole number, 1 or more", isinstance(attempts, int) and attempts >= 1)
        _check(
            "attempts", attempts, f"a whole number {limits_in_words('attempts', 1)}", attempts <= most_of("attempts")
        )
        _check_number("first_delay_ms", self.first_delay_ms, "0 or more", 0)
        _check_number("factor", self.factor, "1 or more", 1)
        least = f"first_delay_ms ({self.first_delay_ms}) or more"
        _check_number("max_delay_ms", self.max_delay_ms, least, self.first_delay_ms)
        _check_number("jitter", self.jitter, "0 to 1", 0, 1)
        wanted = "a tuple of exception classes, such as (TimeoutError, ConnectionError)"
        are_classes = isinstance(self.on, tuple) and all(
            isinstance(each, type) and issubclass(each, Exception) for each in self.on
        )
        _check("on", self.on, wanted, are_classes)

    def is_for(self, error: BaseException) -> bool:
        """Whether a call that failed with this may be tried again."""
        return isinstance(error, self.on)

    def delay_ms(self, tries: int, random: random.Random) -> float:
        """The pause after this many tries, 1 or more: at most `max_delay_ms`, in ms."""
        try:
            delay_ms = min(self.first_delay_ms * self.factor ** (tries - 1), self.max_delay_ms)
        except OverflowError:
            delay_ms = self.max_delay_ms if self.first_delay_ms else 0.0
        return delay_ms * (1 - self.jitter * random.random())


def _check_number(name: str, value: Any, wanted: str, least: float, most: float = math.inf) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    _check(name, value, f"a number, {wanted}", is_number and least <= value <= most)
    if name.endswith("_ms"):
        _check(name, value, f"a number {limits_in_words(name, least)}", value <= most_of(name))


def _check(name: str, value: object, wanted: str, is_so: bool) -> None:
    if not is_so or isinstance(value, bool):
        raise ValueError(f"Retry: {name}: wanted {wanted}, found {value!r:.80}")
