"""MetricBook: the figures of one job's tasks by their heartbeats, and the rates that are made of them.

A value machine of the JobManager. A rate is made of two readings by the clock of the task's own process, a few seconds
apart, so it does not depend on when a heartbeat comes. Kept are the readings of that time and the last one of each
subtask, also after the job's end. Names and meanings are Flink's where it has one; docs/metrics.md lists all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ...messages import (
    END_OF_TIME,
    HISTOGRAM_FIGURES,
    NO_WATERMARK,
    ExecutionAttemptId,
    Heartbeat,
    OperatorFigures,
    TaskManagerId,
    TaskMetrics,
    UserMetric,
)

WINDOW_MS = 5_000.0
"""What a rate looks back on at most."""
MAX_READINGS = 32
"""Of one attempt: heartbeats may be dense."""

_COUNTS: Mapping[str, Callable[[TaskMetrics], float]] = {
    "numRecordsIn": lambda task: task.records_in,
    "numRecordsOut": lambda task: task.records_out,
    "numBuffersIn": lambda task: task.batches_in,
    "numBytesIn": lambda task: task.input_bytes,
    "numBytesOut": lambda task: task.output_bytes,
}
"""Each has a rate as well, under the same name with PerSecond."""


@dataclass(slots=True)
class _Known:
    task_manager_id: TaskManagerId
    readings: deque[TaskMetrics] = field(default_factory=lambda: deque(maxlen=MAX_READINGS))

    def take(self, reading: TaskMetrics) -> None:
        self.readings.append(reading)
        while len(self.readings) > 2 and self.readings[1].clock_ms <= reading.clock_ms - WINDOW_MS:
            self.readings.popleft()


class MetricBook:
    """One job's."""

    def __init__(self) -> None:
        self._known: dict[ExecutionAttemptId, _Known] = {}
        self.processes: dict[TaskManagerId, dict[str, float]] = {}
        """By TaskManager, the figures of its process."""

    def heard(self, task_manager_id: TaskManagerId, beat: Heartbeat) -> None:
        self.processes[task_manager_id] = beat.process or {}
        for task in beat.metrics:
            known = self._known.get(task.attempt_id)
            if known is None:
                known = self._known[task.attempt_id] = _Known(task_manager_id)
            known.take(task)

    def lost(self, task_manager_id: TaskManagerId) -> None:
        self.processes.pop(task_manager_id, None)

    def keep(self, current: Iterable[ExecutionAttemptId]) -> None:
        """Forget all attempts but these."""
        wanted = set(current)
        self._known = {attempt: known for attempt, known in self._known.items() if attempt in wanted}

    def last(self, attempt_id: ExecutionAttemptId) -> TaskMetrics | None:
        """Its newest reading; None: it has not been heard of yet."""
        known = self._known.get(attempt_id)
        return known.readings[-1] if known is not None else None

    def values(self, attempt_id: ExecutionAttemptId) -> tuple[dict[str, float], dict[str, str]]:
        """Figures by name, and the kinds of those that user code has made; nothing of an unknown attempt."""
        known = self._known.get(attempt_id)
        if known is None:
            return {}, {}
        last, first = known.readings[-1], known.readings[0]
        per_s = _rate_of(first, last)
        values = _times(first, last) | _usual(last)
        for name, read in _COUNTS.items():
            values[name] = float(read(last))
            values[f"{name}PerSecond"] = per_s(read(first), read(last))
        has_event_time = last.event_time is not None and last.event_time.output_watermark_ms != NO_WATERMARK
        for operator in last.operators:
            values |= _of_operator(operator, has_event_time)
        kinds: dict[str, str] = {}
        before = {(each.operator_id, each.name): each for each in first.user}
        for metric in last.user:
            kinds[f"{metric.operator}.{metric.name}"] = metric.kind
            values |= _of_user(metric, before.get((metric.operator_id, metric.name)), per_s)
        return values, kinds


def _rate_of(first: TaskMetrics, last: TaskMetrics) -> Callable[[float, float], float]:
    passed_s = (last.clock_ms - first.clock_ms) / 1000

    def per_s(before: float, now: float) -> float:
        return max(0.0, now - before) / passed_s if passed_s > 0 else 0.0

    return per_s


def _times(first: TaskMetrics, last: TaskMetrics) -> dict[str, float]:
    """Where its time goes: three parts that make a second."""
    passed_ms = last.clock_ms - first.clock_ms
    if passed_ms <= 0 or last.status != "running":
        busy = held = idle = 0.0
    else:
        busy = min(1000.0, max(0.0, 1000 * (last.busy_ms - first.busy_ms) / passed_ms))
        held = min(1000.0 - busy, max(0.0, 1000 * (last.backpressured_ms - first.backpressured_ms) / passed_ms))
        idle = 1000.0 - busy - held
    return {
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": held,
        "idleTimeMsPerSecond": idle,
        "accumulateBusyTimeMs": float(last.busy_ms),
        "accumulateBackPressuredTimeMs": float(last.backpressured_ms),
    }


def _usual(last: TaskMetrics) -> dict[str, float]:
    values = {
        "inPoolUsage": last.input_usage,
        "outPoolUsage": last.output_usage,
        "checkpointAlignmentTime": last.alignment_ms * 1e6,
    }
    time = last.event_time
    if time is not None:
        values["numLateRecordsDropped"] = float(time.late_records)
        if NO_WATERMARK < time.input_watermark_ms < END_OF_TIME:
            values["currentInputWatermark"] = float(time.input_watermark_ms)
        if NO_WATERMARK < time.output_watermark_ms < END_OF_TIME:
            values["currentOutputWatermark"] = float(time.output_watermark_ms)
        if time.lag_ms is not None:
            values["watermarkLag"] = float(time.lag_ms)
    return values


def _of_operator(operator: OperatorFigures, has_event_time: bool) -> dict[str, float]:
    found = {
        "numLateRecordsDropped": operator.late_records if has_event_time or operator.late_records else None,
        "recordsInFlight": operator.in_flight,
        "stateEntries": operator.state_entries,
        "stateSize": operator.state_size_bytes,
    }
    return {f"{operator.operator}.{name}": float(value) for name, value in found.items() if value is not None}


def _of_user(metric: UserMetric, before: UserMetric | None, per_s: Callable[[float, float], float]) -> dict[str, float]:
    name = f"{metric.operator}.{metric.name}"
    match metric.kind:
        case "meter":
            count = metric.values[0]
            return {name: per_s(before.values[0] if before else 0.0, count), f"{name}_count": count}
        case "histogram":
            figures = zip(HISTOGRAM_FIGURES, metric.values, strict=False)
            return {f"{name}_{figure}": value for figure, value in figures}
        case _:
            return {name: metric.values[0]}
