"""A harness has event time, watermarks, timers and side outputs, as a task has."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from datetime import UTC, datetime
from typing import Any

import pytest

from understudy import Collector, EndlessTimers, KeyedOperator, KeyedTimer, OutputTag, ReadOnlyState, Ttl, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.elements import END_OF_TIME
from understudy.actors.operators import Map
from understudy.testing import HarnessMisused, OperatorHarness, assert_survives_restore

LATE = OutputTag("late")


class Sessions(KeyedOperator):
    """Counts the records of a session, which ends 10 ms after its last record; late records go to the side."""

    count = ValueState(int, default=0)
    end = ValueState(int)

    def process(self, record: dict[str, Any], out: Collector) -> None:
        if self.timestamp <= self.watermark:
            out.collect_to(LATE, record)
            return
        held = self.end.value()
        if held is not None:
            self.timers.delete_event_time(held)
        self.end.update(self.timestamp + 10)
        self.timers.at_event_time(self.timestamp + 10)
        self.count.update(self.count.value() + 1)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((self.key, self.count.value()))
        self.count.clear()
        self.end.clear()


class Reminder(KeyedOperator):
    """Twice, 5 ms apart, after a record."""

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_processing_time(self.processing_time() + 5, 2)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect((self.key, timer.time_ms - self.context.clock.wall_ms()))
        if timer.namespace == 2:
            self.timers.at_processing_time(timer.time_ms + 5, 1)


class InSeconds(KeyedOperator):
    """A minute after each record, as somebody writes it who thinks in seconds."""

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_processing_time(self.processing_time() // 1000 + 60)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect(self.key)


def records(*users: str) -> list[dict[str, Any]]:
    return [{"user": user} for user in users]


def test_a_session_ends_when_the_watermark_says_so() -> None:
    with OperatorHarness(Sessions, key_by="user") as harness:
        harness.process(records("ann", "bob", "ann"), timestamps=[1, 2, 8])
        harness.watermark(12)
        assert harness.timed_output() == [(("bob", 1), 12)]
        harness.process(records("bob", "ann"), timestamps=[12, 13])
        assert harness.side_output(LATE) == records("bob")
        harness.end()
        assert harness.take_output() == [("bob", 1), ("ann", 3)]
        assert harness.watermarks() == [12]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_timers_and_watermark_survive_a_restore_with_another_parallelism(parallelism: int) -> None:
    users = [f"user-{n}" for n in range(20)]
    with OperatorHarness(Sessions, key_by="user") as harness:
        harness.process(records(*users), timestamps=list(range(20)))
        harness.watermark(12)
        fired = harness.take_output()
        snapshot = harness.snapshot()
    late = []
    for index in range(parallelism):
        with harness.restored(snapshot, parallelism=parallelism, subtask_index=index) as after:
            own = after.share_of(records(*users))
            after.process(own, timestamps=[12] * len(own))
            late += after.side_output(LATE)
            after.watermark(100)
            fired += after.take_output()
    assert sorted(fired) == sorted((user, 1) for user in users)
    assert sorted(each["user"] for each in late) == sorted(users)


def test_of_two_inputs_the_slower_one_counts() -> None:
    class Two(Sessions):
        inputs = 2

        def process_2(self, record: dict[str, Any], out: Collector) -> None:
            self.process(record, out)

    with OperatorHarness(Two, key_by="user") as harness:
        harness.process(records("ann"), timestamps=[1])
        harness.watermark(50)
        assert harness.output() == []
        harness.watermark(11, input_index=1)
        assert harness.output() == [("ann", 1)]


def test_processing_time_timers_fire_each_at_its_time() -> None:
    with OperatorHarness(Reminder, key_by="user") as harness:
        harness.process(records("ann"))
        harness.advance(4)
        assert harness.output() == []
        harness.advance(100)
        assert harness.output() == [("ann", 0), ("ann", 0)]


def test_wrong_timestamps_are_refused() -> None:
    with OperatorHarness(Sessions, key_by="user") as harness:
        with pytest.raises(HarnessMisused, match="wanted 1, one for each record, found 2"):
            harness.process(records("ann"), timestamps=[1, 2])
        with pytest.raises(HarnessMisused, match="time does not go back"):
            harness.advance(-1)
        harness.process(records("ann"), timestamps=[5])


def test_a_chain_keeps_the_times() -> None:
    with OperatorHarness([Map(lambda n: n + 1)]) as harness:
        harness.process([1, 2], timestamps=[10, 20])
        assert harness.timed_output() == [(2, 10), (3, 20)]


class Always(KeyedOperator):
    """Each timer sets the next one: `step` ms later, or at the end of time."""

    def __init__(self, step: int, *, until_end: bool = False) -> None:
        self.step, self.until_end = step, until_end

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_event_time(self.timestamp + 1)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        if not self.until_end or self.watermark < END_OF_TIME:
            self.timers.at_event_time(min(timer.time_ms + self.step, END_OF_TIME))


@pytest.fixture
def one_timer_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedOperator, "_fired_at_once", 1)


@pytest.mark.usefixtures("one_timer_at_a_time")
@pytest.mark.parametrize("step", [60_000, END_OF_TIME])
def test_timers_that_always_set_the_next_one_are_an_error_at_the_end_of_the_data(step: int) -> None:
    with OperatorHarness(Always(step), key_by="key") as harness:
        harness.process([{"key": "a"}], timestamps=[0])
        with pytest.raises(UserCodeError) as failed:
            harness.end()
    assert isinstance(failed.value.__cause__, EndlessTimers)


@pytest.mark.usefixtures("one_timer_at_a_time")
def test_one_that_stops_at_the_end_of_time_is_none() -> None:
    with OperatorHarness(Always(60_000, until_end=True), key_by="key") as harness:
        harness.process([{"key": key} for key in range(3_000)], timestamps=[0] * 3_000)
        harness.end()
        assert not harness.operator.timers.queues.event


class Asked(KeyedOperator):
    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_event_time(5)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        out.collect(timer.time_ms)

    def on_receive(self, message: Any) -> Any:
        return getattr(self.timers, message)(5 if "delete" in message else 7)


@pytest.mark.parametrize("what", ["at_event_time", "at_processing_time", "delete_event_time", "delete_processing_time"])
def test_a_question_sets_and_deletes_no_timer(what: str) -> None:
    with OperatorHarness(Asked(), key_by="key") as harness:
        harness.process([{"key": "a"}], timestamps=[0])
        with pytest.raises(ReadOnlyState, match="'timers' is read-only while a question is answered"):
            harness.ask(what, key="a")
        harness.process([{"key": "b"}], timestamps=[1])
        harness.watermark(10)
        assert harness.output() == [5, 5]


def test_an_operator_of_event_time_survives_restores_or_is_found_out() -> None:
    batches = [[{"key": "a"}, {"key": "b"}], [{"key": "a"}], [{"key": "b"}]]
    times = [[0, 5], [8], [40]]
    assert_survives_restore(Sessions(), batches, timestamps=times, key_by="key")
    with pytest.raises(AssertionError, match="attribute 'ends' of Forgetful"):
        assert_survives_restore(Forgetful(), batches, timestamps=times, key_by="key")
    with pytest.raises(HarnessMisused, match="wanted a list for each of 3 batches, found 1"):
        assert_survives_restore(Sessions(), batches, timestamps=[[0, 5]], key_by="key")


class Forgetful(KeyedOperator):
    def open(self) -> None:
        self.ends: dict[Any, int] = {}

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.ends[self.key] = self.timestamp + 10
        self.timers.at_event_time(self.timestamp + 10)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        if self.ends.get(self.key) == timer.time_ms:
            out.collect((self.key, timer.time_ms))


@pytest.mark.parametrize("found", [datetime(2026, 1, 1, tzinfo=UTC), 1.5, None, True], ids=repr)
def test_times_of_a_harness_are_whole_milliseconds(found: Any) -> None:
    with OperatorHarness(Sessions(), key_by="key") as harness:
        with pytest.raises(HarnessMisused, match="timestamps: wanted whole milliseconds"):
            harness.process([{"key": "a"}], timestamps=[found])
        with pytest.raises(HarnessMisused, match="watermark: wanted whole milliseconds"):
            harness.watermark(found)


def test_a_first_timer_of_processing_time_that_is_in_seconds_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It fires at once: without a word, each order would be cancelled before it could be paid."""
    with OperatorHarness(InSeconds, key_by="user") as harness:
        harness.process(records("ann", "bob"))
    (said,) = caplog.messages
    assert "operator 'in-seconds-1': a timer at 1700000060 counts as milliseconds since 1970, and now is 17" in said
    assert "If its time is in seconds, multiply it by 1000" in said


