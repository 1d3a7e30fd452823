"""Which subtask should I look at? The ten subtasks of a job that say most, each with why. A pure function.

Candidates are those that hold the others up: busy all the time, waiting for their outputs, behind in event time, or
with far more records than their peers. What is only a consequence ranks lower: a task that waits for its outputs is
slowed down by one behind it. Flink: the proposal of a Top-N tab.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...messages import END_OF_TIME, NO_WATERMARK, JobVertex, SubtaskView, TaskMetrics, VertexId

MOST = 10
_BUSY, _WAITS, _SKEW, _LAG_MS = 0.5, 0.1, 1.5, 10_000
"""From where on it is worth a word."""


@dataclass(frozen=True, slots=True)
class Suspect:
    vertex_id: VertexId
    vertex_name: str
    subtask_index: int
    score: float
    why: str


def suspects_of(
    vertex: JobVertex, subtasks: Sequence[SubtaskView], tasks: Sequence[TaskMetrics | None], *, feeds: bool
) -> list[Suspect]:
    """Those of one vertex; none where all runs easily. `tasks`: of the subtasks, one by one, as far as they have been
    heard of; `feeds`: whether others take what it emits.
    """
    mean = sum([each.records_in_per_second for each in subtasks]) / (len(subtasks) or 1)
    found = []
    for each, task in zip(subtasks, tasks, strict=True):
        if reasons := _reasons(each, task, mean, len(subtasks)):
            score = sum(weight for weight, _ in reasons) - (0.5 if feeds and _waits(each) else 0)
            words = ", ".join(text for _, text in reasons)
            found.append(Suspect(vertex.vertex_id, vertex.name, each.subtask_index, score, words))
    return found


def first(found: Iterable[Suspect]) -> list[Suspect]:
    """The most suspicious ones of a job, the first one first."""
    return sorted(found, key=lambda one: -one.score)[:MOST]


def _waits(each: SubtaskView) -> bool:
    return each.back_pressured > _WAITS


def _reasons(each: SubtaskView, task: TaskMetrics | None, mean: float, peers: int) -> list[tuple[float, str]]:
    if each.state.is_terminal:
        return []
    found = []
    if each.busy > _BUSY:
        found.append((2 * each.busy, f"busy {each.busy:.0%}"))
    if _waits(each):
        found.append((each.back_pressured, f"waits for its outputs {each.back_pressured:.0%}"))
    if peers > 1 and mean > 1 and each.records_in_per_second > _SKEW * mean:
        times = each.records_in_per_second / mean
        found.append((min(1.0, (times - 1) / 2), f"takes {times:.1f} times the mean of its {peers} subtasks"))
    time = task.event_time if task is not None else None
    is_known = time is not None and NO_WATERMARK < time.output_watermark_ms < END_OF_TIME
    if time is not None and is_known and not time.is_idle and time.standing_ms > _LAG_MS:
        found.append((min(1.0, time.standing_ms / 60_000), f"event time stands for {time.standing_ms / 1000:,.0f} s"))
    return found
