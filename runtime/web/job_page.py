"""JobPage: a job as the page gets it, as JSON, made again each second for as long as somebody looks.

Columns of numbers, subtask by subtask, where there are many. Of a large job most has not changed since the last time:
heartbeats bring the figures of some tasks each. So what belongs to a vertex is kept, ready to be sent, and made again
when one of its subtasks has been heard of. The JobManager hands out the same objects for what has not changed; from a
JobManager in another process all is new each time, and nothing is wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import is_
from typing import Any, NamedTuple

from ...messages import (
    CheckpointHistory,
    CheckpointId,
    CheckpointStatistics,
    JobGraph,
    JobVertex,
    JobView,
    OperatorDescription,
    SubtaskView,
    TaskManagerId,
    TaskMetrics,
    VertexId,
)
from . import page_view
from .flink_jobs import by_vertex
from .flink_metrics import shown_time
from .jobs import flink_id
from .page_view import Json
from .top import Suspect, first, suspects_of

_encode = json.JSONEncoder(separators=(",", ":")).encode

COLUMNS = ("v", "i", "state", "attempt", "tm", "in", "out", "busy", "waits", "total", "watermark", "lag", "idle")


class _Part(NamedTuple):
    """What a vertex shows, and what that was made of."""

    subtasks: Sequence[SubtaskView]
    tasks: Sequence[TaskMetrics | None]
    vertex: str
    """JSON."""
    columns: Sequence[str]
    """JSON of the values of its subtasks, without brackets, in the order of COLUMNS."""
    suspects: Sequence[Suspect]
    shares: Mapping[TaskManagerId, tuple[int, float, float]]
    """Of each TaskManager: how many of its tasks run there, how busy they are together, records a second."""


class JobPage:
    """Of one job; for one thread."""

    def __init__(self) -> None:
        self._graph: JobGraph | None = None
        self._same = ""
        """JSON of what is the same as long as the graph is."""
        self._index: dict[VertexId, int] = {}
        self._feeds: set[VertexId] = set()
        self._hosts: dict[TaskManagerId, int] = {}
        self._parts: dict[VertexId, _Part] = {}
        self._ended: dict[CheckpointId, tuple[CheckpointStatistics, Json]] = {}
        """Checkpoints that have, and what is shown of them."""

    def text(self, view: JobView, history: CheckpointHistory) -> str:
        """One JSON object: all but the timeline."""
        self._begin(view)
        tasks = {each.attempt_id: each for each in view.details.tasks}
        of_vertex = by_vertex(view)
        parts = []
        for each in view.graph.vertices:
            subtasks = of_vertex.get(each.vertex_id, [])
            parts.append(self._part(each, subtasks, [tasks.get(one.attempt_id) for one in subtasks]))
        rows = [",".join(filter(None, column)) for column in zip(*(each.columns for each in parts), strict=True)]
        columns = ",".join([f'"{name}":[{row}]' for name, row in zip(COLUMNS, rows, strict=True)])
        vertices = ",".join([each.vertex for each in parts])
        rest = _encode(self._rest(view, history, parts))
        return f'{rest[:-1]},{self._same[1:-1]},"vertices":[{vertices}],"subtasks":{{{columns}}}}}'

    def _begin(self, view: JobView) -> None:
        """Forget what was made for another graph or other TaskManagers."""
        hosts = {each.task_manager_id: number for number, each in enumerate(view.task_managers)}
        if view.graph is not self._graph:
            self._graph = graph = view.graph
            self._index = index = {each.vertex_id: number for number, each in enumerate(graph.vertices)}
            self._feeds = {edge.source for edge in graph.edges}
            edges = [
                {
                    "from": index[one.source],
                    "to": index[one.target],
                    "how": one.partitioning.value,
                    "tag": one.output_tag,
                    "back": one.feedback,
                }
                for one in graph.edges
            ]
            self._same = _encode({"edges": edges, "config": page_view.config(view)})
            self._parts, self._ended = {}, {}
        if hosts != self._hosts:
            self._hosts = hosts
            self._parts = {}

    def _part(self, vertex: JobVertex, subtasks: Sequence[SubtaskView], tasks: Sequence[TaskMetrics | None]) -> _Part:
        kept = self._parts.get(vertex.vertex_id)
        if kept is None or not (_same(kept.subtasks, subtasks) and _same(kept.tasks, tasks)):
            columns = _encode(_columns(self._index[vertex.vertex_id], subtasks, tasks, self._hosts))
            kept = self._parts[vertex.vertex_id] = _Part(
                subtasks,
                tasks,
                _encode(_vertex(vertex, subtasks, tasks)),
                columns[2:-2].split("],["),
                suspects_of(vertex, subtasks, tasks, feeds=vertex.vertex_id in self._feeds),
                _shares(subtasks),
            )
        return kept

    def _rest(self, view: JobView, history: CheckpointHistory, parts: Sequence[_Part]) -> Json:
        return page_view.summary(view.summary) | {
            "at": view.at_ms,
            "noRestart": view.restart_refusal,
            "next": flink_id(view.details.restarted_as) if view.details.restarted_as else "",
            "retained": view.details.retained_checkpoint_path,
            "suspects": [asdict(each) for each in first(one for part in parts for one in part.suspects)],
            "taskManagers": [_task_manager(view, number, parts) for number in range(len(view.task_managers))],
            "checkpoints": page_view.checkpoints(view, history, self._checkpoints(view, history)),
            "failures": [{"at": each.at_ms, "chain": page_view.chain(each.cause)} for each in view.failures],
        }

    def _checkpoints(self, view: JobView, history: CheckpointHistory) -> list[Json]:
        before, self._ended = self._ended, {}
        shown = []
        for each in history.checkpoints:
            known, found = before.get(each.checkpoint_id, (None, {}))
            if known is not each:
                found = page_view.checkpoint(view, each)
            if each.status != "in_progress":
                self._ended[each.checkpoint_id] = each, found
            shown.append(found)
        return shown


def _same(kept: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether they are the same objects."""
    return len(kept) == len(now) and all(map(is_, kept, now))


