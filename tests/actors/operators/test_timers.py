"""Timers: what the first of them are held against is not asked for later ones; times that are refused."""

from __future__ import annotations

import re

import pytest

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


@pytest.mark.parametrize(
    ("time_ms", "advice"),
    [
        (
            NOW / 1000 + 1,
            "found float 1700000001.0, which is a time in seconds: use self.processing_time(), which gives",
        ),
        (NOW + 0.5, "found float 1700000000000.5: use int(...) of it"),
        (float("nan"), "found float nan: use int(...) of it"),
    ],
)
def test_a_time_that_is_no_whole_number_is_refused_with_what_makes_one(time_ms: float, advice: str) -> None:
    """`int(time.time() + 1)` would be a whole number, and a time in 1970."""
    backend = HeapBackend(0, 15, 16)
    backend.current_key = "key"
    timers = Timers(backend)
    with pytest.raises(ValueError, match=re.escape(advice)):
        timers.at_processing_time(time_ms)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "method", ["at_event_time", "at_processing_time", "delete_event_time", "delete_processing_time", "delete"]
)
def test_a_time_of_a_state_that_holds_nothing_is_refused_with_what_to_ask_first(method: str) -> None:
    backend = HeapBackend(0, 15, 16)
    backend.current_key = "key"
    said = "found None; a state that holds nothing yet gives None: ask `if due is not None` first, or declare a default"
    with pytest.raises((ValueError, TypeError), match=re.escape(said)) as refusal:
        getattr(Timers(backend), method)(None)
    assert "int(...) of it" not in str(refusal.value)
