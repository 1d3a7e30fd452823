"""Metrics, TaskManagers and settings in the JSON of Flink's REST (v1): pure functions.

Figures come from a JobMetrics where the JobManager has one; a JobView has the most important ones in any case, also
after the job's end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...actors.jobs.back_pressure import BackPressureLevel
from ...messages import (
    END_OF_TIME,
    NO_WATERMARK,
    FlameGraph,
    JobMetrics,
    JobSummary,
    JobVertex,
    JobView,
    TaskManagerView,
    VertexBackPressureReport,
)
from .errors import bad_request

Json = dict[str, Any]
Values = dict[str, float]
_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
    "skew": lambda values: skew(values),
}


def skew(values: Sequence[float]) -> float:
    """How unevenly they are spread, in percent of the mean. Flink: MetricsAggregationParameter's skew."""
    mean = sum(values) / len(values)
    return 0.0 if not mean else 100 * sum(abs(each - mean) for each in values) / len(values) / mean


def of_subtasks(view: JobView, vertex: JobVertex, metrics: JobMetrics | None) -> dict[int, Values]:
    """By subtask index: figures by their Flink names."""
    found: dict[int, Values] = {}
    tasks = {each.attempt_id: each for each in view.details.tasks}
    for each in (each for each in view.subtasks if each.vertex_id == vertex.vertex_id):
        values: Values = {
            "numRecordsInPerSecond": each.records_in_per_second,
            "numRecordsOutPerSecond": each.records_out_per_second,
            "busyTimeMsPerSecond": 1000 * each.busy,
            "backPressuredTimeMsPerSecond": 1000 * each.back_pressured,
            "idleTimeMsPerSecond": 1000 * max(0.0, 1 - each.busy - each.back_pressured),
        }
        if (task := tasks.get(each.attempt_id)) is not None:
            values |= {"numRecordsIn": task.records_in, "numRecordsOut": task.records_out}
            if (time := task.event_time) is not None:
                values |= {
                    "currentInputWatermark": time.input_watermark_ms,
                    "currentOutputWatermark": time.output_watermark_ms,
                    "numLateRecordsDropped": time.late_records,
                }
        found[each.subtask_index] = values
    for one in metrics.vertices if metrics is not None else ():
        if one.vertex_id == vertex.vertex_id:
            for measured in one.subtasks:
                found.setdefault(measured.subtask_index, {}).update(measured.values)
    return found


def of_vertex(subtasks: Mapping[int, Values], wanted: Sequence[str]) -> list[Json]:
    """/jobs/:jobid/vertices/:vertexid/metrics: "0.numRecordsIn"; without `wanted` the names that there are."""
    flat = {f"{index}.{name}": value for index, values in sorted(subtasks.items()) for name, value in values.items()}
    return listed(flat, wanted)


def listed(values: Mapping[str, float], wanted: Sequence[str]) -> list[Json]:
    if not wanted:
        return [{"id": name} for name in sorted(values)]
    return [{"id": name, "value": as_text(values[name])} for name in wanted if name in values]


def aggregated(rows: Iterable[Values], wanted: Sequence[str], how: Sequence[str]) -> list[Json]:
    """Over subtasks, TaskManagers or jobs. Raises HttpError for an aggregate that there is not."""
    unknown = [each for each in how if each not in _AGGREGATES]
    if unknown:
        raise bad_request(f"agg={unknown[0][:50]!r}: there are {', '.join(_AGGREGATES)}")
    all_rows = list(rows)
    if not wanted:
        return [{"id": name} for name in sorted({name for row in all_rows for name in row})]
    found = []
    for name in wanted:
        values = [row[name] for row in all_rows if name in row]
        if values:
            used = {each: _AGGREGATES[each](values) for each in how or _AGGREGATES}
            row: Json = {each: finite(value) for each, value in used.items()}
            found.append({"id": name} | row)
    return found


def of_job(view: JobView, metrics: JobMetrics | None) -> Values:
    """Of the job as a whole. How long it was in which status only a JobManager knows: `uptime` is in its metrics."""
    own = view.summary
    values: Values = {
        "numRestarts": own.restarts,
        "fullRestarts": own.restarts,
        "numberOfCompletedCheckpoints": view.details.completed_checkpoints,
    }
    return values | (metrics.values if metrics is not None else {})