def _vertex(vertex: JobVertex, subtasks: Sequence[SubtaskView], tasks: Sequence[TaskMetrics | None]) -> Json:
    metrics = [each for each in tasks if each is not None]
    times = [each.event_time for each in metrics if each.event_time is not None]
    rates = [each.records_in_per_second for each in subtasks]
    mean = sum(rates) / len(rates) if rates else 0.0
    behind = min((each for each in times if not each.is_idle), key=lambda each: each.output_watermark_ms, default=None)
    return {
        "id": vertex.vertex_id,
        "name": vertex.name,
        "p": vertex.parallelism,
        "maxP": vertex.max_parallelism,
        "operators": [_operator(one) for one in vertex.operators],
        "in": round(sum(rates), 1),
        "out": round(sum([each.records_out_per_second for each in subtasks]), 1),
        "totalIn": sum([each.records_in for each in metrics]),
        "totalOut": sum([each.records_out for each in metrics]),
        "busy": round(max([each.busy for each in subtasks], default=0.0), 3),
        "waits": round(max([each.back_pressured for each in subtasks], default=0.0), 3),
        "skew": round(max(rates) / mean, 2) if mean > 1 and len(rates) > 1 else None,
        "watermark": None if behind is None else shown_time(behind.output_watermark_ms),
        "lag": None if behind is None else behind.lag_ms,
        "stands": None if behind is None else behind.standing_ms,
        "late": sum([each.late_records for each in times]),
        "states": dict(Counter([each.state.value for each in subtasks])),
    }


def _columns(
    vertex: int,
    rows: Sequence[SubtaskView],
    tasks: Sequence[TaskMetrics | None],
    hosts: Mapping[TaskManagerId, int],
) -> list[list[Any]]:
    """In the order of COLUMNS."""
    times = [each.event_time if each is not None else None for each in tasks]
    return [
        [vertex] * len(rows),
        [each.subtask_index for each in rows],
        [each.state.value for each in rows],
        [each.attempt_number for each in rows],
        [hosts.get(each.task_manager_id, -1) for each in rows],
        [round(each.records_in_per_second, 1) for each in rows],
        [round(each.records_out_per_second, 1) for each in rows],
        [round(each.busy, 3) for each in rows],
        [round(each.back_pressured, 3) for each in rows],
        [each.records_in if each is not None else 0 for each in tasks],
        [shown_time(each.output_watermark_ms) if each is not None else None for each in times],
        [each.lag_ms if each is not None else None for each in times],
        [each is not None and each.is_idle for each in times],
    ]


def _operator(one: OperatorDescription) -> Json:
    states = [{"name": each.name, "kind": each.kind} for each in one.states]
    return {"name": one.name, "kind": one.kind, "states": states}


def _shares(subtasks: Sequence[SubtaskView]) -> dict[TaskManagerId, tuple[int, float, float]]:
    found: dict[TaskManagerId, tuple[int, float, float]] = {}
    for each in subtasks:
        if not each.state.is_terminal:
            count, busy, records = found.get(each.task_manager_id, (0, 0.0, 0.0))
            found[each.task_manager_id] = count + 1, busy + each.busy, records + each.records_in_per_second
    return found


def _task_manager(view: JobView, number: int, parts: Sequence[_Part]) -> Json:
    each = view.task_managers[number]
    shares = [one.shares[each.task_manager_id] for one in parts if each.task_manager_id in one.shares]
    return {
        "id": each.task_manager_id,
        "index": each.index,
        "host": each.host,
        "pid": each.pid,
        "slots": each.slots,
        "since": each.registered_ms,
        "silent": max(0, view.at_ms - each.heard_ms) if each.heard_ms else None,
        "tasks": sum([tasks for tasks, _, _ in shares]),
        "busy": round(sum([busy for _, busy, _ in shares]), 3),
        "in": round(sum([records for _, _, records in shares]), 1),
    }