class EventInSeconds(InSeconds):
    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_event_time(self.timestamp // 1000 + 60)


def test_a_first_timer_of_event_time_that_is_in_seconds_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with OperatorHarness(EventInSeconds, key_by="user") as harness:
        harness.process(records("ann", "bob"), timestamps=[1_700_000_000_000, 1_700_000_001_000])
    (said,) = caplog.messages
    assert "a timer at 1700000060 counts as milliseconds since 1970, and event time is 1700000000000" in said
    assert "If its time is in seconds, multiply it by 1000: self.timestamp gives milliseconds" in said


class InAMinute(InSeconds):
    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_processing_time(60_000)


class InAMinuteOfEventTime(InSeconds):
    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_event_time(60_000)


@pytest.mark.parametrize(
    ("operator", "now"), [(InAMinute, "self.processing_time()"), (InAMinuteOfEventTime, "self.timestamp")]
)
def test_a_first_timer_at_a_span_of_time_is_warned_of_once(
    operator: type[KeyedOperator], now: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In a minute is a minute after 1970, so it fires at once."""
    with OperatorHarness(operator, key_by="user") as harness:
        harness.process(records("ann", "bob"), timestamps=[1_700_000_000_000, 1_700_000_001_000])
    (said,) = caplog.messages
    assert "a timer at 60000 counts as milliseconds since 1970" in said
    assert f"If it is to fire that long after now, write {now} + 60000" in said


class TenMinutesAfterItsRecord(InSeconds):
    def __init__(self, later_ms: int = 600_000) -> None:
        self.later_ms = later_ms

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_processing_time(self.timestamp + self.later_ms)


_OLD = 1_690_000_000_000


def test_a_first_timer_of_processing_time_on_old_data_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """All such timers fire at once: without a word, each order would be cancelled before it could be paid."""
    with OperatorHarness(TenMinutesAfterItsRecord, key_by="user") as harness:
        harness.process(records("ann", "bob"), timestamps=[_OLD, _OLD + 1_000])
    (said,) = caplog.messages
    line = inspect.getsourcelines(TenMinutesAfterItsRecord.process)[1] + 1
    assert "operator 'ten-minutes-after-its-record-1' sets a timer of processing time at 1690000600000" in said
    assert f"test_harness_time.py:{line}), 115 days before now, which is 17" in said
    assert "so it fires at once. Is event time meant? Then write self.timers.at_event_time(...)" in said
    assert "to wait from now on, write self.timers.at_processing_time(self.processing_time() + ms)" in said


@pytest.mark.parametrize("late_ms", [0, 3_600_000, 86_000_000])
def test_a_timer_of_processing_time_that_was_due_within_a_day_is_not_warned_of(
    late_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    with OperatorHarness(TenMinutesAfterItsRecord(-late_ms), key_by="user") as harness:
        harness.process(records("ann"), timestamps=[harness.clock.wall_ms()])
    assert caplog.messages == []


class AMinuteLater(InSeconds):
    def __init__(self, later_ms: int = 60) -> None:
        self.later_ms = later_ms

    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_event_time(self.timestamp + self.later_ms)


class AtTheNextSecond(InSeconds):
    def process(self, record: dict[str, Any], out: Collector) -> None:
        self.timers.at_event_time((self.timestamp // 1000 + 1) * 1000)


def _timers_of(operator: KeyedOperator, times: list[int]) -> None:
    with OperatorHarness(operator, key_by="user") as harness:
        harness.process(records("ann", "bob", "cid", "dan")[: len(times)], timestamps=times)


_AT = [1_700_000_000_000, 1_700_000_000_970, 1_700_000_001_940, 1_700_000_003_000]


@pytest.mark.parametrize("times", [_AT, _AT[:3], [*_AT[:3], _AT[2]], [_AT[0], *_AT[:3]]])
def test_timers_a_few_ms_behind_their_records_are_warned_of_once(
    times: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    _timers_of(AMinuteLater(), times)
    (said,) = caplog.messages
    assert "its timers are 60 ms behind their records: if seconds are meant, write self.timestamp + 60000" in said


@pytest.mark.parametrize(
    ("operator", "times"),
    [
        (AMinuteLater(1), _AT),
        (AMinuteLater(), _AT[:2]),
        (AMinuteLater(), [_AT[0], _AT[0], _AT[1], _AT[1]]),
        (AMinuteLater(60_000), _AT),
        (AMinuteLater(), [5, 10, 15, 20]),
        (AMinuteLater(), [_AT[0] + each for each in (0, 20, 40, 60)]),
        (AtTheNextSecond(), [_AT[1]] * 4),
        (AtTheNextSecond(), [at + 30 for at in _AT]),
        (AtTheNextSecond(), [_AT[0] + at for at in (950, 1960, 2970)]),
    ],
)
def test_timers_that_are_at_once_or_far_or_as_close_as_their_records_or_at_the_end_of_a_second_are_not_warned_of(
    operator: KeyedOperator, times: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    _timers_of(operator, times)
    assert caplog.messages == []


@pytest.mark.parametrize("time_ms", [0, 60_000, 1_700_000_000])
def test_a_timer_of_event_time_is_not_warned_of_where_the_times_of_records_are_no_dates_either(
    time_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As in tests, or in a loop, where it is the number of the round."""

    class Later(InSeconds):
        def process(self, record: dict[str, Any], out: Collector) -> None:
            self.timers.at_event_time(self.timestamp + 1_700_000_000)

    with OperatorHarness(Later, key_by="user") as harness:
        harness.process(records("ann"), timestamps=[time_ms])
    assert caplog.messages == []


def test_a_timer_in_milliseconds_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with OperatorHarness(Reminder, key_by="user") as harness:
        harness.process(records("ann"))
    assert caplog.messages == []


class Reminding(KeyedOperator):
    """Sets a timer of the time that its records say."""

    def process(self, kind: str, out: Any) -> None:
        if kind == "event":
            self.timers.at_event_time(10)
        else:
            self.timers.at_processing_time(self.processing_time() + 10)

    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect(timer.domain)


class Forwarding(Reminding):
    def process(self, kind: str, out: Any) -> None:
        super().process(kind, out)
        out.collect(kind)


class Expiring(Reminding):
    """Has state that goes by the clock, too."""

    seen = ValueState(int, ttl=Ttl(minutes=1))


class Sleeping(Reminding):
    async def process(self, kind: str, out: Any) -> None:  # type: ignore[override]
        if kind == "event":
            self.timers.at_event_time(10)
        else:
            await asyncio.sleep(1)


class HeldBack(Reminding):
    def on_idle(self, out: Any) -> float | None:
        return 100


class TestTheOtherTime:
    """Time that passes fires no timer of event time, and whoever expects it sees an empty output."""

    def test_advance_warns_once_where_a_watermark_is_wanted(self) -> None:
        with OperatorHarness(Reminding, key_by=str) as harness:
            harness.process(["event"])
            with pytest.warns(
                RuntimeWarning, match=r"'reminding-1' 1 timer of event time waits .* harness.watermark\("
            ) as at:
                harness.advance(100)
            assert [each.filename for each in at] == [__file__]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                harness.advance(100)
            harness.watermark(10)
            assert harness.output() == ["event"]

    @pytest.mark.parametrize(("records", "watermark"), [(["event", "clock"], None), (["clock"], None), (["event"], 5)])
    def test_not_where_time_has_something_to_do_or_event_time_is_known(
        self, records: list[str], watermark: int | None
    ) -> None:
        with OperatorHarness(Reminding, key_by=str) as harness, warnings.catch_warnings():
            warnings.simplefilter("error")
            harness.process(records)
            if watermark is not None:
                harness.watermark(watermark)
            harness.advance(100)

    @pytest.mark.parametrize("kind", ["ttl", "coroutine", "on_idle"])
    def test_not_where_something_else_goes_by_the_clock(self, kind: str) -> None:
        chain: Any = {
            "ttl": Expiring,
            "coroutine": Sleeping,
            "on_idle": HeldBack,
        }[kind]
        keys: Any = {"key_by": lambda _: "key"}
        with OperatorHarness(chain, **keys) as harness, warnings.catch_warnings():
            warnings.simplefilter("error")
            harness.process(["event"])
            if kind == "coroutine":
                harness.process(["sleep"])
            harness.advance(60_001)

    def test_once_for_all_operators_of_a_chain(self) -> None:
        with OperatorHarness([Forwarding, Forwarding], key_by=str) as harness:
            harness.process(["event"])
            with pytest.warns(RuntimeWarning, match=r"'forwarding-1' and 'forwarding-2' 2 timers .* wait") as at:
                harness.advance(100)
            assert len(at) == 1
