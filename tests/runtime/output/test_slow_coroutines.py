"""SlowCoroutines on a clock of its own: what is logged of a coroutine that blocks the loop, and how often."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.operators.operator import Operator
from understudy.runtime.output.blocked_looks import LOOKS, MOST, waits_in_a_system_call
from understudy.runtime.output.slow_coroutines import SlowCoroutines
from understudy.runtime.output.slow_places import LOGGED_IN_FULL


class Clock:
    ms = 0.0

    def now_ms(self) -> float:
        return self.ms

    def wall_ms(self) -> int:
        return int(self.ms)


class Blocking(Operator):
    async def process(self, record: Callable[[], None], out: Any) -> None:
        record()


class Stage:
    """A loop on a thread of its own, and an operator whose coroutine looks while it runs there."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.waits = False
        self.watch = SlowCoroutines(1000, self.clock, waits=lambda _: self.waits)
        self.loop = asyncio.new_event_loop()
        self.operator = Blocking()
        self.operator.context = SimpleNamespace(name="enrich", subtask_index=1, attempt_number=2)  # type: ignore[assignment]
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.run(self._begin())

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    async def _begin(self) -> None:
        self.watch.begin(self.loop)

    def run(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def look(self, after_ms: float) -> None:
        self.clock.ms += after_ms
        self.watch.look()

    def block(self, *looks_after_ms: float) -> None:
        """One record's coroutine, with looks in between; the loop answers when it is done."""

        self.run(self.operator.process(lambda: [self.look(after_ms) for after_ms in looks_after_ms] and None, None))
        self.run(asyncio.sleep(0))


@pytest.fixture
def stage(caplog: pytest.LogCaptureFixture) -> Any:
    made = Stage()
    with caplog.at_level(logging.WARNING):
        yield made
    made.close()


def test_it_is_named_while_it_blocks_and_once_more_when_it_has_ended(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.block(0, 500, 500, 250)
    first, last = caplog.records
    said = first.getMessage()
    assert said.startswith("operator 'enrich' in process (subtask 1, attempt 2) has held the event loop for 1.0 s: ")
    assert f"{__file__}:" in said
    assert "; all coroutines of this TaskManager wait meanwhile: use an async client" in said
    assert "await asyncio.to_thread(...)" in said
    assert "held the event loop for 1.2 s in all" in last.getMessage()
    assert (first.operator, first.subtask) == ("enrich", 1)  # type: ignore[attr-defined]


def test_a_loop_that_answers_in_time_is_left_alone(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        stage.block(0, 500, 400)
    assert caplog.records == []


def test_a_loop_that_has_much_to_do_is_not_meant(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """It does not answer, and each time another coroutine runs."""

    async def many() -> None:
        await asyncio.gather(*(stage.operator.process(lambda: stage.look(500), None) for _ in range(4)))

    stage.run(many())
    assert caplog.records == []


def test_the_same_place_is_logged_the_first_few_times(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(LOGGED_IN_FULL + 3):
        stage.block(0, 600, 600)
    assert len(caplog.records) == 2 * LOGGED_IN_FULL


def test_a_loop_that_is_closed_is_not_looked_at() -> None:
    over = Stage()
    over.close()
    over.look(0)
    over.look(5000)


def test_short_calls_that_block_again_and_again_are_named_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.waits = True
    for _ in range(3 * LOOKS):
        stage.block(10)
    (record,) = caplog.records
    said = record.getMessage()
    assert said.startswith("operator 'enrich' in process (subtask 1, attempt 2) blocks the event loop, in half of the")
    assert f"{__file__}:" in said
    assert "use an async client there (asyncio.sleep for time.sleep), or `await asyncio.to_thread(...)`" in said


def test_calls_that_block_now_and_then_or_compute_are_left_alone(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3 * LOOKS):
        stage.waits = number % LOOKS < MOST - 1
        stage.block(10)
    assert caplog.records == []


@pytest.mark.skipif(not waits_in_a_system_call(threading.get_native_id()), reason="/proc does not tell system calls")
@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_thread_that_sleeps_waits_and_one_that_computes_or_has_no_lock_does_not(is_blocking: bool) -> None:
    is_over, lock = threading.Event(), threading.Lock()

    def sleep() -> None:
        while not is_over.is_set():
            time.sleep(0.01)

    def compute() -> None:
        while not is_over.is_set():
            sum(range(1000))

    thread = threading.Thread(target=sleep if is_blocking else compute)
    thread.start()
    try:
        assert thread.native_id is not None
        if is_blocking:
            while not waits_in_a_system_call(thread.native_id):
                pass
        else:
            assert _looks_that_find_it_waiting(thread) < MOST
    finally:
        is_over.set()
        thread.join()
    with lock:
        waiter = threading.Thread(target=lock.acquire)
        waiter.start()
        assert _looks_that_find_it_waiting(waiter) < MOST
    waiter.join()


def _looks_that_find_it_waiting(thread: threading.Thread) -> int:
    assert thread.native_id is not None
    return sum(waits_in_a_system_call(thread.native_id) for _ in range(LOOKS))
