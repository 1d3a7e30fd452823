"""State that expires in an operator: by the clock of its TaskManager, and by event time."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import (
    Collector,
    KeyedOperator,
    KeyedTimer,
    ListState,
    NoEventTime,
    SchemaMismatch,
    StreamEnvironment,
    Ttl,
    ValueState,
)
from understudy.actors.errors import UserCodeError
from understudy.actors.operators.timers import FIRED_AT_ONCE
from understudy.testing import OperatorHarness


def records(*users: str) -> list[dict[str, Any]]:
    return [{"user": user} for user in users]


class Visits(KeyedOperator):
    """The number of visits of a user, without one that came more than a second before the next."""

    count = ValueState(int, default=0, ttl=Ttl(seconds=1))

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((key, self.count.value()))

    def on_receive(self, message: Any) -> Any:
        return self.count.value() if message == "count" else list(self.keys())


class VisitsByEventTime(Visits):
    count = ValueState(int, default=0, ttl=Ttl(seconds=1, clock="event"))


def test_by_the_clock_a_user_is_forgotten_a_second_after_the_last_visit() -> None:
    with OperatorHarness(Visits, key_by="user") as harness:
        harness.process(records("ann", "bob"))
        harness.advance(999)
        harness.process(records("ann"))
        harness.advance(1)
        assert harness.ask("count", key="ann") == 2
        assert harness.ask("count", key="bob") == 0
        assert harness.ask("all") == ["ann"]
        harness.process(records("bob"))
        harness.end()
        assert harness.output() == [("ann", 1), ("bob", 1), ("ann", 2), ("bob", 1), ("ann", 2), ("bob", 1)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_restore_and_a_rescale_change_no_age(parallelism: int) -> None:
    users = [f"user-{n}" for n in range(20)]
    with OperatorHarness(Visits, key_by="user") as harness:
        harness.process(records(*users[:10]))
        harness.advance(600)
        harness.process(records(*users[10:]))
        snapshot = harness.snapshot()
    found = []
    for index in range(parallelism):
        with harness.restored(snapshot, parallelism=parallelism, subtask_index=index) as after:
            if index == 0:  # the others begin at the time that this one has come to
                after.advance(400)
            found += after.ask("all")
    assert sorted(found) == sorted(users[10:])


class EternalVisits(Visits):
    count = ValueState(int, default=0)


@pytest.mark.parametrize(("before", "after", "left"), [(EternalVisits, Visits, 0), (Visits, EternalVisits, 1)])
def test_a_ttl_comes_and_goes_with_a_savepoint(before: type[Visits], after: type[Visits], left: int) -> None:
    with OperatorHarness(before, key_by="user") as harness:
        harness.process(records("ann"))
        snapshot = harness.snapshot()
    with OperatorHarness(after, key_by="user", restore_from=snapshot) as harness:
        harness.advance(999)
        assert harness.ask("count", key="ann") == 1
        harness.advance(1)
        assert harness.ask("count", key="ann") == left


def test_by_event_time_the_watermark_decides_and_records_write_at_their_own_time() -> None:
    with OperatorHarness(VisitsByEventTime, key_by="user") as harness:
        harness.process(records("ann", "bob", "bob"), timestamps=[5_000, 5_200, 4_000])
        harness.advance(100_000)
        harness.watermark(5_999)
        assert [harness.ask("count", key=user) for user in ("ann", "bob")] == [1, 2]
        harness.watermark(6_000)
        assert [harness.ask("count", key=user) for user in ("ann", "bob")] == [0, 2]
        harness.process(records("ann"), timestamps=[5_000])  # too late: expired when it is written
        assert harness.ask("all") == ["bob"]
        harness.process(records("ann"), timestamps=[9_000])
        restored = harness.restored(harness.snapshot())
    with restored:
        assert sorted(restored.ask("all")) == ["ann", "bob"]
        restored.watermark(6_200)
        assert restored.ask("all") == ["ann"]


def test_the_end_of_the_data_makes_nothing_older() -> None:
    with OperatorHarness(VisitsByEventTime, key_by="user") as harness:
        harness.process(records("ann", "bob"), timestamps=[1_000, 5_000])
        harness.watermark(4_000)
        harness.take_output()
        harness.end()
        assert harness.output() == [("bob", 1)]


def test_records_without_event_time_are_refused_by_the_name_of_the_state() -> None:
    with OperatorHarness(VisitsByEventTime, key_by="user") as harness, pytest.raises(UserCodeError) as raised:
        harness.process(records("ann"))
    assert isinstance(raised.value.__cause__, NoEventTime)
    assert "a time for state 'count', which expires, was asked for" in str(raised.value.__cause__)


class Later(KeyedOperator):
    """Half a TTL after a record, and a TTL after it: is it still there?"""

    noted = ListState(int, ttl=Ttl(1_000, clock="event"))

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.noted.add(self.timestamp)
        for ms in (500, 1_000):
            self.timers.at_event_time(self.timestamp + ms)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((timer.time_ms, self.noted.get()))


def expected(count: int) -> list[tuple[int, list[int]]]:
    return sorted([(at + 500, [at]) for at in range(count)] + [(at + 1_000, []) for at in range(count)])


def test_while_timers_fire_event_time_is_the_time_of_each() -> None:
    """However far the watermark has come at once; there are more timers than fire in one part."""
    count = 3 * FIRED_AT_ONCE
    with OperatorHarness(Later, key_by="user") as harness:
        harness.process(records(*map(str, range(count))), timestamps=list(range(count)))
        harness.watermark(1_000_000)
        assert sorted(harness.output()) == expected(count)


def test_a_snapshot_between_two_parts_of_what_fires_keeps_what_later_timers_see() -> None:
    count = FIRED_AT_ONCE
    with OperatorHarness(Later, key_by="user") as harness:
        harness.process(records(*map(str, range(count))), timestamps=list(range(count)))
        assert harness.operator._advance(1_000_000, Collector())
        restored = harness.restored(harness.snapshot())
    with restored:
        restored.watermark(1_000_000)
        found = restored.output()
    assert len(found) == 2 * count - FIRED_AT_ONCE
    assert all(each in expected(count) for each in found)


class ByTheClock(KeyedOperator):
    """Notes in the name of a user, a second of the clock after a record."""

    noted = ListState(str, ttl=Ttl(1_000, clock="event"))

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_processing_time(self.processing_time() + 1_000)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        self.noted.add("noted")

    def on_receive(self, message: Any) -> Any:
        return self.noted.get()


def test_a_timer_of_the_clock_writes_at_the_watermark_or_the_first_one() -> None:
    with OperatorHarness(ByTheClock, key_by="user") as harness:
        harness.process(records("ann"), timestamps=[50])
        harness.advance(1_000)
        harness.watermark(10_000)
        assert harness.ask("", key="ann") == ["noted"]
        harness.process(records("ann"), timestamps=[10_050])
        harness.watermark(10_500)
        harness.advance(1_000)
        assert harness.ask("", key="ann") == ["noted", "noted"]
        harness.watermark(11_000)
        assert harness.ask("", key="ann") == ["noted"]
        harness.watermark(11_500)
        assert harness.ask("", key="ann") == []


def test_a_compiled_operator_is_refused_when_the_job_is_submitted() -> None:
    class Compiled(KeyedOperator):
        compiled = True
        seen = ValueState(int, default=0, ttl=Ttl(hours=1))

        def process(self, record: Any, out: Collector) -> None:
            self.seen.update(1)

    with pytest.raises(SchemaMismatch, match=r"'seen' has a TTL.*leave out `ttl=`, or `compiled = True`"):
        StreamEnvironment().from_collection([{"a": 1}]).key_by("a").process(Compiled)
