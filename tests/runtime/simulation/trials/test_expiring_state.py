"""State that expires by event time, in simulated failures: whatever is restored is as old as it was."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import (
    Collector,
    KeyedOperator,
    KeyedTimer,
    MapState,
    StreamEnvironment,
    Ttl,
    ValueState,
    bounded_out_of_orderness,
)
from understudy.state.backends.expiring_state import ExpiringState
from understudy.testing import assert_exactly_once

COUNT, TTL_MS = 60, 100
HISTORIES = 15


class Remembered(KeyedOperator):
    """Says just before the TTL has passed, and then, what it remembers of the one record of its key."""

    value = ValueState(int, ttl=Ttl(TTL_MS, clock="event"))
    entries = MapState(str, int, ttl=Ttl(TTL_MS, clock="event"))

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.value.update(record["at"])
        self.entries.put("at", record["at"])
        self.timers.at_event_time(record["at"] + TTL_MS - 1)
        self.timers.at_event_time(record["at"] + TTL_MS)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((timer.time_ms, self.value.value(), self.entries.get("at")))


def build() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=500, batch_rows=3)
    records = [{"user": f"user {number}", "at": 20 * (number ^ 1)} for number in range(COUNT)]
    timed = env.from_collection(records, name="records").assign_timestamps("at", bounded_out_of_orderness(40))
    timed.key_by("user").process(Remembered, name="remember").collect(name="out")
    return env


def expected() -> list[tuple[int, int | None, int | None]]:
    times = [20 * number for number in range(COUNT)]
    return [(at + TTL_MS - 1, at, at) for at in times] + [(at + TTL_MS, None, None) for at in times]


def test_what_timers_see_is_exact_in_histories_of_faults() -> None:
    survived = assert_exactly_once(build, expected=expected(), histories=HISTORIES)
    assert survived.recoveries > 0


def test_a_ttl_that_a_restore_resets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = ExpiringState.load

    def as_written_now(state: Any, namespace: Any, keys: Any, values: Any, times: Any, clock: Any) -> None:
        load(state, namespace, keys, values, None, None)

    monkeypatch.setattr(ExpiringState, "load", as_written_now)
    with pytest.raises(AssertionError, match=r"lost: \(100, None, None\)"):
        assert_exactly_once(build, expected=expected(), histories=4 * HISTORIES)
