"""Who is notified of a job's events: clients come and go, and the JobManager looks for none of them for ever."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from understudy.actors.actor import Terminated
from understudy.actors.context import ActorContext
from understudy.actors.job_manager.job_listeners import GONE_MS, THERE_MS, JobListeners

CLIENT = "tcp://127.0.0.1:9/listener"
LOST = Terminated(CLIENT, "unreachable: the connection broke", may_be_there=True)


class World:
    """What an actor's context is: who is watched, and what each address was told."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.watched: list[str] = []
        self.told: list[Any] = []
        self.clock = SimpleNamespace(now_ms=lambda: self.now_ms)

    def actor_of(self, address: str) -> Any:
        return SimpleNamespace(address=address, tell=self.told.append)

    def watch(self, ref: Any) -> None:
        self.watched.append(ref.address)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def listeners(world: World) -> JobListeners:
    made = JobListeners(cast(ActorContext, world))
    made.add(CLIENT)
    return made


def test_one_that_has_stopped_is_forgotten(world: World, listeners: JobListeners) -> None:
    """A client that ended in order was looked for at each checkpoint, as long as the job ran."""
    listeners.tell("before")
    listeners.lost(Terminated("tcp://127.0.0.1:9/another", "stopped"))
    listeners.lost(Terminated(CLIENT, "stopped"))
    listeners.tell("after")
    assert world.told == ["before"]
    assert world.watched == [CLIENT]


def test_one_that_is_lost_may_come_back(world: World, listeners: JobListeners) -> None:
    """A machine that slept, or a network that was down: the client waits for the job's end."""
    listeners.lost(LOST)
    listeners.tell("end")
    listeners.beat()
    listeners.beat()
    assert world.told == ["end"]
    assert world.watched == [CLIENT, CLIENT]


def test_one_that_refuses_at_once_is_looked_for_once_a_beat(world: World, listeners: JobListeners) -> None:
    """Its port may be another program's by now: whoever looks again at once, looks without end."""
    listeners.lost(Terminated(CLIENT, "unreachable: it does not accept our key", may_be_there=True))
    assert world.watched == [CLIENT]


def test_one_that_stays_away_is_forgotten(world: World, listeners: JobListeners) -> None:
    while len(listeners) and world.now_ms < 2 * GONE_MS:
        listeners.lost(LOST)
        listeners.beat()
        world.now_ms += 3_000
    assert GONE_MS <= world.now_ms < GONE_MS + 2 * 3_000


def test_one_that_is_lost_now_and_then_stays(world: World, listeners: JobListeners) -> None:
    for _ in range(100):
        listeners.lost(LOST)
        world.now_ms += THERE_MS + 1
    assert len(listeners) == 1


def test_one_that_asks_twice_hears_once(world: World, listeners: JobListeners) -> None:
    listeners.add(CLIENT)
    listeners.tell("once")
    assert world.told == ["once"]
