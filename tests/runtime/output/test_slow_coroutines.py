"""SlowCoroutines on a clock of its own: what is logged of a coroutine that blocks the loop, and how often."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.operators.operator import Operator
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
        self.watch = SlowCoroutines(1000, self.clock)
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
