"""Metrics of user code: `self.metrics.counter("late").inc()` in an operator. Flink: MetricGroup and its metrics.

One group per operator and attempt. The operator's code writes; the TaskManager reads with each heartbeat, from a thread
of its own. Nothing is sent from here, and the rates of meters are made where all figures are (`actors/jobs`).
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ...messages import OperatorId, UserMetric

log = logging.getLogger(__name__)

MAX_METRICS = 100
"""Of one operator: further ones work, and are not reported. They travel with each heartbeat."""
MAX_NAME = 200
HISTOGRAM_WINDOW = 1024
"""The number of values, the newest ones, that quantiles are made of. Flink: DescriptiveStatisticsHistogram."""

_QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Counter:
    """A count that may go down again. Flink: Counter."""

    kind = "counter"
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self, by: int = 1) -> None:
        """Count up."""
        self.count += by

    def dec(self, by: int = 1) -> None:
        """Count down."""
        self.count -= by

    def values(self) -> tuple[float, ...]:
        return (float(self.count),)


class Meter:
    """Counts events, to show how many there are in a second. Flink: Meter."""

    kind = "meter"
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def mark(self, events: int = 1) -> None:
        """Count this number of events, which happen now."""
        self.count += events

    def values(self) -> tuple[float, ...]:
        return (float(self.count),)


class Gauge:
    """The last number that was set, or what a function returns. Flink: Gauge."""

    kind = "gauge"
    __slots__ = ("_read", "_value")

    def __init__(self, read: Callable[[], float] | None = None) -> None:
        self._read = read
        self._value: float | None = None

    def set(self, value: float) -> None:
        """Show this number from now on."""
        self._value = float(value)

    @property
    def has_function(self) -> bool:
        return self._read is not None

    def read(self) -> None:
        """On the task's thread: ask its function, if it has one. Raises what that raises."""
        if self._read is not None:
            self._value = float(self._read())

    def values(self) -> tuple[float, ...]:
        return () if self._value is None else (self._value,)


class Histogram:
    """How values are distributed: the last ones by quantiles, and how many there were in all. Flink: Histogram."""

    kind = "histogram"
    __slots__ = ("_count", "_recent", "_sum")

    def __init__(self) -> None:
        self._recent: list[float] = []
        self._count = 0
        self._sum = 0.0

    def update(self, value: float) -> None:
        """Add one value to the distribution."""
        recent = self._recent
        if len(recent) < HISTOGRAM_WINDOW:
            recent.append(value)
        else:
            recent[self._count % HISTOGRAM_WINDOW] = value
        self._count += 1
        self._sum += value

    def values(self) -> tuple[float, ...]:
        """See HISTOGRAM_FIGURES; nothing before the first value."""
        recent = sorted(self._recent)
        if not recent:
            return ()
        last = len(recent) - 1
        quantiles = (recent[math.ceil(share * len(recent)) - 1] for share in _QUANTILES)
        mean = math.fsum(recent) / len(recent)
        return tuple(map(float, (self._count, self._sum, recent[0], recent[last], mean, *quantiles)))


Metric = Counter | Meter | Gauge | Histogram
M = TypeVar("M", bound=Metric)


class MetricGroup:
    """`self.metrics` of an operator. The same name twice is the same metric; names live as long as the attempt."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._names: list[str] = []
        """In the order of the alphabet."""
        self._has_said: set[str] = set()

    def counter(self, name: str) -> Counter:
        """The counter of this name, made when it is asked for first. Raises ValueError for a name of another kind."""
        return self._metric(name, Counter)

    def meter(self, name: str) -> Meter:
        """The meter of this name: shown as events in a second, and as their number."""
        return self._metric(name, Meter)

    def histogram(self, name: str) -> Histogram:
        """The histogram of this name: shown by quantiles of its last values."""
        return self._metric(name, Histogram)

    def gauge(self, name: str, read: Callable[[], float] | None = None) -> Gauge:
        """`read`: called with each heartbeat, on the task's thread; without it, `set` the value. A later function takes
        the place of an earlier one.
        """
        if read is not None and not callable(read):
            raise TypeError(f"gauge {name!r}: wanted a function that returns a number, found {read!r:.80}")
        gauge = self._metric(name, Gauge)
        if read is not None:
            gauge._read = read
        return gauge

    @property
    def has_functions(self) -> bool:
        """Whether any gauge has to be read."""
        return any(isinstance(each, Gauge) and each.has_function for each in tuple(self._metrics.values()))

    def read_gauges(self, operator: str) -> None:
        """On the task's thread. A function that raises is logged once; its gauge keeps its value."""
        for name, metric in self._metrics.items():
            if isinstance(metric, Gauge):
                try:
                    metric.read()
                except Exception as error:  # noqa: BLE001  (a figure must not fail the job)
                    self._say_once(name, "gauge %r of operator %r has no value: %r", name, operator, error)

    def reported(self, operator_id: OperatorId, operator: str) -> Iterator[UserMetric]:
        """From any thread: those that have a value."""
        for name in tuple(self._names[:MAX_METRICS]):
            metric = self._metrics[name]
            values = metric.values()
            if values and all(map(math.isfinite, values)):
                yield UserMetric(operator_id, operator, name, metric.kind, values)

    def _metric(self, name: str, kind: type[M]) -> M:
        known: Any = self._metrics.get(name)
        if known is None:
            if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
                raise ValueError(f"the name of a metric: wanted 1 to {MAX_NAME} characters, found {name!r:.80}")
            known = self._metrics[name] = kind()
            self._names.insert(bisect_left(self._names, name), name)
            if len(self._names) > MAX_METRICS:
                self._say_once(
                    "",
                    "an operator has more than %d metrics: only the first of them by name are reported. A name with a "
                    "key or an id in it makes one metric for each: count them under one name",
                    MAX_METRICS,
                )
        elif type(known) is not kind:
            raise ValueError(f"metric {name!r} is a {known.kind} already: give the {kind.kind} another name")
        return known  # type: ignore[no-any-return]

    def _say_once(self, about: str, text: str, *args: object) -> None:
        if about not in self._has_said:
            self._has_said.add(about)
            log.warning(text, *args)


class OwnMetrics:
    """`metrics` of an operator: its context's group. An operator that has an attribute of this name keeps that."""

    def __get__(self, operator: Any, _owner: type) -> MetricGroup:
        if operator is None:
            return self  # type: ignore[return-value]  # of the class: as functions do
        context = getattr(operator, "context", None)
        if context is None:
            raise RuntimeError(
                f"{type(operator).__name__}.metrics is there once the operator runs: make its metrics in `open`"
            )
        return context.metrics  # type: ignore[no-any-return]
