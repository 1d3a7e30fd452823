"""VertexSamples: has the tasks of a vertex sampled, and knows its back-pressure and its flame graph by that.

    asked -> TriggerStackTraceSample to each running task -> StackTraceSample of each, or overdue -> known

A value machine of the JobManager around the BackPressureTracker, which decides when new samples are due, and keeps what
was found. Flink: StackTraceSampleCoordinator, JobVertexFlameGraphHandler.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from ...messages import (
    ExecutionAttemptId,
    ExecutionState,
    FlameGraph,
    JobId,
    JobVertex,
    RequestFlameGraph,
    SampledFrame,
    StackTraceSample,
    SubtaskBackPressureReport,
    SubtaskIndex,
    TaskManagerId,
    TriggerStackTraceSample,
    VertexBackPressureReport,
    VertexId,
)
from .back_pressure import (
    BackPressureAnswer,
    BackPressureRequested,
    BackPressureSettings,
    BackPressureTracker,
    JobEnded,
    SampleTaken,
    SamplingEnded,
    TakeSamples,
    VertexBackPressure,
)
from .execution import Execution

OVERDUE_MS = 10_000
"""So much later than they should have come, samples are given up."""
STACK_DEPTH = 64
FLAME_GRAPHS_KEPT = 16
"""Of this number of vertices, those that were sampled last."""

Ratios: TypeAlias = "dict[SubtaskIndex, tuple[float, float]]"
"""By subtask, which part of its time it was idle and busy, by its own clocks."""


@dataclass(frozen=True, slots=True)
class TriggerSample:
    """An effect: send it to the TaskManager."""

    task_manager_id: TaskManagerId
    message: TriggerStackTraceSample


@dataclass(frozen=True, slots=True)
class SamplesOverdue:
    """A timer that is due, and as an effect `after_ms`: samples that have not come by then are given up."""

    vertex_id: VertexId
    number: int
    after_ms: float


@dataclass(frozen=True, slots=True)
class VertexSampled:
    """An effect: those who wait for this vertex get their answer."""

    vertex_id: VertexId


SamplesEffect: TypeAlias = TriggerSample | SamplesOverdue | VertexSampled


@dataclass(slots=True)
class _Sampling:
    number: int
    awaited: dict[ExecutionAttemptId, SubtaskIndex]
    stacks: dict[SubtaskIndex, tuple[SampledFrame, ...]] = field(default_factory=dict)
    end_wall_ms: int = 0


class VertexSamples:
    """One job's."""

    def __init__(self, job_id: JobId, settings: BackPressureSettings | None = None) -> None:
        self._job_id = job_id
        self._settings = settings or BackPressureSettings()
        self._tracker = BackPressureTracker(self._settings)
        self._number = 0
        self._under_way: dict[VertexId, _Sampling] = {}
        self._answers: dict[VertexId, BackPressureAnswer] = {}
        """The last ones."""
        self._has_ended = False
        self._sampled: dict[VertexId, _Sampling] = {}
        """The one that is newest last."""

    def request(
        self, vertex: JobVertex, executions: Iterable[Execution], now_ms: float
    ) -> tuple[BackPressureAnswer, list[SamplesEffect]]:
        """What is known; and if that is out of date, what has to be done to know more. `executions`: the current ones
        of the vertex.
        """
        running = [each for each in executions if each.state is ExecutionState.RUNNING]
        answer = self._answers.get(vertex.vertex_id)
        if not running and not self._has_ended:
            figures = None if answer is None else answer.figures
            return BackPressureAnswer(vertex.vertex_id, figures, is_outdated=True), []
        effects: list[SamplesEffect] = []
        for effect in self._tracker.on(BackPressureRequested(vertex.vertex_id, vertex.parallelism), now_ms):
            match effect:
                case BackPressureAnswer():
                    answer = self._answers[vertex.vertex_id] = effect
                case TakeSamples():
                    effects = self._begin(effect, running)
        assert answer is not None, "the tracker answers always"
        return answer, effects

    def is_under_way(self, vertex_id: VertexId) -> bool:
        return vertex_id in self._under_way

    def heard(self, sample: StackTraceSample, now_ms: float, wall_ms: int) -> list[SamplesEffect]:
        """One of an older sampling, or of an attempt that was not asked, is dropped."""
        for vertex_id, sampling in self._under_way.items():
            if sampling.number == sample.number and sample.attempt_id in sampling.awaited:
                subtask = sampling.awaited.pop(sample.attempt_id)
                for is_held_back in sample.held_back:
                    self._tracker.on(SampleTaken(vertex_id, subtask, is_held_back), now_ms)
                sampling.stacks[subtask] = sample.frames
                return [] if sampling.awaited else self._complete(vertex_id, now_ms, wall_ms)
        return []

    def overdue(self, timer: SamplesOverdue, now_ms: float, wall_ms: int) -> list[SamplesEffect]:
        """What has come by now counts."""
        sampling = self._under_way.get(timer.vertex_id)
        is_current = sampling is not None and sampling.number == timer.number
        return self._complete(timer.vertex_id, now_ms, wall_ms) if is_current else []

    def job_ended(self, now_ms: float) -> list[SamplesEffect]:
        """No samples from now on; those who wait get what is known."""
        self._has_ended = True
        self._tracker.on(JobEnded(), now_ms)
        waiting = [VertexSampled(vertex_id) for vertex_id in self._under_way]
        self._under_way.clear()
        return [*waiting]

    def flame_graph(self, vertex: JobVertex, wanted: RequestFlameGraph) -> FlameGraph:
        """Of the newest samples; without frames as long as there are none."""
        sampling = self._sampled.get(vertex.vertex_id)
        stacks = {} if sampling is None else sampling.stacks
        chosen = [frames for subtask, frames in stacks.items() if wanted.subtask_index in (-1, subtask)]
        merged = merged_frames(chosen, wanted.kind)
        samples = sum(each.samples for each in merged if each.parent == -1)
        end_ms = 0 if sampling is None else sampling.end_wall_ms
        return FlameGraph(self._job_id, vertex.vertex_id, vertex.name, end_ms, samples, merged)

    def report(
        self, vertex: JobVertex, answer: BackPressureAnswer, ratios: Ratios, now_ms: float, wall_ms: int
    ) -> VertexBackPressureReport:
        """As clients get it."""
        status = "deprecated" if answer.is_outdated else "ok"
        figures: VertexBackPressure | None = answer.figures
        if figures is None:
            return VertexBackPressureReport(self._job_id, vertex.vertex_id, vertex.name, status)
        subtasks = tuple(
            SubtaskBackPressureReport(
                each.subtask_index, each.level.value, each.ratio, *ratios.get(each.subtask_index, (None, None))
            )
            for each in figures.subtasks
        )
        end_ms = wall_ms - round(now_ms - figures.end_ms)
        level = figures.level.value
        return VertexBackPressureReport(self._job_id, vertex.vertex_id, vertex.name, status, level, end_ms, subtasks)

    def _begin(self, wanted: TakeSamples, running: list[Execution]) -> list[SamplesEffect]:
        self._number += 1
        awaited = {each.attempt_id: each.subtask_index for each in running}
        self._under_way[wanted.vertex_id] = _Sampling(self._number, awaited)
        triggers: list[SamplesEffect] = [
            TriggerSample(
                each.task_manager_id,
                TriggerStackTraceSample(
                    self._job_id, each.attempt_id, self._number, wanted.samples, wanted.delay_ms, STACK_DEPTH
                ),
            )
            for each in running
            if each.task_manager_id is not None
        ]
        return [
            *triggers,
            SamplesOverdue(wanted.vertex_id, self._number, wanted.samples * wanted.delay_ms + OVERDUE_MS),
        ]

    def _complete(self, vertex_id: VertexId, now_ms: float, wall_ms: int) -> list[SamplesEffect]:
        sampling = self._under_way.pop(vertex_id)
        sampling.end_wall_ms = wall_ms
        self._sampled.pop(vertex_id, None)
        self._sampled[vertex_id] = sampling
        while len(self._sampled) > FLAME_GRAPHS_KEPT:
            del self._sampled[next(iter(self._sampled))]
        self._tracker.on(SamplingEnded(vertex_id), now_ms)
        return [VertexSampled(vertex_id)]


