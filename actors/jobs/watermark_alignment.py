"""WatermarkAlignment: how far the slowest source subtask of each group is, so that the others can wait for it.

A value machine of the JobMaster. A group has as members all subtasks of every vertex of which one has reported; one
that has not yet is waited for. A member that is idle, or whose data has ended, holds nobody. A subtask that is down is
where it was until its next attempt says otherwise. Flink: SourceCoordinator.WatermarkAggregator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...messages import END_OF_TIME, NO_WATERMARK, JobGraph, ReportWatermark, SubtaskIndex
from ..job_graph import SubtaskKey

_STEPS = 8
"""A new minimum is announced to all once it has come further by this part of the drift; to who reports, always."""


@dataclass(slots=True)
class _Group:
    members: dict[SubtaskKey, int]
    """By subtask, how far it is; END_OF_TIME if it is not waited for."""
    announced_ms: int = NO_WATERMARK


class WatermarkAlignment:
    """One job's."""

    def __init__(self, job: JobGraph) -> None:
        self._parallelism = {vertex.vertex_id: vertex.parallelism for vertex in job.vertices}
        self._groups: dict[str, _Group] = {}

    def report(self, subtask: SubtaskKey, said: ReportWatermark) -> tuple[int, tuple[SubtaskKey, ...]]:
        """A current attempt of this subtask says how far it is: the group's minimum, and to whom to announce it."""
        group = self._groups.setdefault(said.group, _Group({}))
        if subtask not in group.members:
            group.members |= dict.fromkeys(self._all_of(subtask), NO_WATERMARK) | group.members
        group.members[subtask] = said.watermark_ms if said.is_waited_for else END_OF_TIME
        minimum_ms = min(group.members.values())
        step_ms = max(said.max_drift_ms // _STEPS, 1)
        if group.announced_ms <= minimum_ms < group.announced_ms + step_ms:
            return minimum_ms, (subtask,)
        group.announced_ms = minimum_ms
        return minimum_ms, tuple(group.members)

    def _all_of(self, subtask: SubtaskKey) -> Iterator[SubtaskKey]:
        count = self._parallelism[subtask.vertex_id]
        return (SubtaskKey(subtask.vertex_id, SubtaskIndex(index)) for index in range(count))
