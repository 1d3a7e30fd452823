"""An operator with a rate, in a cluster that fails: the JobManager grants permits, no more than the rate gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from understudy import END, AsyncSettings, Operator, OperatorListState, Source, StreamEnvironment
from understudy.actors.async_calls.permits import Permits
from understudy.messages import JobStatus, ReportThrottled, RequestPermits
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import JOB_MANAGER, CutConnections, Fault, KillProcess

RECORDS, RATE, BURST, AHEAD = 200, 20.0, 2, 2
RETRY_AFTER_MS = 3_000
ON_THE_WAY_MS = 150
"""By so much may one message take longer than another one."""


class Begun(NamedTuple):
    at_ms: float
    record: int


BEGUN: list[Begun] = []
CLUSTER: list[SimulatedCluster] = []


class Numbers(Source):
    """All at once; it ends when a call has begun for each."""

    def open(self) -> None:
        self.next = self.context.subtask_index

    def poll(self) -> Any:
        if self.next < RECORDS:
            self.next += self.context.parallelism
            return [self.next - self.context.parallelism]
        return END if len({each.record for each in BEGUN}) == RECORDS else None

    def poll_delay_ms(self) -> float | None:
        return 100.0

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        self.next = offset


class Calling(Operator):
    """Begins a call for each record as soon as it may, and passes it on. The call of `throttling` is one too many."""

    kept = OperatorListState(int)

    def __init__(self, throttling: int | None = None) -> None:
        self.throttling = throttling

    def open(self) -> None:
        where = self.context.job_id, self.context.attempt_id, self.context.operator_id
        self.permits = Permits(
            lambda count: self.context.report(RequestPermits(*where, count)),
            lambda retry_after_ms: self.context.report(ReportThrottled(*where, retry_after_ms)),
        )
        vars(self)["_permits_granted"] = self.permits.granted
        self.waiting = list(self.kept.get())

    def process_batch(self, batch: Any, out: Any) -> None:
        self.waiting += batch

    def on_idle(self, out: Any) -> None:
        count = self.permits.take(len(self.waiting))
        begun, self.waiting = self.waiting[:count], self.waiting[count:]
        BEGUN.extend(Begun(CLUSTER[0].now_ms, record) for record in begun)
        if self.throttling in begun:
            self.permits.throttled(RETRY_AFTER_MS)
        if begun:
            out.emit(begun)

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.kept.update(self.waiting)

    def on_end(self, out: Any) -> None:
        """What waits was begun before a restart."""
        out.emit(self.waiting)


def program(throttling: int | None = None) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=500, parallelism=2)
    numbers = env.from_source(Numbers(), name="numbers")
    calling = numbers.rebalance().process(Calling(throttling), name="calling")
    settings = AsyncSettings(rate_per_second=RATE)
    calling._own_node().operator.async_settings = settings  # it runs no coroutines, and asks for permits by itself
    calling.collect(name="out")
    return env


@pytest.fixture(autouse=True)
def _fresh() -> None:
    BEGUN.clear()
    CLUSTER.clear()


KILLS: list[Callable[[], Sequence[Fault]]] = [
    lambda: [],
    lambda: [KillProcess(at_ms=2_500, who=0), KillProcess(at_ms=5_200, who=1)],
    lambda: [KillProcess(at_ms=3_000, who=1), CutConnections(at_ms=6_000, one=0, other=JOB_MANAGER)],
]


def played(throttling: int | None = None, faults: Sequence[Fault] = ()) -> None:
    """Until all have begun; all are passed on exactly once."""
    with SimulatedCluster(2, faults=faults) as cluster:
        CLUSTER.append(cluster)
        job = cluster.submit(program(throttling))
        assert job.wait().status is JobStatus.FINISHED
        assert sorted(job.results("out")) == list(range(RECORDS))


@pytest.mark.parametrize("faults", KILLS, ids=["calm", "two kills", "a kill and cut connections"])
def test_over_all_subtasks_and_restarts_no_more_calls_begin_than_the_rate_gives(
    faults: Callable[[], Sequence[Fault]],
) -> None:
    played(faults=faults())
    for first, begin in enumerate(BEGUN):
        for last, end in enumerate(BEGUN[first:], first):
            window_ms = end.at_ms - begin.at_ms + ON_THE_WAY_MS
            assert last - first + 1 <= RATE * window_ms / 1000 + BURST + AHEAD, f"from {begin} to {end}"


def test_the_rate_is_used_up() -> None:
    played()
    assert BEGUN[-1].at_ms - BEGUN[0].at_ms <= RECORDS / RATE * 1000


def test_when_the_outside_has_had_too_much_all_subtasks_pause_and_go_on_more_slowly() -> None:
    played(throttling=10)
    at_ms = next(each.at_ms for each in BEGUN if each.record == 10)
    resumes_ms = at_ms + RETRY_AFTER_MS
    assert not [each for each in BEGUN if at_ms + ON_THE_WAY_MS < each.at_ms < resumes_ms]
    slowed = [each for each in BEGUN if resumes_ms <= each.at_ms < resumes_ms + 1_000]
    assert 0.4 * RATE <= len(slowed) <= 0.6 * RATE + BURST
    recovered = [each for each in BEGUN if resumes_ms + 10_000 <= each.at_ms < resumes_ms + 11_000]
    assert len(recovered) >= 0.9 * RATE
