"""A thread that still holds an `out` when the data has ended is named: what it emits then is lost."""

from __future__ import annotations

import functools
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from understudy import Collector, Operator, StreamEnvironment
from understudy.testing import SimulatedCluster

FAR_S = 3600.0


class Beginning(Operator):
    """Begins something at its last record that goes on afterwards; `begun` is for the test to end it."""

    begun: ClassVar[list[Callable[[], object]]] = []

    def begin(self, record: Any, out: Collector) -> None:
        raise NotImplementedError

    def process_batch(self, batch: Any, out: Collector) -> None:
        if 3 in batch:
            self.begin(3, out)

    def timer(self, *call: Any) -> None:
        timer = threading.Timer(FAR_S, *call)
        timer.daemon = True
        timer.start()
        self.begun.append(timer.cancel)


class TimerOfTheMethod(Beginning):
    def begin(self, record: Any, out: Collector) -> None:
        self.timer(out.collect, [record])


class TimerOfAClosure(Beginning):
    def begin(self, record: Any, out: Collector) -> None:
        self.timer(lambda: out.collect(record))


class TimerOfAPartial(Beginning):
    def begin(self, record: Any, out: Collector) -> None:
        self.timer(functools.partial(out.emit, [record]))


class ThreadOfAMethod(Beginning):
    def work(self) -> None:
        while (record := self.queue.get()) is not None:
            self.out.collect(record)

    def begin(self, record: Any, out: Collector) -> None:
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.out = out
        threading.Thread(target=self.work, daemon=True).start()
        self.begun.append(functools.partial(self.queue.put, None))


class ThreadWithoutOut(Beginning):
    """As those of a client."""

    def begin(self, record: Any, out: Collector) -> None:
        self.timer(record.bit_length)


class OnlyKept(Beginning):
    """Nobody emits to it."""

    def begin(self, record: Any, out: Collector) -> None:
        self.out = out
        self.timer(record.bit_length)


class Joined(Beginning):
    def begin(self, record: Any, out: Collector) -> None:
        self.done: list[Any] = []
        self.thread = threading.Thread(target=lambda: self.done.append((out is None, record)))
        self.thread.start()

    def on_end(self, out: Collector) -> None:
        self.thread.join()
        out.emit([record for _, record in self.done])


class Coroutine(Operator):
    begun = Beginning.begun

    async def process(self, record: Any, out: Collector) -> None:
        if record == 3:
            timer = threading.Timer(FAR_S, out.collect, [record])
            timer.daemon = True
            timer.start()
            self.begun.append(timer.cancel)


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    while Beginning.begun:
        Beginning.begun.pop()()
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


def said(kind: type[Operator], caplog: pytest.LogCaptureFixture) -> list[str]:
    env = StreamEnvironment(parallelism=1)
    env.from_collection([1, 2, 3]).process(kind, name="op").collect(name="out")
    with caplog.at_level(logging.WARNING), SimulatedCluster(1, seed=1) as cluster:
        cluster.submit(env).wait(timeout=60)
    return [each for each in caplog.messages if "what it emits from now on is lost" in each]


@pytest.mark.parametrize(
    "kind",
    [TimerOfTheMethod, TimerOfAClosure, TimerOfAPartial, ThreadOfAMethod, Coroutine],
    ids=lambda each: each.__name__,
)
def test_it_is_named(kind: type[Operator], caplog: pytest.LogCaptureFixture) -> None:
    (text,) = said(kind, caplog)
    assert text.startswith("operator 'op': the data has ended, and thread 'Thread-")


@pytest.mark.parametrize("kind", [ThreadWithoutOut, OnlyKept, Joined], ids=lambda each: each.__name__)
def test_others_are_not(kind: type[Operator], caplog: pytest.LogCaptureFixture) -> None:
    assert said(kind, caplog) == []
