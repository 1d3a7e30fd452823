"""Jobs, vertices and subtasks in the JSON of Flink's REST (v1): pure functions of a JobView.

Names and units are Flink's: times are wall clock in ms, -1 for what has not happened. Of what Understudy does not
have (bytes of buffers, managed memory) the fields are there, with 0 or -1, where Flink's clients read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...messages import (
    ExecutionState,
    FailureCause,
    JobGraph,
    JobSummary,
    JobVertex,
    JobView,
    SubtaskView,
    TaskMetrics,
    VertexId,
)
from .errors import not_found
from .jobs import flink_id

Json = dict[str, Any]
MAX_EXCEPTIONS = 20
_STATES = tuple(state.value for state in ExecutionState)


def summary(job: JobSummary, now_ms: int) -> Json:
    """A row of /jobs/overview. Flink: JobDetails."""
    others = job.tasks_total - job.tasks_running
    counts = dict.fromkeys((*_STATES, "reconciling"), 0) | {"running": job.tasks_running, "total": job.tasks_total}
    if job.status.is_terminal:
        counts[job.status.value if job.status.value in counts else "canceled"] = job.tasks_total
        counts["running"] = 0
    else:
        counts["scheduled"] = others
    ended = job.ended_ms or -1
    return {
        "jid": flink_id(job.job_id),
        "name": job.name,
        "start-time": job.started_ms,
        "end-time": ended,
        "duration": _lasted(job.started_ms, job.ended_ms, now_ms),
        "state": job.status.value.upper(),
        "last-modification": job.ended_ms or job.started_ms,
        "tasks": counts,
        "pending-operators": 0,
    }


def job(view: JobView) -> Json:
    """/jobs/:jobid. Flink: JobDetailsInfo."""
    of_vertex, tasks = by_vertex(view), dict[VertexId, list[TaskMetrics]]()
    for each in view.details.tasks:
        tasks.setdefault(each.vertex_id, []).append(each)
    vertices = [
        _vertex_row(view, vertex, of_vertex.get(vertex.vertex_id, []), tasks.get(vertex.vertex_id, []))
        for vertex in view.graph.vertices
    ]
    counts = Counter(each.state.value.upper() for each in view.subtasks)
    status = view.summary.status
    return {
        "jid": flink_id(view.summary.job_id),
        "name": view.summary.name,
        "isStoppable": not status.is_terminal,
        "state": status.value.upper(),
        "job-type": "STREAMING",
        "start-time": view.summary.started_ms,
        "end-time": view.summary.ended_ms or -1,
        "duration": _lasted(view.summary.started_ms, view.summary.ended_ms, view.at_ms),
        "maxParallelism": max((each.max_parallelism for each in view.graph.vertices), default=-1),
        "now": view.at_ms,
        "timestamps": _timestamps(view),
        "vertices": vertices,
        "status-counts": {state.upper(): counts[state.upper()] for state in _STATES},
        "plan": plan(view.graph),
        "pending-operators": 0,
    }


def _timestamps(view: JobView) -> dict[str, int]:
    names = (*("CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED", "RESTARTING"),)
    known = {name.upper(): at_ms for name, at_ms in view.statuses.items()}
    flinks = {"INITIALIZING": view.summary.started_ms, "SUSPENDED": 0, "RECONCILING": 0}
    return flinks | {name: known.get(name, 0) for name in names}


def plan(graph: JobGraph) -> Json:
    """/jobs/:jobid/plan, without its envelope. Flink: JsonPlanGenerator."""
    nodes = []
    for vertex in graph.vertices:
        into = [edge for edge in graph.edges if edge.target == vertex.vertex_id]
        inputs = [
            {
                "num": number,
                "id": edge.source,
                "ship_strategy": edge.partitioning.value.upper(),
                "exchange": "pipelined",
            }
            for number, edge in enumerate(into)
        ]
        node = {
            "id": vertex.vertex_id,
            "parallelism": vertex.parallelism,
            "operator": "",
            "operator_strategy": "",
            "description": " -> ".join(each.name for each in vertex.operators),
            "optimizer_properties": {},
        }
        nodes.append(node | ({"inputs": inputs} if inputs else {}))
    return {"jid": flink_id(graph.job_id), "name": graph.name, "type": "STREAMING", "nodes": nodes}


# ------------------------------------------------------------------------------------------------------- vertices


def vertex_of(view: JobView, wanted: str) -> JobVertex:
    """By id or name; raises HttpError."""
    for each in view.graph.vertices:
        if wanted in (each.vertex_id, each.name):
            return each
    known = ", ".join(each.vertex_id for each in view.graph.vertices)
    raise not_found(f"Vertex {wanted[:100]!r} not found: there are {known}")


def by_vertex(view: JobView) -> dict[VertexId, list[SubtaskView]]:
    found: dict[VertexId, list[SubtaskView]] = {}
    for each in view.subtasks:
        found.setdefault(each.vertex_id, []).append(each)
    return found


def subtask_of(view: JobView, vertex: JobVertex, index: str) -> SubtaskView:
    for each in view.subtasks:
        if each.vertex_id == vertex.vertex_id and str(each.subtask_index) == index:
            return each
    raise not_found(f"Subtask {index[:20]!r} of {vertex.vertex_id} not found: it has {vertex.parallelism} subtasks")


def vertex(view: JobView, one: JobVertex) -> Json:
    """/jobs/:jobid/vertices/:vertexid."""
    subtasks = [each for each in view.subtasks if each.vertex_id == one.vertex_id]
    tasks = _metrics_by_attempt(view)
    return {
        "id": one.vertex_id,
        "name": one.name,
        "parallelism": one.parallelism,
        "maxParallelism": one.max_parallelism,
        "now": view.at_ms,
        "subtasks": [subtask(view, each, tasks.get(each.attempt_id)) for each in subtasks],
        "aggregated": {"metrics": {}, "status-duration": {}},
    }


def subtask(view: JobView, each: SubtaskView, metrics: TaskMetrics | None) -> Json:
    """One attempt. Flink: SubtaskExecutionAttemptDetailsInfo."""
    began, ended = each.deployed_ms or each.scheduled_ms or -1, each.ended_ms or -1
    return {
        "subtask": each.subtask_index,
        "status": each.state.value.upper(),
        "attempt": each.attempt_number,
        "endpoint": endpoint(view, each),
        "start-time": began,
        "start_time": began,
        "end-time": ended,
        "duration": _lasted(began, each.ended_ms, view.at_ms) if began > 0 else -1,
        "metrics": _io([metrics] if metrics else []),
        "taskmanager-id": each.task_manager_id or "(unassigned)",
        "status-duration": {},
        "other-concurrent-attempts": None,
    }


def subtask_details(view: JobView, each: SubtaskView) -> Json:
    return subtask(view, each, _metrics_by_attempt(view).get(each.attempt_id))


def attempt(view: JobView, one: JobVertex, index: str, number: str) -> Json:
    """/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex/attempts/:attempt."""
    for each in (*view.subtasks, *view.earlier):
        where = (each.vertex_id, str(each.subtask_index), str(each.attempt_number))
        if where == (one.vertex_id, index, number):
            return subtask_details(view, each)
    raise not_found(f"Attempt {number[:20]!r} of subtask {index[:20]!r} of {one.vertex_id} is not known any more")


def subtask_times(view: JobView, one: JobVertex) -> Json:
    rows = []
    for each in (each for each in view.subtasks if each.vertex_id == one.vertex_id):
        times = {state.upper(): 0 for state in _STATES} | {
            "CREATED": each.scheduled_ms,
            "SCHEDULED": each.scheduled_ms,
            "DEPLOYING": each.deployed_ms,
            "RUNNING": each.running_ms,
        }
        if each.ended_ms:
            times[each.state.value.upper()] = each.ended_ms
        details = subtask(view, each, None)
        shown = {"subtask": each.subtask_index, "endpoint": details["endpoint"], "duration": details["duration"]}
        rows.append(shown | {"timestamps": times})
    return {"id": one.vertex_id, "name": one.name, "now": view.at_ms, "subtasks": rows}


def vertex_task_managers(view: JobView, one: JobVertex) -> Json:
    tasks, hosts = _metrics_by_attempt(view), dict[str, list[SubtaskView]]()
    for each in view.subtasks:
        if each.vertex_id == one.vertex_id:
            hosts.setdefault(each.task_manager_id or "(unassigned)", []).append(each)
    rows = []
    for task_manager_id, subtasks in hosts.items():
        row = _span(view, subtasks) | {
            "endpoint": endpoint(view, subtasks[0]),
            "taskmanager-id": task_manager_id,
            "metrics": _io(tasks[each.attempt_id] for each in subtasks if each.attempt_id in tasks),
            "status-counts": _counts(subtasks),
            "aggregated": {"metrics": {}, "status-duration": {}},
        }
        rows.append(row)
    return {"id": one.vertex_id, "name": one.name, "now": view.at_ms, "taskmanagers": rows}


def watermarks(view: JobView, one: JobVertex) -> list[Json]:
    times = {each.subtask_index: each.event_time for each in view.details.tasks if each.vertex_id == one.vertex_id}
    return [
        {"id": f"{index}.currentInputWatermark", "value": str(time.input_watermark_ms)}
        for index, time in sorted(times.items())
        if time is not None
    ]


def endpoint(view: JobView, each: SubtaskView) -> str:
    host = next((one for one in view.task_managers if one.task_manager_id == each.task_manager_id), None)
    return f"{host.host}:{host.data_endpoint.rpartition(':')[2]}" if host else "(unassigned)"


def _vertex_row(view: JobView, one: JobVertex, subtasks: list[SubtaskView], tasks: list[TaskMetrics]) -> Json:
    return _span(view, subtasks) | {
        "id": one.vertex_id,
        "slotSharingGroupId": one.slot_sharing_group,
        "name": one.name,
        "maxParallelism": one.max_parallelism,
        "parallelism": one.parallelism,
        "tasks": _counts(subtasks),
        "metrics": _io(tasks),
    }


def _lasted(began_ms: int, ended_ms: int, now_ms: int) -> int:
    """Until its end, if that is not 0, or until now. A clock that was set back makes nothing shorter than 0."""
    return max(0, (ended_ms or now_ms) - began_ms)


def _span(view: JobView, subtasks: list[SubtaskView]) -> Json:
    begun = [each.deployed_ms for each in subtasks if each.deployed_ms]
    began = min(begun, default=-1)
    has_ended = bool(subtasks) and all(each.state.is_terminal for each in subtasks)
    ended = max(each.ended_ms for each in subtasks) if has_ended else -1
    duration = -1 if began < 0 else _lasted(began, max(ended, 0), view.at_ms)
    return {"status": _status(subtasks), "start-time": began, "end-time": ended, "duration": duration}


_RANKS = ("failed", "canceling", "canceled", "initializing", "deploying", "scheduled", "created", "running", "finished")


def _status(subtasks: list[SubtaskView]) -> str:
    """Of the subtask that says most. Flink: ExecutionJobVertex.getAggregateJobVertexState."""
    states = {each.state.value for each in subtasks}
    return next((state for state in _RANKS if state in states), "created").upper()


def _counts(subtasks: Iterable[SubtaskView]) -> dict[str, int]:
    counts = Counter(each.state.value for each in subtasks)
    return {state.upper(): counts[state] for state in _STATES}


def _metrics_by_attempt(view: JobView) -> dict[str, TaskMetrics]:
    return {each.attempt_id: each for each in view.details.tasks}


def _io(tasks: Iterable[TaskMetrics]) -> Json:
    """Flink: IOMetricsInfo."""
    found = list(tasks)
    read, written = sum(each.records_in for each in found), sum(each.records_out for each in found)
    bytes_in = sum(getattr(each, "bytes_in", 0) for each in found)
    bytes_out = sum(getattr(each, "bytes_out", 0) for each in found)
    return {
        "read-bytes": bytes_in,
        "read-bytes-complete": True,
        "write-bytes": bytes_out,
        "write-bytes-complete": True,
        "read-records": read,
        "read-records-complete": True,
        "write-records": written,
        "write-records-complete": True,
        "accumulated-backpressured-time": sum(each.backpressured_ms for each in found),
        "accumulated-idle-time": 0,
        "accumulated-busy-time": float(sum(each.busy_ms for each in found)),
    }


# ----------------------------------------------------------------------------------------------------- exceptions


def exceptions(view: JobView, most: int) -> Json:
    """/jobs/:jobid/exceptions, newest first. Flink: JobExceptionsInfoWithHistory."""
    newest = view.failures[::-1]
    root = newest[0] if newest else None
    entries: list[Json] = [
        {
            "exceptionName": each.cause.error_type,
            "stacktrace": stack_of(each.cause),
            "timestamp": each.at_ms,
            "taskName": _task_name(view, each.cause),
            "endpoint": None,
            "taskManagerId": each.cause.task_manager or None,
            "failureLabels": {},
            "concurrentExceptions": [],
        }
        for each in newest[:most]
    ]
    return {
        "root-exception": stack_of(root.cause) if root else None,
        "timestamp": root.at_ms if root else None,
        "all-exceptions": [],
        "truncated": len(newest) > most,
        "exceptionHistory": {"entries": entries, "truncated": len(newest) > most},
    }


def stack_of(cause: FailureCause) -> str:
    """As Java has it, so that Flink's clients show the chain: each cause after what it has caused."""
    return "\nCaused by: ".join(
        each.headline + (f"\n{each.traceback}" if each.traceback else "") for each in chain_of(cause)
    )


def chain_of(cause: FailureCause) -> Iterator[FailureCause]:
    """What failed, and then each cause of it."""
    each: FailureCause | None = cause
    while each is not None:
        yield each
        each = each.cause


def _task_name(view: JobView, cause: FailureCause) -> str | None:
    if not cause.vertex_name:
        return None
    of = next((each.parallelism for each in view.graph.vertices if each.name == cause.vertex_name), 0)
    return f"{cause.vertex_name} ({cause.subtask_index + 1}/{of})"
