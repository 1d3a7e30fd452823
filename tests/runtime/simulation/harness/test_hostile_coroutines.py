"""Coroutines as somebody wrote them who wanted to break them: state, order and records are those of the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from understudy import (
    AsyncSettings,
    Collector,
    InvalidState,
    KeyedOperator,
    KeyedTimer,
    Operator,
    OperatorListState,
    Retry,
    ValueState,
)
from understudy.testing import OperatorHarness


class Asked(KeyedOperator):
    """A state that can be asked for."""

    total = ValueState(int, default=0)

    def on_receive(self, _: Any) -> int:
        return self.total.value()


class FoundBefore(Asked):
    """Python looks up `update` before it awaits."""

    async def process(self, record: tuple[str, int], out: Collector) -> None:
        self.total.update(self.total.value() + await after(0.01 if record[0] == "a" else 0.05, record[1]))
        out.collect((self.key, self.total.value()))


class Failing(Asked):
    async_settings = AsyncSettings(on_error="errors")

    async def process(self, record: tuple[str, int], out: Collector) -> None:
        self.total.update(self.total.value() + await after(0.01, record[1]))
        raise ValueError("no")


async def after(seconds: float, value: int) -> int:
    await asyncio.sleep(seconds)
    return value


def test_state_that_was_looked_up_before_a_wait_is_that_of_the_record_after_it() -> None:
    harness = OperatorHarness(FoundBefore, key_by=lambda record: record[0])
    harness.process([("b", 100), ("a", 1)])
    harness.advance(500)
    assert harness.output() == [("a", 1), ("b", 100)]
    assert [harness.ask("total?", key=key) for key in "ab"] == [1, 100]


def test_it_is_undone_where_the_coroutine_fails() -> None:
    harness = OperatorHarness(Failing, key_by=lambda record: record[0])
    harness.process([("b", 100), ("a", 1)])
    harness.advance(500)
    assert [harness.ask("total?", key=key) for key in "ab"] == [0, 0]


class Gathering(Asked):
    """The sibling of one that fails goes on, and belongs to the try that is over."""

    async_settings = AsyncSettings(retry=Retry(attempts=2, first_delay_ms=1))

    def __init__(self) -> None:
        self.failed: set[int] = set()

    async def add(self) -> None:
        await asyncio.sleep(0.05)
        self.total.update(self.total.value() + 1)

    async def fail_once(self, number: int) -> None:
        await asyncio.sleep(0)
        if number not in self.failed:
            self.failed.add(number)
            raise ConnectionError("once")

    async def process(self, number: int, out: Collector) -> None:
        await asyncio.gather(self.add(), self.fail_once(number))
        await asyncio.sleep(0.05)
        out.collect(self.total.value())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_task_that_a_failed_try_has_left_behind_changes_nothing_of_the_next_one() -> None:
    harness = OperatorHarness(Gathering, key_by=lambda _: "a")
    harness.process([0, 1, 2])
    harness.advance(5_000)
    assert harness.output() == [1, 2, 3]


class Ticking(KeyedOperator):
    """A timer each 10 ms up to 30, where it deletes the one at 100."""

    def begin(self) -> None:
        self.timers.at_event_time(10)
        self.timers.at_event_time(100)

    def tick(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect(timer.time_ms)
        if timer.time_ms < 30:
            self.timers.at_event_time(timer.time_ms + 10)
        elif timer.time_ms == 30:
            self.timers.delete_event_time(100)


class TickingSync(Ticking):
    def process(self, _: Any, out: Collector) -> None:
        self.begin()

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self.tick(timer, out)


class TickingAsync(Ticking):
    async def process(self, _: Any, out: Collector) -> None:
        self.begin()

    async def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        await asyncio.sleep(0)
        self.tick(timer, out)


@pytest.mark.parametrize("operator", [TickingSync, TickingAsync])
def test_timers_of_a_key_fire_one_after_the_other_and_a_deleted_one_does_not(operator: type[Ticking]) -> None:
    harness = OperatorHarness(operator, key_by=lambda record: record)
    harness.process(["a"])
    harness.watermark(200)
    harness.advance(100)
    assert harness.output() == [10, 20, 30]


class Both(KeyedOperator):
    """Timers of both times for one key, and another key that holds a watermark up."""

    async def process(self, record: str, out: Collector) -> None:
        if record == "slow":
            await asyncio.sleep(1)
        else:
            self.timers.at_event_time(10)
            self.timers.at_processing_time(self.processing_time() + 50)

    async def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((self.key, timer.domain))


@pytest.mark.timeout(30)
def test_a_timer_of_the_clock_that_is_due_behind_a_watermark_holds_no_timer_of_its_key_up() -> None:
    harness = OperatorHarness(Both, key_by=lambda record: record)
    harness.process(["a"])
    harness.process(["slow"])
    harness.watermark(20)
    harness.advance(100)
    assert harness.output() == [("a", "processing")]
    harness.advance(2_000)
    assert harness.output() == [("a", "processing"), ("a", "event")]


class Cancelling(Operator):
    """A deadline of its own that nobody takes back."""

    async def process(self, record: int, out: Collector) -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await asyncio.sleep(0.01)
        out.collect(record)


def test_a_cancellation_that_comes_when_its_record_is_over_is_nobody_elses() -> None:
    harness = OperatorHarness(Cancelling)
    harness.process([0])
    harness.advance(200)
    harness.process([1])
    harness.advance(200)
    assert harness.output() == [0, 1]


class Changing(KeyedOperator):
    async def process(self, order: dict[str, Any], out: Collector) -> None:
        order["cents"] += 5
        await asyncio.sleep(0.1)
        out.collect(order["cents"])


def test_a_record_that_was_changed_before_a_wait_begins_again_as_it_came() -> None:
    harness = OperatorHarness(Changing, key_by="customer")
    harness.process([{"customer": "ann", "cents": 100}])
    harness.advance(10)
    snapshot = harness.snapshot()
    harness.crash()
    restored = harness.restored(snapshot)
    restored.advance(1_000)
    assert restored.output() == [105]


class Stopping(Asked):
    async def process(self, _: Any, out: Collector) -> None:
        self.timers.at_event_time(10)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect(next(iter([])))


def test_stop_iteration_of_a_plain_method_is_a_failure() -> None:
    harness = OperatorHarness(Stopping, key_by=lambda record: record)
    harness.process(["a"])
    with pytest.raises(Exception, match=r"operator 'stopping-1' raised") as raised:
        harness.watermark(20)
    assert "StopIteration" in str(raised.value.__cause__)


class Listing(Operator):
    seen = OperatorListState(int)

    async def process(self, record: int, out: Collector) -> None:
        self.seen.add(record)


def test_a_list_of_the_operator_cannot_be_changed_in_a_coroutine() -> None:
    with pytest.raises(Exception, match="raised at record") as raised:
        OperatorHarness(Listing).process([1])
    assert isinstance(raised.value.__cause__, InvalidState)
