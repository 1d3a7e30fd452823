"""JobTimeline: how one job went, from its submission on: rates by heartbeats, and what happened, with its time.

A value machine: fed with the heartbeats of TaskManagers and the events that the job's listeners get; nothing is decided
by what stands here. It stays small however long the job runs: when there are too many samples, every second one goes,
and from then on fewer are taken; of what happened, the newest is kept, and checkpoints make no room for themselves at
the expense of failures.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    ExecutionAttemptId,
    JobGraph,
    JobStatus,
    JobStatusChanged,
    Message,
    SavepointView,
    TaskManagerChanged,
    TaskMetrics,
    TimelineMark,
    TimelineSample,
)
from ...messages.failures import tell_line

RATE_WINDOW_MS = 4_000
SAMPLES_KEPT = 720
MARKS_KEPT = 400
"""Of checkpoints, and of everything else, each."""
SAVEPOINTS_KEPT = 100


class Rates:
    """What one attempt has done in the last seconds, by its heartbeats: a step may take longer than the time between
    two of them.
    """

    __slots__ = ("_heard", "back_pressured", "busy", "metrics", "records_in_per_second", "records_out_per_second")

    def __init__(self, metrics: TaskMetrics, now_ms: float) -> None:
        self.metrics = metrics
        self.records_in_per_second = self.records_out_per_second = 0.0
        self.busy = self.back_pressured = 0.0
        self._heard = deque([(metrics.clock_ms or now_ms, metrics)])

    def heard(self, metrics: TaskMetrics, now_ms: float) -> None:
        """One more heartbeat of the attempt. Its own clock counts: two heartbeats may arrive together."""
        self.metrics, heard = metrics, self._heard
        now_ms = metrics.clock_ms or now_ms
        heard.append((now_ms, metrics))
        while len(heard) > 2 and now_ms - heard[1][0] >= RATE_WINDOW_MS:
            heard.popleft()
        began_ms, before = heard[0]
        elapsed_ms = now_ms - began_ms
        if elapsed_ms <= 0:
            return
        self.records_in_per_second = 1000 * max(0, metrics.records_in - before.records_in) / elapsed_ms
        self.records_out_per_second = 1000 * max(0, metrics.records_out - before.records_out) / elapsed_ms
        self.busy = _share(metrics.busy_ms - before.busy_ms, elapsed_ms)
        self.back_pressured = _share(metrics.backpressured_ms - before.backpressured_ms, elapsed_ms)

    def shares(self) -> tuple[float, float, float, float]:
        """In the order of SubtaskView."""
        return self.records_in_per_second, self.records_out_per_second, self.busy, self.back_pressured


class JobTimeline:
    """One job's. Wall times are those of the JobManager; where its clock is set back, the timeline goes on from where
    it was, since whoever follows it asks for what is newer than what he has.
    """

    def __init__(self, graph: JobGraph, started_ms: int, interval_ms: int = 1_000) -> None:
        targets, origins = {edge.target for edge in graph.edges}, {edge.source for edge in graph.edges}
        self._sources = {vertex.vertex_id for vertex in graph.vertices if vertex.vertex_id not in targets}
        self._sinks = {vertex.vertex_id for vertex in graph.vertices if vertex.vertex_id not in origins}
        self._rates: dict[ExecutionAttemptId, Rates] = {}
        self._samples: list[TimelineSample] = []
        self._interval_ms = interval_ms
        self._due_ms = -math.inf
        self._at_ms, self._at_now_ms = 0, 0.0
        """Of the last look: the timeline's time, and that of the clock that never jumps."""
        self._ahead_ms = 0
        """By how much the timeline is ahead of the wall clock."""
        self._checkpoints: deque[TimelineMark] = deque(maxlen=MARKS_KEPT)
        self._others: deque[TimelineMark] = deque(maxlen=MARKS_KEPT)
        self._savepoints: deque[SavepointView] = deque(maxlen=SAVEPOINTS_KEPT)
        self.statuses: dict[str, int] = {JobStatus.CREATED.value: started_ms}

    # -- what is fed in

    def heard(self, tasks: Iterable[TaskMetrics], now_ms: float) -> None:
        """A TaskManager's heartbeat. `now_ms` never goes back."""
        for task in tasks:
            if (rates := self._rates.get(task.attempt_id)) is None:
                self._rates[task.attempt_id] = Rates(task, now_ms)
            else:
                rates.heard(task, now_ms)

    def look(self, current: Iterable[ExecutionAttemptId], now_ms: float, wall_ms: int) -> None:
        """Take a sample, if one is due; rates of attempts other than these are forgotten. `now_ms` never goes back."""
        at_ms = wall_ms if wall_ms >= self._at_ms else self._at_ms + round(now_ms - self._at_now_ms)
        self._at_ms, self._at_now_ms, self._ahead_ms = at_ms, now_ms, at_ms - wall_ms
        if now_ms < self._due_ms:
            return
        known = self._rates
        self._rates = {each: known[each] for each in current if each in known}
        self._due_ms = now_ms + self._interval_ms
        self._samples.append(self._sample(at_ms))
        if len(self._samples) > SAMPLES_KEPT:
            self._samples = self._samples[::2]
            self._interval_ms *= 2

    def savepoints_stored(self, paths: Iterable[str], checkpoint_id: CheckpointId, wall_ms: int) -> None:
        self._savepoints.extend(SavepointView(each, checkpoint_id, wall_ms) for each in paths)

    def savepoint_removed(self, path: str) -> None:
        kept = [each for each in self._savepoints if each.path != path]
        self._savepoints = deque(kept, maxlen=SAVEPOINTS_KEPT)

    def savepoints(self) -> tuple[SavepointView, ...]:
        """The last ones that nobody has disposed of, oldest first."""
        return tuple(self._savepoints)

    def happened(self, event: Message, kind: str = "checkpoint") -> None:
        """An event for the job's listeners; `kind` of the checkpoint, if that is completed."""
        match event:
            case JobStatusChanged(status=status, timestamp_ms=at_ms):
                self.statuses[status.value] = at_ms
                if event.failure is not None:
                    self._others.append(TimelineMark(at_ms + self._ahead_ms, "failure", tell_line(event.failure)))
                self._others.append(TimelineMark(at_ms + self._ahead_ms, "status", status.value))
            case CheckpointCompleted(timestamp_ms=at_ms):
                text = f"{event.state_size_bytes:,} bytes"
                done = TimelineMark(at_ms + self._ahead_ms, kind, text, event.duration_ms, event.checkpoint_id)
                (self._others if kind == "savepoint" else self._checkpoints).append(done)
            case CheckpointAborted(timestamp_ms=at_ms):
                self._others.append(
                    TimelineMark(at_ms + self._ahead_ms, "checkpoint_failed", event.reason, number=event.checkpoint_id)
                )
            case TaskManagerChanged(timestamp_ms=at_ms):
                what = "task_manager" if event.registered else "task_manager_lost"
                self._others.append(TimelineMark(at_ms + self._ahead_ms, what, event.reason, number=event.index))
            case _:
                pass

    # -- what is asked

    def rates(self, attempt_id: ExecutionAttemptId) -> Rates | None:
        """None of an attempt that has not been heard of."""
        return self._rates.get(attempt_id)

    def samples(self, after_ms: int = 0) -> tuple[TimelineSample, ...]:
        return tuple(each for each in self._samples if each.at_ms > after_ms)

    def marks(self, after_ms: int = 0) -> tuple[TimelineMark, ...]:
        """Oldest first."""
        newer = [each for each in (*self._checkpoints, *self._others) if each.at_ms > after_ms]
        return tuple(sorted(newer, key=lambda each: each.at_ms))

    # -- inside

    def _sample(self, at_ms: int) -> TimelineSample:
        into = out_of = busy = back_pressured = 0.0
        lags = []
        for each in self._rates.values():
            busy, back_pressured = max(busy, each.busy), max(back_pressured, each.back_pressured)
            if each.metrics.vertex_id in self._sources:
                into += each.records_in_per_second
            if each.metrics.vertex_id in self._sinks:
                out_of += each.records_in_per_second
            if lag := _lag_ms(each):
                lags.append(lag)
        return TimelineSample(at_ms, into, out_of, busy, back_pressured, max(lags, default=None))


def _lag_ms(rates: Rates) -> int | None:
    time = rates.metrics.event_time
    return None if time is None or time.is_idle else time.lag_ms


def _share(ms: float, of_ms: float) -> float:
    return min(1.0, max(0.0, ms / of_ms))
