"""RateLimits: never more than rate and burst over all subtasks, nobody starves, and all that is wanted is granted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.actors.jobs.job_effects import PermitsDue
from understudy.actors.jobs.rate_limits import BURST_MS, RateEvent, RateLimits
from understudy.messages import (
    CheckpointConfig,
    ExecutionAttemptId,
    GrantPermits,
    JobGraph,
    JobId,
    JobVertex,
    OperatorDescription,
    OperatorId,
    ReportThrottled,
    RequestPermits,
    RestartStrategyConfig,
    RestartStrategyKind,
    VertexId,
)

JOB = JobId("job")
FETCH = OperatorId("fetch")


def job(rate: float, parallelism: int) -> JobGraph:
    operators = (
        OperatorDescription(OperatorId("plain"), "plain", "operator"),
        OperatorDescription(FETCH, "fetch", "operator", rate_per_second=rate),
    )
    vertices = (JobVertex(VertexId("v"), "v", parallelism, 128, operators),)
    restart = RestartStrategyConfig(RestartStrategyKind.NONE)
    return JobGraph(JOB, "job", vertices, (), CheckpointConfig(""), restart)


class Stage:
    """Limits, the clock and the timers, and tasks that ask for the rest when they get less than they want."""

    def __init__(self, rate: float, parallelism: int = 4) -> None:
        self.rate = rate
        self.now_ms = 0.0
        self.due_ms: float | None = None
        self.timers = 0
        self.over: set[ExecutionAttemptId] = set()
        self.wanted: Counter[ExecutionAttemptId] = Counter()
        self.granted: list[tuple[float, GrantPermits]] = []
        self.passed_by: dict[ExecutionAttemptId, Counter[ExecutionAttemptId]] = {}
        """Of each request that waits, who else was granted some since."""
        self.limits = RateLimits(job(rate, parallelism), lambda attempt_id: attempt_id not in self.over)

    def ask(self, attempt: str, count: int) -> None:
        attempt_id = ExecutionAttemptId(attempt)
        self.wanted[attempt_id] = count
        self.passed_by.setdefault(attempt_id, Counter())
        self.on(RequestPermits(JOB, attempt_id, FETCH, count))

    def throttle(self, retry_after_ms: float = 0.0) -> None:
        self.on(ReportThrottled(JOB, ExecutionAttemptId("any"), FETCH, retry_after_ms))

    def end(self, attempt: str) -> None:
        self.over.add(ExecutionAttemptId(attempt))
        self.wanted.pop(ExecutionAttemptId(attempt), None)
        self.passed_by.pop(ExecutionAttemptId(attempt), None)

    def passes(self, ms: float) -> None:
        end_ms = self.now_ms + ms
        while self.due_ms is not None and self.due_ms <= end_ms:
            self.next_timer()
        self.now_ms = end_ms

    def next_timer(self) -> None:
        assert self.due_ms is not None, f"there is no timer, and {dict(self.wanted)} is wanted"
        self.now_ms, self.due_ms = self.due_ms, None
        self.timers += 1
        self.on(PermitsDue(FETCH))

    def on(self, event: RateEvent) -> None:
        answers = []
        for effect in self.limits.on(event, self.now_ms):
            if isinstance(effect, GrantPermits):
                answers.append(effect)
            else:
                assert self.due_ms is None, "the timers of an operator have one name, and so there is one"
                self.due_ms = self.now_ms + effect.delay_ms
        for answer in answers:
            self._take(answer)
        for answer in answers:
            if left := self.wanted[answer.attempt_id]:
                self.ask(answer.attempt_id, left)

    def _take(self, grant: GrantPermits) -> None:
        assert 1 <= grant.count <= self.wanted[grant.attempt_id], "no more than was requested, and not none"
        self.granted.append((self.now_ms, grant))
        self.wanted[grant.attempt_id] -= grant.count
        del self.passed_by[grant.attempt_id]
        for others in self.passed_by.values():
            others[grant.attempt_id] += 1

    def counts(self) -> list[tuple[str, int]]:
        return [(grant.attempt_id, grant.count) for _, grant in self.granted]


def test_permits_that_are_there_are_granted_at_once() -> None:
    stage = Stage(rate=100, parallelism=4)
    stage.ask("a", 4)
    assert stage.granted == [(0.0, GrantPermits(JOB, ExecutionAttemptId("a"), FETCH, 4, rate_per_second=25.0))]
    assert stage.due_ms is None


def test_the_rest_comes_as_the_rate_gives_it_half_a_burst_at_a_time() -> None:
    stage = Stage(rate=100)
    stage.ask("a", 25)
    stage.passes(1000)
    assert [(round(at_ms, 6), grant.count) for at_ms, grant in stage.granted] == [(0, 10), (50, 5), (100, 5), (150, 5)]
    assert stage.timers == 3, "none that was not needed"


def test_few_permits_do_not_wait_for_half_a_burst() -> None:
    stage = Stage(rate=100)
    stage.ask("a", 10)
    stage.ask("b", 1)
    stage.passes(11)
    assert stage.counts() == [("a", 10), ("b", 1)]


def test_those_who_wait_get_equal_shares_and_nobody_more_than_he_wants() -> None:
    stage = Stage(rate=1000)
    stage.ask("a", 100)
    stage.granted.clear()
    stage.ask("b", 500)
    stage.ask("c", 3)
    stage.ask("d", 500)
    stage.passes(51)
    assert stage.counts()[:3] == [("b", 24), ("c", 3), ("d", 23)]


def test_one_token_goes_from_one_to_the_next() -> None:
    stage = Stage(rate=1)
    stage.ask("first", 1)
    for attempt in "abc":
        stage.ask(attempt, 2)
    stage.passes(6001)
    assert stage.counts() == [("first", 1), *((attempt, 1) for attempt in "abcabc")]


def test_a_new_request_replaces_the_older_one_and_keeps_its_place() -> None:
    stage = Stage(rate=1)
    for attempt in "abc":
        stage.ask(attempt, 1)
    stage.ask("b", 2)
    stage.passes(10_000)
    assert stage.counts() == [("a", 1), ("b", 1), ("c", 1), ("b", 1)]


def test_who_is_over_gets_none_and_what_he_had_is_not_given_again() -> None:
    stage = Stage(rate=1)
    for attempt in "abc":
        stage.ask(attempt, 1)
    stage.end("a")
    stage.end("b")
    stage.passes(999)
    assert stage.counts() == [("a", 1)]
    stage.passes(2)
    assert stage.counts() == [("a", 1), ("c", 1)]


def test_no_timer_runs_for_those_who_are_over() -> None:
    stage = Stage(rate=1)
    stage.ask("a", 2)
    stage.end("a")
    stage.passes(10_000)
    assert (stage.timers, stage.due_ms) == (1, None)


def test_what_is_not_asked_for_in_time_is_lost_but_for_the_burst() -> None:
    stage = Stage(rate=100)
    stage.passes(60_000)
    stage.ask("a", 1000)
    assert stage.counts() == [("a", 10)]


def test_after_a_throttle_nothing_is_granted_before_its_time_and_then_half() -> None:
    stage = Stage(rate=100)
    stage.throttle(2000)
    stage.ask("a", 1000)
    stage.passes(1999)
    assert (stage.counts(), stage.timers) == ([], 0)
    stage.passes(1001)
    granted = sum(grant.count for _, grant in stage.granted)
    assert 50 <= granted <= 50 + 3 + 5, "half the rate, what it has grown, and the burst of half the rate"
    assert stage.granted[0][1].rate_per_second == pytest.approx(12.5)


def test_an_operator_without_a_rate_is_not_known_here_and_no_permits_are_wanted_by_nobody() -> None:
    limits = RateLimits(job(1, 1), lambda _: True)
    assert limits.on(RequestPermits(JOB, ExecutionAttemptId("a"), OperatorId("plain"), 1), 0) == []
    assert limits.on(RequestPermits(JOB, ExecutionAttemptId("a"), FETCH, 0), 0) == []
    assert limits.on(RequestPermits(JOB, ExecutionAttemptId("a"), FETCH, -5), 0) == []


# ---------------------------------------------------------------------------------------------------- in general


@dataclass(frozen=True)
class Ask:
    subtask: int
    count: int


@dataclass(frozen=True)
class Pass:
    ms: float


@dataclass(frozen=True)
class Throttle:
    retry_after_ms: float


@dataclass(frozen=True)
class Restart:
    """The attempt of a subtask ends, and another one takes its place."""

    subtask: int


Happening = Ask | Pass | Throttle | Restart
HAPPENINGS = st.lists(
    st.builds(Ask, st.integers(0, 3), st.integers(1, 60))
    | st.builds(Pass, st.floats(0, 40) | st.floats(0, 3000))
    | st.builds(Throttle, st.just(0.0) | st.floats(0, 5000))
    | st.builds(Restart, st.integers(0, 3)),
    max_size=30,
)
RATES = st.sampled_from([0.01, 0.7, 1.0, 10.0, 15.0, 33.3, 100.0, 2500.0])


def played(rate: float, happenings: list[Happening]) -> Stage:
    stage, attempts = Stage(rate), [0] * 4
    for each in happenings:
        match each:
            case Ask(subtask, count):
                stage.ask(f"{subtask}-{attempts[subtask]}", count)
            case Pass(ms):
                stage.passes(ms)
            case Throttle(retry_after_ms):
                stage.throttle(retry_after_ms)
            case Restart(subtask):
                stage.end(f"{subtask}-{attempts[subtask]}")
                attempts[subtask] += 1
        starving = {waiter: others for waiter, others in stage.passed_by.items() if any(n > 1 for n in others.values())}
        assert not starving, "somebody was granted some twice while another one waited"
    return stage


@given(RATES, HAPPENINGS)
def test_in_no_time_more_is_granted_than_rate_and_burst_give(rate: float, happenings: list[Happening]) -> None:
    stage = played(rate, happenings)
    burst = max(1.0, rate * BURST_MS / 1000)
    sums = [0, *accumulate(grant.count for _, grant in stage.granted)]
    for first, (begin_ms, _) in enumerate(stage.granted):
        for last in range(first, len(stage.granted)):
            window_ms = stage.granted[last][0] - begin_ms
            assert sums[last + 1] - sums[first] <= rate * window_ms / 1000 + burst + 1e-6


@given(RATES, HAPPENINGS)
@example(3.7, [Ask(0, 2), Ask(2, 3), Throttle(2027.4443185969849), Ask(1, 1), Throttle(2519.9356210632764)])
def test_all_that_is_wanted_is_granted_in_the_end(rate: float, happenings: list[Happening]) -> None:
    stage = played(rate, happenings)
    wanted = stage.wanted.total()
    before = stage.timers
    while stage.wanted.total():
        stage.next_timer()
    assert stage.timers - before <= wanted + 1, "each timer but the first one finds something to grant"


@given(RATES)
def test_a_rate_that_is_wanted_is_used_up(rate: float) -> None:
    """With timers in time; for a bucket of one token each ms that a timer is late is lost."""
    stage = Stage(rate)
    for attempt in "abcd":
        stage.ask(attempt, 10**6)
    stage.passes(100_000)
    granted = sum(grant.count for _, grant in stage.granted)
    assert granted >= rate * 100 * 0.99 - max(1, rate * BURST_MS / 1000)
