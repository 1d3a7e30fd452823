"""RateLimits: how many calls the subtasks of each operator with a rate may begin. A value machine of the JobMaster.

A token bucket for each such operator, as long as the job lives: permits that die with an attempt are lost, so a restart
gives none twice. Attempts that want some wait in line until it is worth a message; then all tokens are dealt out in
equal shares, the first in line first. In any time, all subtasks together get at most what the rate gives in it, and the
burst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from ...messages import (
    ExecutionAttemptId,
    GrantPermits,
    JobGraph,
    JobId,
    OperatorDescription,
    ReportThrottled,
    RequestPermits,
)
from ..checkpoints.checkpoint_effects import Schedule
from .adaptive_rate import AdaptiveRate
from .job_effects import PermitsDue

BURST_MS: Final = 100
"""A bucket holds what the rate gives in this time, and one token at least."""
LEAST_DELAY_MS: Final = 1.0
_ROUNDING: Final = 1e-9
_EARLY_MS: Final = 1e-6
"""A timer may come this much before its time, as its delay was rounded."""

RateEvent: TypeAlias = RequestPermits | ReportThrottled | PermitsDue
Grants: TypeAlias = list[GrantPermits | Schedule[PermitsDue]]


class RateLimits:
    """One job's. `is_active` says of an attempt whether it may still begin calls."""

    def __init__(self, job: JobGraph, is_active: Callable[[ExecutionAttemptId], bool]) -> None:
        self._buckets = {
            operator.operator_id: _Bucket(job.job_id, operator, rate, vertex.parallelism)
            for vertex in job.vertices
            for operator in vertex.operators
            if (rate := operator.rate_per_second) is not None
        }
        self._is_active = is_active

    def on(self, event: RateEvent, now_ms: float) -> Grants:
        """What is granted now, and when to look again. Nothing for an operator without a rate."""
        bucket = self._buckets.get(event.operator_id)
        if bucket is None:
            return []
        bucket.advance(now_ms)
        match event:
            case RequestPermits(attempt_id=attempt_id, count=count):
                if count > 0:
                    bucket.waiting[attempt_id] = count  # at the place of its older request, if there is one
            case ReportThrottled(retry_after_ms=retry_after_ms):
                bucket.rate.throttle(now_ms, max(retry_after_ms, 0.0))
            case PermitsDue():
                bucket.is_timed = False
        bucket.forget([attempt_id for attempt_id in bucket.waiting if not self._is_active(attempt_id)])
        return [*bucket.grants(now_ms), *bucket.timer(now_ms)]


class _Bucket:
    """One operator's: its tokens, and who waits for them. Full at first."""

    def __init__(self, job_id: JobId, operator: OperatorDescription, per_second: float, parallelism: int) -> None:
        self.rate = AdaptiveRate(per_second)
        self.waiting: dict[ExecutionAttemptId, int] = {}
        """Who waits, in line, and for how many."""
        self.is_timed = False
        """Whether a timer is set. Events in between make it too early, or too late by half a burst at most."""
        self._job_id = job_id
        self._operator_id = operator.operator_id
        self._parallelism = parallelism
        self._tokens = self._size

    @property
    def _size(self) -> float:
        return max(1.0, self.rate.per_second * BURST_MS / 1000)

    @property
    def _worth_it(self) -> int:
        """With this many tokens those who wait are served: with all that they want, or half of what the bucket holds,
        so that no token runs over while they ask again.
        """
        return min(sum(self.waiting.values()), max(int(self._size / 2), 1))

    def advance(self, now_ms: float) -> None:
        gained = self.rate.advance(now_ms)
        self._tokens = min(self._tokens + gained, self._size)

    def forget(self, attempts: Iterable[ExecutionAttemptId]) -> None:
        for attempt_id in attempts:
            del self.waiting[attempt_id]

    def grants(self, now_ms: float) -> Iterator[GrantPermits]:
        tokens = int(self._tokens + _ROUNDING)
        if not self.waiting or tokens < self._worth_it or now_ms < self.rate.resumes_ms - _EARLY_MS:
            return
        share = self.rate.per_second / self._parallelism
        for attempt_id, count in zip(list(self.waiting), _dealt(tokens, list(self.waiting.values())), strict=True):
            if count:
                del self.waiting[attempt_id]
                self._tokens -= count
                yield GrantPermits(self._job_id, attempt_id, self._operator_id, count, share)

    def timer(self, now_ms: float) -> Iterator[Schedule[PermitsDue]]:
        if self.waiting and not self.is_timed:
            self.is_timed = True
            delay_ms = max(self.rate.wait_ms(max(self._worth_it - self._tokens, 0.0)), self.rate.resumes_ms - now_ms)
            yield Schedule(max(delay_ms, LEAST_DELAY_MS), PermitsDue(self._operator_id))


def _dealt(tokens: int, wanted: Sequence[int]) -> list[int]:
    """Equal shares, but none gets more than it wants; the rest goes to the first ones."""
    given = [0] * len(wanted)
    while hungry := [place for place, count in enumerate(wanted) if given[place] < count]:
        share = max(tokens // len(hungry), 1)
        for place in hungry:
            more = min(share, wanted[place] - given[place], tokens)
            given[place] += more
            tokens -= more
        if not tokens:
            break
    return given
