"""Flink's onTimer gets a number: an `on_timer` that takes its timer for one is warned of where the stream is built."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from understudy import KeyedOperator, StreamEnvironment, ValueState
from understudy.actors.remedies import remedy


class CountWithTimeout(KeyedOperator):
    """Flink's own example: without a warning it never gives a result."""

    last = ValueState(int)

    def process(self, record: Any, out: Any) -> None:
        self.last.update(self.timestamp)
        self.timers.at_event_time(self.timestamp + 60_000)

    def on_timer(self, timestamp: Any, out: Any) -> None:
        if timestamp == (self.last.value() or 0) + 60_000:
            out.collect(self.key)


class Inner(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        if [each for each in (1, 2) if each < ts]:
            out.collect(self.key)


class Derived(CountWithTimeout):
    pass


class WithTime(CountWithTimeout):
    def on_timer(self, timestamp: Any, out: Any) -> None:
        if timestamp.time_ms == self.last.value():
            out.collect(self.key)


class Unused(CountWithTimeout):
    def on_timer(self, timestamp: Any, out: Any) -> None:
        out.collect(self.key)


class Deleted(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        self.timers.delete(ts)


class Unpacked(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        at, domain, _ = ts
        out.collect((at + 1, domain))


class ByItsPlace(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        out.collect(ts[0] + 1)


class OfItsNamespace(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        if ts.namespace == "x":
            out.collect(self.key)


class HandedOn(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        if len(ts) + self.due(1, ts) > self.due(ts, 2):
            out.collect(self.key)

    def due(self, *parts: Any) -> int:
        return len(parts)


class MadeATime(CountWithTimeout):
    def on_timer(self, timestamp: Any, out: Any) -> None:
        timestamp = timestamp[0]
        if timestamp > 5:
            out.collect(self.key)


class OfAnotherName(CountWithTimeout):
    def on_timer(self, timestamp: Any, out: Any) -> None:
        later = sorted([3, 1], key=lambda timestamp: timestamp + 1)
        if self.timestamp > 5 and later[0] == "timestamp":
            out.collect(timestamp)


class Asked(CountWithTimeout):
    def on_timer(self, time: Any, out: Any) -> None:
        if time is not None:
            out.collect(f"{time}")


class Later(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        self.timers.at_event_time(ts + 60_000)


class OnTheRight(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        out.collect((self.last.value() or 0) - ts)


class Between(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        if 0 < ts <= max(self.last.value() or 0, 5):
            out.collect(self.key)


class AmongThem(CountWithTimeout):
    def on_timer(self, ts: Any, out: Any) -> None:
        if ts in {1, 2}:
            out.collect(-ts)


class OfATimer(CountWithTimeout):
    def on_timer(self, timer: Any, out: Any) -> None:
        self.timers.delete(timer)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            CountWithTimeout,
            "CountWithTimeout.on_timer uses 'timestamp' as a time: it is a KeyedTimer, which equals no n",
        ),
        (Inner, "whose time is ts.time_ms, in milliseconds"),
        (Derived, "Derived.on_timer uses 'timestamp' as a time"),
        (WithTime, ""),
        (Unused, ""),
        (OfATimer, ""),
        *((kind, "") for kind in (Deleted, Unpacked, ByItsPlace, OfItsNamespace, HandedOn, MadeATime)),
        *((kind, "") for kind in (OfAnotherName, Asked)),
        *((kind, "on_timer uses 'ts' as a time") for kind in (Later, OnTheRight, Between, AmongThem)),
    ],
)
def test_one_that_takes_its_timer_for_a_time_is_warned_of(
    kind: type[KeyedOperator], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        StreamEnvironment().from_collection([1]).key_by(str).process(kind)
    assert said in caplog.text
    assert bool(said) == ("as a time" in caplog.text)


def test_an_error_of_one_says_where_its_time_is() -> None:
    error = TypeError("'>' not supported between instances of 'KeyedTimer' and 'int'")
    assert remedy(error) == "the time of a timer is timer.time_ms, in milliseconds"