def merged_frames(trees: Iterable[tuple[SampledFrame, ...]], kind: str) -> tuple[SampledFrame, ...]:
    """One tree of several. `kind`: see RequestFlameGraph."""
    merged: list[SampledFrame] = []
    samples: list[int] = []
    index: dict[tuple[int, str, str, int, str], int] = {}
    for tree in trees:
        places: list[int] = []
        for frame in tree:
            parent = -1 if frame.parent == -1 else places[frame.parent]
            if parent == -2 or (frame.parent == -1 and not _is_wanted(frame, kind)):
                places.append(-2)
                continue
            key = (parent, frame.function, frame.path, frame.line, frame.kind)
            place = index.get(key)
            if place is None:
                place = index[key] = len(merged)
                merged.append(SampledFrame(*key, 0))
                samples.append(0)
            samples[place] += frame.samples
            places.append(place)
    return tuple(
        SampledFrame(each.parent, each.function, each.path, each.line, each.kind, count)
        for each, count in zip(merged, samples, strict=True)
    )


def _is_wanted(root: SampledFrame, kind: str) -> bool:
    return kind == "full" or (kind == "on_cpu") == (root.function == WORKS)


WORKS = "(works)"
"""The outermost frame of what a task does; another one says what it waits for. See actors/tasks/task_sampler.py."""
