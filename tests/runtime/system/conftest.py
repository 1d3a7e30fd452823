"""Every test of the actor system must leave no thread behind, and nothing that asyncio complains about."""

from __future__ import annotations

import gc
import logging
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from understudy.actors.actor import Actor, Step
from understudy.runtime.system import ActorSystem

WAIT_S = 120
"""How long a test waits for what must come."""


class Idler(Actor):
    """An actor that any dispatcher takes: as a stepping actor it has nothing to do between messages."""

    def step(self) -> Step:
        return Step.IDLE

    def on_receive(self, message: Any) -> None:
        pass


class Recorder(Idler):
    """Puts what it hears into a queue."""

    def __init__(self, *watched: Any) -> None:
        self.heard: queue.Queue[Any] = queue.Queue()
        self.watched = watched

    def on_start(self) -> None:
        for ref in self.watched:
            self.context.watch(ref)

    def on_receive(self, message: Any) -> None:
        self.heard.put(message)

    def next(self) -> Any:
        return self.heard.get(timeout=WAIT_S)


@pytest.fixture
def idler() -> type[Idler]:
    return Idler


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem("theatre") as system:
        yield system


@pytest.fixture(params=["asyncio", "thread", "stepping:group"])
def dispatcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True, scope="module")
def _what_was_there_is_not_searched() -> None:
    """The garbage of a test is looked for among what the test has made, not among all modules that are loaded. Nothing
    is put back: what has been collected (tests/conftest.py) is frozen too.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_is_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    before = set(threading.enumerate())
    with caplog.at_level(logging.WARNING, logger="asyncio"):
        yield
        gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=WAIT_S)
        assert not thread.is_alive(), f"{thread.name} is left behind"
    complaints = [record.getMessage() for record in caplog.records if record.name == "asyncio"]
    assert not complaints
