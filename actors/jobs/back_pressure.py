"""BackPressure: how much of its time each subtask of a vertex waits for its consumers, to show to users.

A subtask's ratio is the share of its samples in which its thread waited for output credit. The tracker keeps the latest
figures of each vertex: it answers at once with what it has, says whether that is out of date, and has new samples taken
then. Figures that nobody asks for any more are forgotten.

    nothing known --request--> samples pending --all taken--> known --refresh interval--> known, but out of date

A value machine: it takes no sample and knows no timer. Flink: BackPressureStatsTracker, JobVertexBackPressureHandler.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never

from ...messages import SubtaskIndex, VertexId

OK_UP_TO, LOW_UP_TO = 0.10, 0.50
"""The greatest ratios, both included, that count as OK and as LOW."""


class BackPressureLevel(Enum):
    OK = "ok"
    LOW = "low"
    HIGH = "high"

    @classmethod
    def of(cls, ratio: float) -> BackPressureLevel:
        if ratio <= OK_UP_TO:
            return cls.OK
        return cls.LOW if ratio <= LOW_UP_TO else cls.HIGH


@dataclass(frozen=True, slots=True)
class SubtaskBackPressure:
    subtask_index: SubtaskIndex
    ratio: float
    """A share of its time, 0 to 1."""

    @property
    def level(self) -> BackPressureLevel:
        return BackPressureLevel.of(self.ratio)

    @classmethod
    def of_samples(cls, subtask: SubtaskIndex, taken: list[bool]) -> SubtaskBackPressure:
        """From samples that say whether the subtask waited; without any it did not."""
        return cls(subtask, sum(taken) / len(taken) if taken else 0.0)


@dataclass(frozen=True, slots=True)
class VertexBackPressure:
    """All subtasks, by index, and the time of the last sample."""

    subtasks: tuple[SubtaskBackPressure, ...]
    end_ms: float

    @property
    def max_ratio(self) -> float:
        return max((subtask.ratio for subtask in self.subtasks), default=0.0)

    @property
    def level(self) -> BackPressureLevel:
        """That of the greatest ratio: one slow subtask holds up all."""
        return BackPressureLevel.of(self.max_ratio)


@dataclass(frozen=True, slots=True)
class BackPressureSettings:
    """Flink's defaults."""

    samples: int = 100
    delay_between_samples_ms: int = 50
    refresh_interval_ms: int = 60_000
    """Figures of this age are out of date."""
    cleanup_interval_ms: int = 600_000
    """Figures that nobody has asked for this long are forgotten."""


# ------------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class BackPressureRequested:
    """Somebody wants the figures of a vertex with this number of subtasks."""

    vertex_id: VertexId
    subtasks: int


@dataclass(frozen=True, slots=True)
class SampleTaken:
    """Whether a subtask waited for output credit just now."""

    vertex_id: VertexId
    subtask_index: SubtaskIndex
    is_blocked: bool


@dataclass(frozen=True, slots=True)
class SamplingEnded:
    """No more samples come, though some are missing: a task is gone, say. What has come counts."""

    vertex_id: VertexId


@dataclass(frozen=True, slots=True)
class JobEnded:
    """Its status is terminal, or the tracker is to stop: no samples from now on, and late ones are dropped."""


BackPressureEvent: TypeAlias = BackPressureRequested | SampleTaken | SamplingEnded | JobEnded


# ----------------------------------------------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True)
class BackPressureAnswer:
    """What is known of a vertex, None for nothing, and whether it is out of date."""

    vertex_id: VertexId
    figures: VertexBackPressure | None
    is_outdated: bool


@dataclass(frozen=True, slots=True)
class TakeSamples:
    """`samples` of every subtask, `delay_ms` apart; each answered by SampleTaken, or all together by SamplingEnded."""

    vertex_id: VertexId
    subtasks: int
    samples: int
    delay_ms: int


BackPressureEffect: TypeAlias = BackPressureAnswer | TakeSamples


@dataclass(slots=True)
class _Known:
    figures: VertexBackPressure
    asked_ms: float


class BackPressureTracker:
    """The vertices of one job."""

    def __init__(self, settings: BackPressureSettings) -> None:
        self._settings = settings
        self._known: dict[VertexId, _Known] = {}
        self._pending: dict[VertexId, dict[SubtaskIndex, list[bool]]] = {}
        """The samples so far of vertices that are being sampled; there is a list for every subtask from the start."""
        self._has_ended = False

    def on(self, event: BackPressureEvent, now_ms: float) -> list[BackPressureEffect]:
        """Take one event; `now_ms` never goes back."""
        self._forget_unwanted(now_ms)
        match event:
            case BackPressureRequested():
                return self._answer(event, now_ms)
            case SampleTaken():
                self._take(event, now_ms)
            case SamplingEnded(vertex_id):
                self._complete(vertex_id, now_ms)
            case JobEnded():
                self._has_ended = True
                self._pending.clear()
            case _:
                assert_never(event)
        return []

    def _answer(self, request: BackPressureRequested, now_ms: float) -> list[BackPressureEffect]:
        vertex_id, known = request.vertex_id, self._known.get(request.vertex_id)
        if known is not None:
            known.asked_ms = now_ms
        is_outdated = known is None or now_ms - known.figures.end_ms >= self._settings.refresh_interval_ms
        effects: list[BackPressureEffect] = [
            BackPressureAnswer(vertex_id, known.figures if known else None, is_outdated)
        ]
        if is_outdated and not self._has_ended and vertex_id not in self._pending:
            self._pending[vertex_id] = {SubtaskIndex(index): [] for index in range(request.subtasks)}
            samples, delay_ms = self._settings.samples, self._settings.delay_between_samples_ms
            effects.append(TakeSamples(vertex_id, request.subtasks, samples, delay_ms))
        return effects

    def _take(self, sample: SampleTaken, now_ms: float) -> None:
        """One that nobody waits for, or one too many, is dropped."""
        sampling = self._pending.get(sample.vertex_id, {})
        taken = sampling.get(sample.subtask_index)
        if taken is None or len(taken) == self._settings.samples:
            return
        taken.append(sample.is_blocked)
        if all(len(each) == self._settings.samples for each in sampling.values()):
            self._complete(sample.vertex_id, now_ms)

    def _complete(self, vertex_id: VertexId, now_ms: float) -> None:
        sampling = self._pending.pop(vertex_id, None)
        if sampling is not None:
            shares = tuple(SubtaskBackPressure.of_samples(subtask, taken) for subtask, taken in sampling.items())
            self._known[vertex_id] = _Known(VertexBackPressure(shares, now_ms), now_ms)

    def _forget_unwanted(self, now_ms: float) -> None:
        oldest_ms = now_ms - self._settings.cleanup_interval_ms
        self._known = {vertex_id: known for vertex_id, known in self._known.items() if known.asked_ms > oldest_ms}
