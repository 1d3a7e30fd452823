"""Side outputs and late records that no stream of a job reads are compared, too."""

from __future__ import annotations

import pytest

from understudy import (
    Collector,
    Count,
    KeyedOperator,
    OutputTag,
    StreamEnvironment,
    ValueState,
    bounded_out_of_orderness,
    tumbling,
)
from understudy.testing import KillProcess, assert_exactly_once

REJECTED = OutputTag("rejected")
KILL = KillProcess(at_ms=4_300, who=0)


class Route(KeyedOperator):
    """Rejects each third record, with how many it has rejected: in an attribute."""

    rejected = 0

    def process(self, record: int, out: Collector) -> None:
        if record % 3:
            out.collect(record)
            return
        self.rejected += 1
        out.collect_to(REJECTED, (record, self.rejected))


class RouteInState(KeyedOperator):
    rejected = ValueState(int, default=0)

    def process(self, record: int, out: Collector) -> None:
        if record % 3:
            out.collect(record)
            return
        self.rejected.update(self.rejected.value() + 1)
        out.collect_to(REJECTED, (record, self.rejected.value()))


def _routed(operator: type[KeyedOperator], *, is_read: bool = False) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    routed = env.from_collection(range(40)).key_by(lambda number: 0).process(operator, name="route")
    routed.collect(name="accepted")
    if is_read:
        routed.side_output(REJECTED).collect(name="read")
    return env


def test_a_side_output_that_nobody_reads_is_compared() -> None:
    env = _routed(Route)
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(env, faults=[KILL], histories=3)
    assert str(caught.value).startswith(
        "exactly-once: side output 'rejected' of 'route', which no stream reads, has committed "
    )
    assert [node.name for node in env.graph.nodes if node.role == "sink"] == ["accepted"]


def test_what_is_said_to_be_compared_is_all() -> None:
    assert_exactly_once(_routed(Route), faults=[KILL], histories=1, sink="accepted")
    accepted = [number for number in range(40) if number % 3]
    assert_exactly_once(_routed(Route), faults=[KILL], histories=1, expected=accepted)


def test_a_side_output_that_is_right_survives_failures_and_rescaling() -> None:
    survived = assert_exactly_once(_routed(RouteInState), histories=15)
    assert survived.rescales


def test_a_side_output_that_is_read_is_compared_once() -> None:
    with pytest.raises(AssertionError, match=r"^exactly-once: sink 'read' has committed "):
        assert_exactly_once(_routed(Route, is_read=True), faults=[KILL], histories=3)


class Delays(KeyedOperator):
    """Every fifth record is late by its number among all: in an attribute."""

    count = 0

    def process(self, record: dict[str, int], out: Collector) -> None:
        self.count += 1
        out.collect({"at": 0 if record["n"] % 5 == 4 else 1_000 * record["n"], "nth": self.count})


def test_late_records_that_nobody_reads_are_compared() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        numbers = env.from_collection([{"n": n} for n in range(40)])
        stamped = numbers.key_by(lambda row: 0).process(Delays).assign_timestamps("at", bounded_out_of_orderness(0))
        windows = stamped.key_by(lambda row: 0).window(tumbling(seconds=1)).aggregate(n=Count())
        windows.map(tuple).collect(name="windows")
        return env

    with pytest.raises(AssertionError, match=r"^exactly-once: side output 'late' of .*, which no stream reads, has"):
        assert_exactly_once(build, faults=[KILL], histories=3, task_managers=1)
