"""Sources that wait for each other, in a cluster that fails: none runs ahead by more than the drift, and none hangs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from understudy import (
    END,
    KeyedOperator,
    Source,
    StreamEnvironment,
    ValueState,
    bounded_out_of_orderness,
    monotonous,
    punctuated,
)
from understudy.actors.operators.watermark_generators import WatermarkStrategy
from understudy.messages import JobStatus
from understudy.runtime.clusters.watermark_explanation import HeldBy
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import JOB_MANAGER, CutConnections, Fault, KillProcess

RECORDS, STEP_MS, DRIFT_MS = 150, 1_000, 10_000
POLLED: list[tuple[int, int]] = []
"""(subtask, event time), in the order in which they were polled."""


class Ticks(Source):
    """Each subtask has RECORDS records, a second of event time apart: subtask 0 at once, the others one in 40 ms."""

    def __init__(self, last_is_silent: bool = False) -> None:
        self.last_is_silent = last_is_silent
        self.bounded = not last_is_silent

    def open(self) -> None:
        self.next, self.due_ms = 0, 0.0

    def poll(self) -> Any:
        index, now_ms = self.context.subtask_index, self.context.clock.now_ms()
        if self.last_is_silent and index == self.context.parallelism - 1:
            return None
        if self.next == RECORDS:
            return END if self.bounded else None
        if now_ms < self.due_ms:
            return None
        self.due_ms = now_ms + (40 if index else 0)
        self.next += 1
        POLLED.append((index, self.next * STEP_MS))
        return [(index, self.next * STEP_MS)]

    def poll_delay_ms(self) -> float | None:
        return 20.0 if self.next < RECORDS else None

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        self.next = offset

    def rescale(self, offsets: Sequence[int]) -> None: ...


class Count(KeyedOperator):
    count = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))


def program(source: Source, parallelism: int = 2, **options: Any) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=300, parallelism=parallelism)
    ticks = env.from_source(source, name="ticks")
    timed = ticks.assign_timestamps(
        lambda record: record[1], monotonous(), max_drift_ms=DRIFT_MS, name="times", **options
    )
    timed.key_by(0).process(Count, name="count").collect(name="out")
    return env


def most_ahead() -> int:
    """By how much event time the fast subtask ran ahead of the furthest that the slow one had ever been, in ms."""
    furthest, most = 0, 0
    for index, time_ms in POLLED:
        if index == 0:
            most = max(most, time_ms - furthest)
        else:
            furthest = max(furthest, time_ms)
    return most


@pytest.fixture(autouse=True)
def _fresh() -> None:
    POLLED.clear()


KILLS: list[Callable[[], Sequence[Fault]]] = [
    lambda: [],
    lambda: [KillProcess(at_ms=1_500, who=0), KillProcess(at_ms=4_200, who=1)],
    lambda: [KillProcess(at_ms=2_000, who=1), CutConnections(at_ms=3_500, one=0, other=JOB_MANAGER)],
]


@pytest.mark.parametrize("faults", KILLS, ids=["calm", "two kills", "a kill and cut connections"])
def test_no_source_runs_ahead_by_more_than_the_drift_and_all_come_to_their_end(
    faults: Callable[[], Sequence[Fault]],
) -> None:
    with SimulatedCluster(2, faults=faults()) as cluster:
        job = cluster.submit(program(Ticks()))
        assert job.wait().status is JobStatus.FINISHED
        counted = sorted(job.results("out"))
    assert counted == [(index, count) for index in (0, 1) for count in range(1, RECORDS + 1)]
    assert most_ahead() <= DRIFT_MS + STEP_MS


def test_a_member_that_is_idle_holds_nobody() -> None:
    """FLINK-32414, FLINK-32496: the others go on, to the end of what they have."""
    with SimulatedCluster(3) as cluster:
        job = cluster.submit(program(Ticks(last_is_silent=True), parallelism=3, idle_after_ms=500))
        cluster.run_for(20_000)
        assert {max(time for index, time in POLLED if index == each) for each in (0, 1)} == {RECORDS * STEP_MS}
        job.cancel().result()


def test_the_explanation_names_who_holds_event_time_back() -> None:
    with SimulatedCluster(3) as cluster:
        job = cluster.submit(program(Ticks(last_is_silent=True), parallelism=3))
        cluster.run_for(20_000)
        explained = job.explain_watermark("count")
        assert explained.held_by is HeldBy.NO_RECORDS
        assert "waits for 'ticks -> times', subtask 2: no watermark yet" in explained.path[0]
        assert explained.path[1].startswith("'ticks -> times', subtask 2: its records: no watermark yet")
        assert explained.path[2:] == ("it has brought no record yet",)
        assert "idle_after_ms" in str(explained)
        ahead = job.explain_watermark("times").subtasks[0]
        assert ahead.watermark_ms is not None
        assert ahead.watermark_ms < DRIFT_MS
        job.cancel().result()


@pytest.mark.parametrize(
    ("strategy", "held_by"),
    [(bounded_out_of_orderness(60_000), HeldBy.BOUND), (punctuated(lambda record, time_ms: time_ms), HeldBy.RECORDS)],
)
def test_the_explanation_knows_what_records_need_of_a_bound_where_there_is_one(
    strategy: WatermarkStrategy, held_by: HeldBy
) -> None:
    env = StreamEnvironment(parallelism=2)
    ticks = env.from_source(Ticks()).assign_timestamps(lambda record: record[1], strategy, name="times")
    ticks.key_by(lambda record: record[0]).process(Count, name="count").collect(name="out")
    with SimulatedCluster(3) as cluster:
        job = cluster.submit(env)
        cluster.run_for(5_500)
        assert job.explain_watermark("times").held_by is held_by
        job.cancel().result()
