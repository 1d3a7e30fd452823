"""A job that takes back timers that are due commits other records where batches end elsewhere: the report names it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from understudy import KeyedOperator, StreamEnvironment, ValueState, monotonous
from understudy.testing import assert_exactly_once

EVENTS = [{"key": key, "at": at} for at in range(0, 4_000, 100) for key in ("a", "b")]


class Silences(KeyedOperator):
    """Each event takes the alarm of the one before it back, though it may be due."""

    due = ValueState(int)

    def process(self, record: Any, out: Any) -> None:
        if self.due.value() is not None:
            self.timers.delete_event_time(self.due.value())
        self.due.update(self.timestamp + 50)
        self.timers.at_event_time(self.timestamp + 50)

    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect((self.key, timer.time_ms))
        self.due.clear()


def _job() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    events = env.from_collection(EVENTS).assign_timestamps("at", monotonous())
    events.key_by("key").process(Silences, name="silences").collect(name="out")
    return env


def test_the_report_names_the_operator_and_the_line() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_exactly_once(_job, histories=20)
    told = str(raised.value)
    assert "operator 'silences' deletes a timer that is due: that of" in told
    assert f"({__file__}:" in told


def test_so_does_the_one_without_any_fault() -> None:
    with pytest.raises(AssertionError, match=r"without any fault: (.*\n)+Likely cause: operator 'silences' deletes"):
        assert_exactly_once(_job, histories=2, expected=[("a", 0)])


class Harmless(KeyedOperator):
    """Takes timers back that are due and do nothing; what it emits is wrong for another reason."""

    def process(self, record: Any, out: Any) -> None:
        self.timers.at_event_time(self.timestamp)
        self.timers.delete_event_time(self.timestamp - 100)
        out.collect(self.wrong(record))

    def wrong(self, record: Any) -> Any:
        raise NotImplementedError

    def on_timer(self, timer: Any, out: Any) -> None:
        pass


class ByTheClock(Harmless):
    def wrong(self, record: Any) -> Any:
        return record["at"], self.processing_time()


class ByChance(Harmless):
    def wrong(self, record: Any) -> Any:
        return record["at"], uuid.uuid4().hex


def _job_of(operator: type[KeyedOperator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    events = env.from_collection(EVENTS).assign_timestamps("at", monotonous())
    events.key_by("key").process(operator, name="wrong").collect(name="out")
    return env


def test_it_is_named_behind_what_else_is_found() -> None:
    with pytest.raises(AssertionError, match=r"(?s)goes by the clock.*deletes a timer that is due"):
        assert_exactly_once(lambda: _job_of(ByTheClock), histories=20)


def test_it_is_no_cause_where_the_same_batches_give_something_else() -> None:
    with pytest.raises(AssertionError, match="unrepeatable") as raised:
        assert_exactly_once(lambda: _job_of(ByChance), histories=20)
    assert "uuid" in str(raised.value)
    assert "deletes a timer" not in str(raised.value)
