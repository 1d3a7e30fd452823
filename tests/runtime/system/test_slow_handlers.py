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
    said = [each.getMessage() for each in caplog.records if "blocked the event loop" in each.getMessage()]
    assert len(said) == is_said
    for line in said:
        assert "orders: Plain.on_receive (test_slow_handlers.py:" in line
        assert "for 2.3 s while it handled a float; all other actors" in line


class Fails(Plain):
    def on_receive(self, message: Any) -> Any:
        super().on_receive(message)
        raise ValueError(message)

    def slow(self) -> float:
        self.clock.ms += 1500
        return 1.5


Fails.__module__ = None  # type: ignore[assignment]  # as a decorator may leave it


def test_one_that_raises_is_in_the_log_too_and_a_method_of_a_proxy_by_its_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    with caplog.at_level(logging.WARNING), ActorSystem("slow", clock=clock) as system:
        ref = system.spawn(Fails(clock), name="orders")
        with pytest.raises(ValueError, match="2300"):
            ref.ask(2300.0).result()
        ref = system.spawn(Fails(clock), name="bills")
        assert ref.proxy().slow().get() == 1.5
    first, second = [each.getMessage() for each in caplog.records if "blocked the event loop" in each.getMessage()]
    assert "orders: Fails.on_receive (test_slow_handlers.py:" in first
    assert "bills: Fails.slow (test_slow_handlers.py:" in second
    assert "for 1.5 s; all other actors" in second
