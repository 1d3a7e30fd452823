"""The page's view of a job: one JSON object, columns of numbers where there are many. Pure functions of a JobView."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from ...actors.checkpoints.reason_words import in_words
from ...messages import (
    CheckpointHistory,
    CheckpointStatistics,
    FailureCause,
    JobLogs,
    JobSummary,
    JobView,
    TimelineMark,
    TimelineSample,
)
from .flink_checkpoints import is_discarded, path_of, start_delay_ms
from .flink_jobs import chain_of
from .jobs import Explained, flink_id

Json = dict[str, Any]
LONGEST_TEXT = 20_000
STANDS_MS = 5_000
"""Event time that has not advanced for so long stands still."""


def jobs(found: Iterable[JobSummary], at_ms: int) -> Json:
    """The list of jobs."""
    return {"at": at_ms, "jobs": [summary(each) for each in found]}


def summary(each: JobSummary) -> Json:
    return {
        "id": flink_id(each.job_id),
        "job": each.job_id,
        "name": each.name,
        "status": each.status.value,
        "ended": each.status.is_terminal,
        "from": each.started_ms,
        "to": each.ended_ms,
        "restarts": each.restarts,
        "running": each.tasks_running,
        "total": each.tasks_total,
        "why": each.last_failure,
    } | _recent(each)


def _recent(each: JobSummary) -> Json:
    """Of a job that runs again: what it has failed of last, and when."""
    if each.status.is_terminal or each.last_failure or not each.latest_failure_ms:
        return {}
    return {"last": each.latest_failure, "lastAt": each.latest_failure_ms}


def timeline(samples: Sequence[TimelineSample], marks: Iterable[TimelineMark]) -> Json:
    """What is new of it."""
    return {
        "at": [each.at_ms for each in samples],
        "in": [round(each.records_in_per_second, 1) for each in samples],
        "out": [round(each.records_out_per_second, 1) for each in samples],
        "busy": [round(each.busy, 3) for each in samples],
        "waits": [round(each.back_pressured, 3) for each in samples],
        "lag": [each.lag_ms for each in samples],
        "marks": [
            {
                "at": each.at_ms,
                "kind": each.kind,
                "text": in_words(each.text[:500]),
                "ms": each.duration_ms,
                "no": each.number,
            }
            for each in marks
        ],
    }


# ----------------------------------------------------------------------------------------------------- checkpoints


def checkpoints(view: JobView, history: CheckpointHistory, shown: Sequence[Json]) -> Json:
    """`shown`: of each one in the history."""
    return {
        "triggered": history.triggered,
        "completed": history.completed,
        "failed": history.failed,
        "restored": history.restored_checkpoint_id,
        "list": shown,
        "savepoints": [
            {"id": each.checkpoint_id, "path": each.path, "at": each.at_ms} for each in reversed(view.savepoints)
        ],
    }


def checkpoint(view: JobView, each: CheckpointStatistics) -> Json:
    metrics = [one.metrics for one in each.subtasks]
    return {
        "id": each.checkpoint_id,
        "kind": each.kind,
        "status": each.status,
        "at": each.timestamp_ms,
        "ms": each.duration_ms,
        "bytes": each.state_size_bytes,
        "acked": len(each.subtasks),
        "of": each.subtasks_total,
        "failure": in_words(each.failure[:LONGEST_TEXT]),
        "path": "" if is_discarded(view, each) else path_of(view, each),
        "discarded": is_discarded(view, each),
        "sync": round(max((one.sync_ms for one in metrics), default=0.0), 1),
        "async": round(max((one.async_ms for one in metrics), default=0.0), 1),
        "alignment": round(max((one.alignment_ms for one in metrics), default=0.0), 1),
        "inFlight": sum(one.in_flight_bytes for one in metrics),
    }


def gantt(view: JobView, each: CheckpointStatistics) -> Json:
    """One checkpoint, subtask by subtask: how long each part of it took, in ms from its trigger."""
    index = {one.vertex_id: number for number, one in enumerate(view.graph.vertices)}
    order = sorted(each.subtasks, key=lambda one: (index.get(one.vertex_id, -1), one.subtask_index))
    return checkpoint(view, each) | {
        "subtasks": {
            "v": [index.get(one.vertex_id, -1) for one in order],
            "i": [one.subtask_index for one in order],
            "ms": [one.acknowledged_ms for one in order],
            "delay": [round(start_delay_ms(one), 1) for one in order],
            "alignment": [round(one.metrics.alignment_ms, 1) for one in order],
            "sync": [round(one.metrics.sync_ms, 1) for one in order],
            "async": [round(one.metrics.async_ms, 1) for one in order],
            "bytes": [one.state_size_bytes for one in order],
            "inFlight": [one.metrics.in_flight_bytes for one in order],
        },
        "missing": _missing(view, each, index),
    }


def _missing(view: JobView, each: CheckpointStatistics, index: dict[Any, int]) -> list[list[int]]:
    """Those that have not acknowledged it: [vertex, subtask]."""
    if len(each.subtasks) >= each.subtasks_total:
        return []
    there = {(one.vertex_id, one.subtask_index) for one in each.subtasks}
    return [
        [index[one.vertex_id], one.subtask_index]
        for one in view.subtasks
        if (one.vertex_id, one.subtask_index) not in there
    ]


# -------------------------------------------------------------------------------------------------------- failures


def chain(cause: FailureCause) -> list[Json]:
    """What failed, and then each cause of it, with its place."""
    return [
        {
            "type": each.error_type,
            "text": each.error_message[:LONGEST_TEXT],
            "trace": each.traceback[:LONGEST_TEXT],
            "vertex": each.vertex_name,
            "operator": each.operator_name,
            "subtask": each.subtask_index,
            "attempt": each.attempt_number,
            "record": each.record_position,
            "key": each.record_key,
            "tm": each.task_manager,
        }
        for each in chain_of(cause)
    ]


def watermarks(found: Iterable[Explained]) -> list[Json]:
    """Event time that has stood still for a moment only goes on: then no advice is wanted. None for a job that has no
    event time at all.
    """
    explained = list(found)
    if all(each.has_no_event_time for each in explained):
        return []
    return [
        {
            "operator": each.operator,
            "path": list(each.path),
            "advice": each.advice,
            "stands": stands if (stands := each.subtasks[each.behind].standing_ms) > STANDS_MS else 0,
        }
        for each in explained
    ]


def logs(found: JobLogs) -> list[Json]:
    """Oldest first."""
    return [
        {
            "at": round(1000 * each.created_s),
            "tm": batch.task_manager_id,
            "level": logging.getLevelName(each.level),
            "logger": each.logger,
            "where": f"{each.operator} {each.subtask_index}" if each.operator else "",
            "text": "\n".join(filter(None, (each.text, each.error, each.stack)))[:LONGEST_TEXT],
        }
        for batch in found.records
        for each in batch.records
    ]


def log_line(row: Json) -> str:
    at = datetime.fromtimestamp(row["at"] / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    where = f" [{row['where']}]" if row["where"] else ""
    return f"{at} {row['level']} {row['logger']}{where}: {row['text']}\n"


def config(view: JobView) -> Json:
    graph, settings = view.graph, view.graph.checkpoints
    restart = graph.restart
    shown = {
        "state backend": graph.state_backend,
        "checkpoint directory": settings.directory,
        "checkpoint interval": _ms(settings.interval_ms),
        "guarantee": "exactly once" if settings.exactly_once else "at least once",
        "checkpoint timeout": _ms(settings.timeout_ms),
        "pause between checkpoints": _ms(settings.min_pause_ms),
        "concurrent checkpoints": str(settings.max_concurrent),
        "alignment timeout": _ms(settings.alignment_timeout_ms),
        "retained checkpoints": str(settings.retained),
        "checkpoints stay": settings.retention.value.replace("_", " "),
        "tolerable checkpoint failures": str(settings.tolerable_failures),
        "restart strategy": restart.kind.value,
        "buffer timeout": _ms(graph.buffer_timeout_ms),
    }
    if restart.kind.value == "fixed-delay":
        attempts = "without limit" if restart.attempts >= 2**31 - 1 else str(restart.attempts)
        shown |= {"restart attempts": attempts, "restart delay": _ms(restart.delay_ms)}
    return shown


def _ms(value: int | None) -> str:
    return "none" if value is None else f"{value:,} ms"
