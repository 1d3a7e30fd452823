"""The end of a loop in a stream: what still goes round when the input has ended, comes too late, or never leaves."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import (
    Collector,
    DataStream,
    JobFailed,
    KeyedOperator,
    StreamEnvironment,
    ValueState,
    bounded_out_of_orderness,
    tumbling,
)
from understudy.testing import SimulatedCluster

pytestmark = pytest.mark.every_run


def test_what_is_sent_back_when_the_loop_has_ended_is_an_error_and_not_lost() -> None:
    class Last(KeyedOperator):
        count = ValueState(int, default=0)

        def process(self, record: Any, out: Collector) -> None:
            self.count.update(self.count.value() + 1)

        def on_end(self, out: Collector) -> None:
            for key in self.keys():
                out.collect((key, self.count.value()))

    env = StreamEnvironment()

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        counted = loop.key_by(0).process(Last)
        return counted, counted

    env.from_collection([(1, 1), (2, 2)]).iterate(step, name="count").collect(name="out")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        with pytest.raises(JobFailed, match=r"loop 'count' has ended, and \d records? came back to it after that"):
            job.wait()
        assert job.details().restarts == 0


def test_records_that_still_go_round_when_the_input_ends_are_not_late() -> None:
    env = StreamEnvironment(parallelism=2)
    timed = env.from_collection([(number, 0) for number in range(5)])
    timed = timed.assign_timestamps(lambda record: 1_000 * record[0], bounded_out_of_orderness(3_600_000))

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        more = loop.map(lambda record: (record[0], record[1] + 1))
        return more.filter(lambda record: record[1] < 3), more.filter(lambda record: record[1] == 3)

    counted = timed.iterate(step).key_by(0).window(tumbling(1_000)).reduce(lambda one, _: one)
    counted.collect(name="out")
    counted.late.collect(name="late")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("out")) == [(number, 3) for number in range(5)]
        assert job.results("late") == []


def test_what_is_due_at_the_end_of_event_time_can_still_go_round() -> None:
    env = StreamEnvironment(parallelism=2)
    timed = env.from_collection([(0, 1), (1, 1)])
    timed = timed.assign_timestamps(lambda record: record[0], bounded_out_of_orderness(60_000))

    def step(loop: DataStream) -> tuple[DataStream, DataStream]:
        summed = loop.key_by(lambda _: 0).window(tumbling(1_000)).reduce(lambda one, other: (0, one[1] + other[1]))
        return summed.map(lambda record: (1, record[1])), summed

    timed.iterate(step).collect(name="out")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [(0, 2)]  # it goes round once more, and is late


def test_a_loop_that_records_never_leave_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    counted = env.from_collection([0, 1]).iterate(lambda loop: _count_to(loop, 1_005), name="count")
    counted.collect(name="out")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [1_005, 1_005]
    said = [each for each in caplog.messages if each.startswith("loop 'count' has gone round 1000 times since its")]
    assert said == [
        "loop 'count' has gone round 1000 times since its input ended, and in the last round 2 records were sent back: "
        "if that is not meant, look why they never leave"
    ]


def _count_to(loop: DataStream, last: int) -> tuple[DataStream, DataStream]:
    more = loop.map(lambda number: number + 1)
    return more.filter(lambda number: number < last), more.filter(lambda number: number == last)
