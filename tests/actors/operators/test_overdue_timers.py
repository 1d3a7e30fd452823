"""A timer that is due and is taken back is told of once, with the line that did it; one that is to come is not."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from understudy import KeyedOperator, ValueState
from understudy.actors.operators import overdue_timers
from understudy.actors.operators.said_once import SaidOnce
from understudy.testing import OperatorHarness

ORDERS = [{"customer": "ann", "kind": "order"}, {"customer": "ann", "kind": "payment"}]


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue_timers, "_said", SaidOnce())


class Reminders(KeyedOperator):
    """Reminds of orders; a payment takes the reminder back."""

    due = ValueState(int)

    def process(self, record: Any, out: Any) -> None:
        if record["kind"] == "order":
            self.due.update(self.timestamp + 10)
            self.timers.at_event_time(self.timestamp + 10)
        else:
            self.timers.delete_event_time(self.due.value() or 0)

    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect(timer.time_ms)


class ByTimer(Reminders):
    """The same with the timer itself."""

    def process(self, record: Any, out: Any) -> None:
        if record["kind"] == "order":
            self.timer = self.timers.at_event_time(self.timestamp + 10)
        else:
            self.timers.delete(self.timer)


class Awaiting(Reminders):
    """The same as a coroutine."""

    async def process(self, record: Any, out: Any) -> None:  # type: ignore[override]
        Reminders.process(self, record, out)


class OfOneTime(Reminders):
    """The first of two timers of one time takes the other one back."""

    def process(self, record: Any, out: Any) -> None:
        self.timers.at_event_time(5, "first")
        self.timers.at_event_time(5, "second")

    def on_timer(self, timer: Any, out: Any) -> None:
        self.timers.delete_event_time(5, "second" if timer.namespace == "first" else "first")


class AwaitingOfOneTime(OfOneTime):
    """The same as coroutines."""

    async def process(self, record: Any, out: Any) -> None:  # type: ignore[override]
        OfOneTime.process(self, record, out)

    async def on_timer(self, timer: Any, out: Any) -> None:  # type: ignore[override]
        OfOneTime.on_timer(self, timer, out)


class CompiledReminders(KeyedOperator):
    """Compiled, as machine code knows no line."""

    compiled = True
    due = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        if record["order"] == 1:
            self.due.update(self.timestamp + 10)
            self.timers.at_event_time(self.timestamp + 10)
        else:
            self.timers.delete_event_time(self.due.value())

    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect(timer.time_ms)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == overdue_timers.__name__]


def run(operator: type[KeyedOperator], times: list[int], watermark: int | None = None) -> list[Any]:
    with OperatorHarness(operator, key_by="customer") as harness:
        if watermark is None:
            harness.process(ORDERS, timestamps=times)
        else:
            harness.process(ORDERS[:1], timestamps=times[:1])
            harness.watermark(watermark)
            harness.process(ORDERS[1:], timestamps=times[1:])
        harness.watermark(100)
        return list(harness.output())


@pytest.mark.parametrize("operator", [Reminders, ByTimer, Awaiting])
def test_a_timer_that_is_due_and_deleted_is_told_of_with_the_line(
    operator: type[KeyedOperator], caplog: pytest.LogCaptureFixture
) -> None:
    run(operator, [0, 30])
    (told,) = said(caplog)
    assert re.search(rf"deletes a timer that is due: that of 10, and self.timestamp is 30 \({__file__}:\d+\)", told)
    assert "results depend on where batches end. Compare first, as in `if self.timestamp < due_ms:" in told


def test_it_is_told_of_once_for_an_operator(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        run(Reminders, [0, 30])
    assert len(said(caplog)) == 1


@pytest.mark.parametrize(("times", "watermark"), [([0, 9], None), ([0, 30], 20)])
def test_one_that_is_to_come_or_has_fired_is_not(
    times: list[int], watermark: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    run(Reminders, times, watermark)
    assert said(caplog) == []


HOUR = 3_600_000


@pytest.mark.parametrize("operator", [Reminders, ByTimer, Awaiting])
@pytest.mark.parametrize(
    ("later", "watermark", "count"),
    [
        ([], 30 - HOUR, 0),  # the watermark is an hour behind, so nothing fires the timer before the payment
        ([2 * HOUR], HOUR, 0),  # that of a later record fires it, but not before the payment
        ([2 * HOUR], 2 * HOUR - 1, 1),
        ([], 2**63 - 1, 0),  # the data ends: how far watermarks are behind is not known
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_one_that_no_watermark_reaches_before_the_record_is_not(
    operator: type[KeyedOperator],
    later: list[int],
    watermark: int,
    count: int,
    at_once: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = [*ORDERS, *({"customer": "bob", "kind": "order"} for _ in later)]
    times = [0, 30, *later]
    with OperatorHarness(operator, key_by="customer") as harness:
        for part in [slice(None)] if at_once else [slice(0, 2), slice(2, None)]:
            harness.process(records[part], timestamps=times[part])
        if watermark == 2**63 - 1:
            harness.end()
        else:
            harness.watermark(watermark)
            harness.watermark(2 * HOUR)
    assert len(said(caplog)) == count


@pytest.mark.parametrize("operator", [OfOneTime, AwaitingOfOneTime])
def test_of_two_timers_of_one_time_the_order_is_named(
    operator: type[KeyedOperator], caplog: pytest.LogCaptureFixture
) -> None:
    run(operator, [0, 0])
    (told,) = said(caplog)
    assert "timers of one time fire in no order after a restart" in told


@pytest.mark.parametrize(
    ("rows", "watermark", "count"),
    [
        ([(1, 0), (0, 30)], 29, 1),
        ([(1, 0), (0, 30)], 9, 0),
        ([(1, 0), (0, 9)], 100, 0),
        ([(0, 9), (1, 30)], 100, 0),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_compiled_one_names_the_lines_that_it_may_be(
    rows: list[tuple[int, int]], watermark: int, count: int, at_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("numba")
    with OperatorHarness(CompiledReminders, key_by="customer") as harness:
        records = [{"customer": 1, "order": order} for order, _ in rows]
        times = [time for _, time in rows]
        for part in [slice(None)] if at_once else [slice(0, 1), slice(1, 2)]:
            harness.process(records[part], timestamps=times[part])
        harness.watermark(watermark)
        harness.watermark(100)
    told = said(caplog)
    assert len(told) == count
    assert all(f"is due: that of 10 ({__file__}:" in each for each in told)
    assert all(" or " not in each.partition(").")[0] for each in told), sys.version
