"""Timers: what the first of them are held against is not asked for later ones."""

from __future__ import annotations

from understudy.actors.operators.timers import Timers
from understudy.state import HeapBackend

NOW = 1_700_000_000_000


def test_event_time_is_asked_for_until_a_timer_is_far_behind_its_record() -> None:
    asked: list[int] = []

    def event_ms() -> int:
        asked.append(NOW)
        return NOW

    backend = HeapBackend(0, 15, 16)
    backend.current_key = "key"
    timers = Timers(backend, event_ms=event_ms)
    for later_ms in (60, 60_000, 50, 40):
        timers.at_event_time(NOW + later_ms)
    assert len(asked) == 2