def as_text(value: float) -> str:
    """As Flink has it: text, whole where it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def shown_time(watermark_ms: int) -> int | None:
    """None before the first watermark and after the last one."""
    return None if watermark_ms in (NO_WATERMARK, END_OF_TIME) else watermark_ms


# -------------------------------------------------------------------------------------------------- back-pressure


def back_pressure_of_view(view: JobView, vertex: JobVertex) -> Json:
    """/jobs/:jobid/vertices/:vertexid/backpressure, by what the subtasks measure themselves."""
    found = [each for each in view.subtasks if each.vertex_id == vertex.vertex_id]
    rows = [
        _share(
            each.subtask_index,
            each.attempt_number,
            BackPressureLevel.of(each.back_pressured).value,
            each.back_pressured,
            max(0.0, 1 - each.busy - each.back_pressured),
            each.busy,
        )
        for each in found
    ]
    greatest = max((each.back_pressured for each in found), default=0.0)
    return _shares("ok", BackPressureLevel.of(greatest).value, view.at_ms, rows)


def back_pressure(report: VertexBackPressureReport) -> Json:
    """The same, by samples."""
    rows = [
        _share(each.subtask_index, 0, each.level, each.ratio, each.idle_ratio, each.busy_ratio)
        for each in report.subtasks
    ]
    return _shares(report.status, report.level, report.end_ms, rows)


def _share(subtask: int, attempt_number: int, level: str, ratio: float, idle: float | None, busy: float | None) -> Json:
    return {
        "subtask": subtask,
        "attempt-number": attempt_number,
        "backpressure-level": level,
        "backpressureLevel": level,
        "ratio": ratio,
        "idleRatio": idle,
        "busyRatio": busy,
    }


def _shares(status: str, level: str, end_ms: int, rows: list[Json]) -> Json:
    return {
        "status": status,
        "backpressure-level": level,
        "backpressureLevel": level,
        "end-timestamp": end_ms,
        "subtasks": rows,
    }


def flame_graph(graph: FlameGraph) -> Json:
    """/jobs/:jobid/vertices/:vertexid/flamegraph. Flink: VertexFlameGraph."""
    nodes: list[Json] = []
    root: Json = {"name": "root", "value": graph.samples, "children": []}
    for frame in graph.frames:
        place = f" ({frame.path}:{frame.line})" if frame.path else ""
        node = {"name": f"{frame.function}{place}", "value": frame.samples, "children": []}
        node["kind"] = frame.kind
        (root if frame.parent < 0 else nodes[frame.parent])["children"].append(node)
        nodes.append(node)
    return {"endTimestamp": graph.end_ms, "data": root}


# -------------------------------------------------------------------------------------------------- TaskManagers


def task_managers(views: Iterable[JobView]) -> list[Json]:
    """/taskmanagers: those of all jobs that run."""
    return [
        task_manager(view, each) for view in views if not view.summary.status.is_terminal for each in view.task_managers
    ]


def task_manager(view: JobView, each: TaskManagerView) -> Json:
    taken = {
        one.slot for one in view.subtasks if one.task_manager_id == each.task_manager_id and not one.state.is_terminal
    }
    port = each.data_endpoint.rpartition(":")[2]
    resource = {"cpuCores": float(each.slots), "taskHeapMemory": 0, "managedMemory": 0, "networkMemory": 0}
    return {
        "id": each.task_manager_id,
        "path": each.control_address,
        "dataPort": int(port) if port.isdecimal() else -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": each.heard_ms,
        "slotsNumber": each.slots,
        "freeSlots": max(0, each.slots - len(taken)),
        "totalResource": resource,
        "freeResource": resource,
        "hardware": {"cpuCores": each.slots, "physicalMemory": -1, "freeMemory": -1, "managedMemory": -1},
        "memoryConfiguration": {},
        "blocked": False,
        "host": each.host,
        "pid": each.pid,
        "job": view.summary.name,
    }


def overview(jobs: Sequence[JobSummary], workers: Sequence[Json], version: str) -> Json:
    """/overview. Flink: ClusterOverviewWithVersion."""
    status = [each.status.value for each in jobs]
    running = sum(not each.status.is_terminal for each in jobs)
    return {
        "taskmanagers": len(workers),
        "slots-total": sum(each["slotsNumber"] for each in workers),
        "slots-available": sum(each["freeSlots"] for each in workers),
        "jobs-running": running,
        "jobs-finished": status.count("finished"),
        "jobs-cancelled": status.count("canceled"),
        "jobs-failed": status.count("failed"),
        "flink-version": version,
        "flink-commit": "understudy",
    }
