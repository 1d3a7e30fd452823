"""An operator without a key whose `process` takes one record at a time. Flink: ProcessFunction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from understudy import Collector, Operator, OutputTag
from understudy.actors.errors import NoEventTime, UserCodeError
from understudy.state.errors import NoCurrentKey
from understudy.testing import OperatorHarness, assert_survives_restore

BAD = OutputTag[str]("bad")


class Validated(Operator):
    """Numbers, each as often as it says."""

    def process(self, record: str, out: Collector) -> None:
        if not record.isdigit():
            out.collect_to(BAD, record)
            return
        for _ in range(int(record)):
            out.collect(record)


class Timed(Operator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect((record, self.timestamp))


class SeesItsSplit(Operator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect((record, self.watermark))


class Closing(Operator):
    def process(self, record: str, out: Collector) -> None:
        out.collect(record)

    def on_end(self, out: Collector) -> None:
        out.emit(["the end"])


class Failing(Operator):
    def __init__(self, error: type[BaseException] = ValueError) -> None:
        self.error = error

    def process(self, record: int, out: Collector) -> None:
        if record == 7:
            raise self.error("seven")


class Returning(Operator):
    def process(self, record: int, out: Collector) -> int:
        return record


class Forgetful(Operator):
    def __init__(self) -> None:
        self.seen = 0

    def process(self, record: str, out: Collector) -> None:
        self.seen += 1
        out.collect((record, self.seen))


class Asking(Operator):
    """It asks for what there is by key, or with event time."""

    def process(self, record: str, out: Collector) -> None:
        getattr(self, record)


def test_each_record_is_taken_by_itself() -> None:
    with OperatorHarness(Validated) as harness:
        harness.process(["2", "x", "1"])
        assert harness.output() == ["2", "2", "1"]
        assert harness.side_output(BAD) == ["x"]


def test_what_is_collected_has_the_time_of_its_record() -> None:
    """So that a window may stand behind it."""
    with OperatorHarness(Validated) as harness:
        harness.process(["2", "x", "0", "1"], timestamps=[10, 20, 30, 40])
        assert harness.timed_output() == [("2", 10), ("2", 10), ("1", 40)]


def test_the_time_is_known_while_the_record_is_processed() -> None:
    with OperatorHarness(Timed) as harness:
        harness.process(["a", "b"], timestamps=[10, 20])
        assert harness.output() == [("a", 10), ("b", 20)]


def test_the_time_of_a_record_is_no_later_ones() -> None:
    with OperatorHarness(Closing) as harness:
        harness.process(["a"], timestamps=[10])
        harness.end()
        assert harness.timed_output() == [("a", 10), ("the end", None)]


def test_the_watermark_is_how_far_the_split_of_the_record_had_come() -> None:
    """As for a KeyedOperator."""
    operator, out = SeesItsSplit(), Collector()
    operator.watermark = 8
    operator.timestamps, operator.split_watermarks = np.array([20, 10]), np.array([5, 12])
    operator.process_batch(["a", "b"], out)
    assert list(out) == [("a", 8), ("b", 12)]
    assert operator.watermark == 8


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_failure_names_the_record(error: type[BaseException]) -> None:
    with OperatorHarness(Failing(error)) as harness:
        harness.process([1, 2, 3])
        with pytest.raises(UserCodeError) as raised:
            harness.process([5, 6, 7, 8])
    assert raised.value.record_position == 5


def test_a_result_that_is_returned_would_be_lost() -> None:
    with OperatorHarness(Returning) as harness, pytest.raises(UserCodeError) as raised:
        harness.process([1])
    assert "process" in str(raised.value.__cause__)


def test_it_survives_a_restore() -> None:
    assert_survives_restore(Validated, [["1", "x"], ["2"]], timestamps=[[1, 2], [3]])


def test_what_a_restore_has_lost_is_the_users_alone() -> None:
    """Not the count of records that positions in errors are made of."""
    with pytest.raises(AssertionError, match="attribute 'seen' of Forgetful") as raised:
        assert_survives_restore(Forgetful, [["a"], ["b"]])
    assert "_records_before" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("timestamp", NoEventTime, "Put stream.assign_timestamps"),
        ("key", NoCurrentKey, "self.key was used, and this operator has no key: subclass KeyedOperator"),
        ("timers", NoCurrentKey, "self.timers was used, and this operator has no key: subclass KeyedOperator"),
        ("mine", AttributeError, "has no attribute 'mine'"),
    ],
)
def test_what_is_not_there_says_what_to_do(name: str, kind: type[Exception], says: str) -> None:
    with OperatorHarness(Asking) as harness, pytest.raises(UserCodeError, match=says) as raised:
        harness.process([name])
    assert type(raised.value.__cause__) is kind
