"""A plain handler that blocks the loop of its actor system is in the log; one that waits is not."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from understudy.actors.actor import Actor
from understudy.runtime.system import ActorSystem
from understudy.runtime.system.clock import SystemClock


class Clock(SystemClock):
    """Goes by what handlers say they take."""

    def __init__(self) -> None:
        self.ms = 0.0

    def now_ms(self) -> float:
        return self.ms


class Plain(Actor):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def on_receive(self, message: Any) -> Any:
        self.clock.ms += message
        return message


class Waiting(Actor):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    async def on_receive(self, message: Any) -> Any:
        await asyncio.sleep(0)
        self.clock.ms += message
        return message


@pytest.mark.parametrize(
    ("actor", "dispatcher", "takes_ms", "is_said"),
    [
        (Plain, "asyncio", 2300.0, True),
        (Plain, "asyncio", 200.0, False),
        (Plain, "thread", 2300.0, False),
        (Waiting, "asyncio", 2300.0, False),
    ],
)
def test_only_who_holds_the_loop_is_in_the_log(
    actor: type[Any], dispatcher: str, takes_ms: float, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    with caplog.at_level(logging.WARNING), ActorSystem("slow", clock=clock) as system:
        ref = system.spawn(actor(clock), name="orders", dispatcher=dispatcher)
        assert ref.ask(takes_ms).result() == takes_ms
    said = [each.getMessage() for each in caplog.records if "held the event loop" in each.getMessage()]
    assert len(said) == is_said
    for line in said:
        assert "orders: Plain.on_receive (test_slow_handlers.py:" in line
        assert "for 2.3 s with a float; all its actors" in line
