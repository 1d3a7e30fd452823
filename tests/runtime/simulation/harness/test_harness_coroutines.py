"""OperatorHarness: operators with coroutines, in the harness's own time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from understudy import AsyncSettings, Collector, KeyedOperator, Operator, Retry, ValueState
from understudy.actors.errors import CallTimedOut, UserCodeError
from understudy.testing import HarnessMisused, OperatorHarness, assert_survives_restore


class Answers(Operator):
    """Each record is asked for so many seconds as it says."""

    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(record)
        out.collect(record)


class Total(KeyedOperator):
    total = ValueState(int, default=0)

    async def process(self, record: Any, out: Collector) -> None:
        key, number = record
        await asyncio.sleep(number)
        self.total.update(self.total.value() + number)
        out.collect((key, self.total.value()))


def test_what_never_waits_is_there_at_once() -> None:
    with OperatorHarness(Answers) as harness:
        harness.process([0, 0])
        assert harness.output() == [0, 0]


def test_sleepers_wake_as_time_advances_and_keep_their_order() -> None:
    with OperatorHarness(Answers) as harness:
        harness.process([3, 1])
        harness.advance(1000)
        assert harness.output() == []
        harness.advance(1999)
        assert harness.output() == []
        harness.advance(1)
        assert harness.output() == [3, 1]


def test_without_an_order_they_leave_as_they_come() -> None:
    with OperatorHarness(Total, key_by=0) as harness:
        harness.process([("a", 3), ("b", 1), ("a", 1)])
        harness.advance(1000)
        assert harness.output() == [("b", 1)]
        harness.advance(2000)
        harness.advance(1000)
        assert harness.output() == [("b", 1), ("a", 3), ("a", 4)]


def test_watermarks_wait_for_the_records_before_them() -> None:
    with OperatorHarness(Answers) as harness:
        harness.process([1], timestamps=[5])
        harness.watermark(10)
        assert harness.watermarks() == []
        harness.advance(1000)
        assert (harness.timed_output(), harness.watermarks()) == ([(1, 5)], [10])


def test_what_is_in_flight_is_in_the_snapshot_and_asked_again() -> None:
    with OperatorHarness(Total, key_by=0) as harness:
        harness.process([("a", 1), ("a", 2)])
        harness.advance(1500)
        assert harness.take_output() == [("a", 1)]
        snapshot = harness.snapshot()
        harness.crash()
    with harness.restored(snapshot) as after:
        after.advance(1999)
        assert after.output() == []
        after.advance(1)
        assert after.output() == [("a", 3)]


def test_a_rescale_deals_them_out() -> None:
    records = [(key, 1) for key in range(8)]
    with OperatorHarness(Total, key_by=0) as harness:
        harness.process(records)
        snapshot = harness.snapshot()
    found = []
    for index in range(2):
        with harness.restored(snapshot, parallelism=2, subtask_index=index) as part:
            part.end()
            assert part.output()
            found += part.output()
    assert sorted(found) == records


def test_the_end_of_the_data_lets_time_pass_until_all_have_left() -> None:
    with OperatorHarness(Answers) as harness:
        harness.process([3600, 1])
        harness.end()
        assert harness.output() == [3600, 1]
        assert harness.clock.now_ms() == 3_600_000


class Forever(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        while record == "again":  # noqa: ASYNC110 - what is wrong with it
            await asyncio.sleep(1)
        await asyncio.Event().wait()


@pytest.mark.parametrize(("record", "told"), [("once", "nothing will wake them"), ("again", "they wait again and")])
def test_the_end_says_which_line_never_ends(record: str, told: str) -> None:
    with OperatorHarness(Forever) as harness:
        harness.process([record])
        with pytest.raises(HarnessMisused, match=rf"end: 1 record in flight.*{told}.*s.py:\d+: await asy"):
            harness.end()


class Limited(Answers):
    async_settings = AsyncSettings(rate_per_second=0.001, timeout_ms=500)


def test_there_is_no_rate_and_timeouts_come_in_time() -> None:
    harness = OperatorHarness(Limited)
    harness.process([0, 0, 0])
    assert harness.output() == [0, 0, 0]
    harness.process([0, 1])
    harness.advance(400)
    with pytest.raises(UserCodeError, match="at record 4 of this attempt") as caught:
        harness.advance(200)
    assert isinstance(caught.value.__cause__, CallTimedOut)


class Flaky(Operator):
    async_settings = AsyncSettings(retry=Retry(attempts=3, first_delay_ms=1000, jitter=0), on_error="errors")

    def __init__(self) -> None:
        self.tried: list[Any] = []

    async def process(self, record: Any, out: Collector) -> None:
        self.tried.append((record, self.context.clock.now_ms()))
        raise ConnectionError(record)


def test_retries_in_virtual_time() -> None:
    with OperatorHarness(Flaky) as harness:
        harness.process(["x"])
        harness.advance(10_000)
        assert harness.operator.tried == [("x", 0), ("x", 1000), ("x", 3000)]


class Opening(Operator):
    """Opens and closes in its own time."""

    async def open(self) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        self.log = self.context.resources["log"]
        self.log.append("open")

    async def process(self, record: Any, out: Collector) -> None:
        await asyncio.sleep(1)
        out.collect(record)

    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(1)
        self.log.append("closed")


def test_records_wait_until_open_has_ended_and_close_ends() -> None:
    log: list[str] = []
    with OperatorHarness(Opening, resources={"log": log}) as harness:
        harness.process([1])
        assert (log, harness.output()) == ([], [])
        harness.advance(2000)
        assert (log, harness.output()) == (["open"], [1])
        harness.process([2])
    assert log == ["open", "closed"]


class Refused(Opening):
    async def open(self) -> None:  # type: ignore[override]
        raise ConnectionError("nobody there")


def test_what_open_raises_is_raised() -> None:
    with pytest.raises(UserCodeError) as caught:
        OperatorHarness(Refused, resources={"log": []})
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_they_survive_a_restore_wherever_they_are_cut() -> None:
    assert_survives_restore(Total, [[("a", 1), ("b", 0)], [("a", 0)], [("b", 2), ("c", 0)]], key_by=0)
    assert_survives_restore(Answers, [[1, 0], [0], [2]])


class Forgetful(Operator):
    def __init__(self) -> None:
        self.seen = 0

    async def process(self, record: Any, out: Collector) -> None:
        self.seen += 1
        out.collect(self.seen)


def test_and_one_that_forgets_is_found() -> None:
    with pytest.raises(AssertionError, match="attribute 'seen' of Forgetful: 0 when it was opened"):
        assert_survives_restore(Forgetful, [[1], [2]])


def test_it_heads_its_chain() -> None:
    with pytest.raises(HarnessMisused, match="'answers-2' runs coroutines, and in a job it is always the first"):
        OperatorHarness([Answers, Answers])


def test_many_records_at_once() -> None:
    with OperatorHarness(Answers) as harness:
        harness.process([0.001] * 5000)
        harness.end()
        assert len(harness.output()) == 5000


class PlainTotal(KeyedOperator):
    """Total, as it was before it asked anybody."""

    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.total.update(self.total.value() + record[1])
        out.collect((record[0], self.total.value()))


def test_an_upgrade_from_plain_to_async_takes_the_state_and_back_without_records_in_flight() -> None:
    with OperatorHarness(PlainTotal, key_by=0) as plain:
        plain.process([("a", 1)])
        snapshot = plain.snapshot()
    with OperatorHarness(Total, key_by=0, restore_from=snapshot) as harness:
        harness.process([("a", 2)])
        harness.advance(2000)
        assert harness.output() == [("a", 3)]
        snapshot = harness.snapshot()
    with OperatorHarness(PlainTotal, key_by=0, restore_from=snapshot) as back:
        back.process([("a", 4)])
        assert back.output() == [("a", 7)]


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_plain_operator_does_not_lose_records_that_were_in_flight(backend: Any) -> None:
    with OperatorHarness(Total, key_by=0, state_backend=backend) as harness:
        harness.process([("a", 1), ("a", 1), ("b", 1)])
        snapshot = harness.snapshot()
    with pytest.raises(HarnessMisused, match="holds 3 records that coroutines of 'plain-total-1' had in flight"):
        OperatorHarness(PlainTotal, key_by=0, state_backend=backend, restore_from=snapshot)
