"""Checkpoints in the JSON of Flink's REST (v1): pure functions of a job's CheckpointHistory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...messages import CheckpointHistory, CheckpointStatistics, JobVertex, JobView, SubtaskStatistics
from .errors import not_found

Json = dict[str, Any]
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_CLASSES = {"completed": "completed", "failed": "failed", "in_progress": "in_progress"}


def statistics(history: CheckpointHistory, view: JobView) -> Json:
    """/jobs/:jobid/checkpoints. Flink: CheckpointingStatistics."""
    found = history.checkpoints
    done = [each for each in found if each.status == "completed"]
    in_progress = sum(each.status == "in_progress" for each in found)
    restored = history.restored_checkpoint_id
    sizes = numbers(each.state_size_bytes for each in done)
    return {
        "counts": {
            "restored": 1 if restored else 0,
            "total": history.triggered,
            "in_progress": in_progress,
            "completed": history.completed,
            "failed": history.failed,
        },
        "summary": {
            "checkpointed_size": sizes,
            "state_size": sizes,
            "end_to_end_duration": numbers(each.duration_ms for each in done),
            "alignment_buffered": numbers([0] * len(done)),
            "processed_data": numbers([0] * len(done)),
            "persisted_data": numbers(_in_flight(each.subtasks) for each in done),
        },
        "latest": {
            "completed": _first(view, (each for each in done if each.kind != "savepoint")),
            "savepoint": _first(view, (each for each in done if each.kind == "savepoint")),
            "failed": _first(view, (each for each in found if each.status == "failed")),
            "restored": _restored(history, view) if restored else None,
        },
        "history": [checkpoint(view, each) for each in found],
    }


def _first(view: JobView, newest_first: Iterable[CheckpointStatistics]) -> Json | None:
    return next((checkpoint(view, each) for each in newest_first), None)


def _restored(history: CheckpointHistory, view: JobView) -> Json:
    known = next((each for each in history.checkpoints if each.checkpoint_id == history.restored_checkpoint_id), None)
    return {
        "id": history.restored_checkpoint_id,
        "restore_timestamp": view.statuses.get("restarting", view.summary.started_ms),
        "is_savepoint": known is not None and known.kind == "savepoint",
        "external_path": path_of(view, known) if known else "",
    }


def path_of(view: JobView, each: CheckpointStatistics) -> str:
    """What a job can start from: of a savepoint its pointer, as long as nobody has disposed of it."""
    if each.kind == "savepoint":
        known = [one.path for one in view.savepoints if one.checkpoint_id == each.checkpoint_id]
        if known:
            return known[-1]
    return f"{view.graph.checkpoints.directory.rstrip('/')}/{each.path}" if each.path else ""


def is_discarded(view: JobView, each: CheckpointStatistics) -> bool:
    """Whether nothing can start from it any more: its files are deleted, or a user has disposed of the savepoint."""
    is_kept = each.kind != "savepoint" or any(one.checkpoint_id == each.checkpoint_id for one in view.savepoints)
    return each.status == "completed" and (each.discarded or not is_kept)


def checkpoint(view: JobView, each: CheckpointStatistics) -> Json:
    """One, without its subtasks. Flink: CheckpointStatistics."""
    last_ms = max((one.acknowledged_ms for one in each.subtasks), default=-1)
    is_savepoint = each.kind == "savepoint"
    shown = _amounts(each.subtasks, each.duration_ms) | {
        "className": _CLASSES[each.status],
        "id": each.checkpoint_id,
        "status": each.status.upper(),
        "is_savepoint": is_savepoint,
        "savepointFormat": "CANONICAL" if is_savepoint else None,
        "trigger_timestamp": each.timestamp_ms,
        "latest_ack_timestamp": each.timestamp_ms + last_ms if last_ms >= 0 else -1,
        "num_subtasks": each.subtasks_total,
        "num_acknowledged_subtasks": len(each.subtasks),
        "checkpoint_type": "SAVEPOINT" if is_savepoint else "CHECKPOINT",
        "tasks": {},
    }
    match each.status:
        case "completed":
            shown |= {"external_path": path_of(view, each), "discarded": is_discarded(view, each)}
        case "failed":
            failed_ms = each.timestamp_ms + each.duration_ms
            shown |= {"failure_timestamp": failed_ms, "failure_message": each.failure}
        case _:
            pass
    return shown


def by_id(history: CheckpointHistory, wanted: str) -> CheckpointStatistics:
    for each in history.checkpoints:
        if str(each.checkpoint_id) == wanted:
            return each
    known = ", ".join(str(each.checkpoint_id) for each in history.checkpoints) or "none"
    raise not_found(f"Could not find checkpoint with id {wanted[:20]}: statistics are kept of {known}")


def details(view: JobView, each: CheckpointStatistics) -> Json:
    """/jobs/:jobid/checkpoints/details/:checkpointid."""
    tasks = {vertex.vertex_id: _task(each, vertex, _of(each, vertex)) for vertex in view.graph.vertices}
    return checkpoint(view, each) | {"tasks": tasks}


def subtask_details(each: CheckpointStatistics, vertex: JobVertex) -> Json:
    """/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid."""
    found = _of(each, vertex)
    sizes = numbers(one.state_size_bytes for one in found)
    return _task(each, vertex, found) | {
        "summary": {
            "checkpointed_size": sizes,
            "state_size": sizes,
            "end_to_end_duration": numbers(one.acknowledged_ms for one in found),
            "checkpoint_duration": {
                "sync": numbers(one.metrics.sync_ms for one in found),
                "async": numbers(one.metrics.async_ms for one in found),
            },
            "alignment": {
                "buffered": numbers([0] * len(found)),
                "processed": numbers([0] * len(found)),
                "persisted": numbers(one.metrics.in_flight_bytes for one in found),
                "duration": numbers(one.metrics.alignment_ms for one in found),
            },
            "start_delay": numbers(map(start_delay_ms, found)),
        },
        "subtasks": [_subtask(each, found, index) for index in range(vertex.parallelism)],
    }


def start_delay_ms(one: SubtaskStatistics) -> float:
    """From the trigger until the subtask's first barrier."""
    metrics = one.metrics
    return max(0.0, one.acknowledged_ms - metrics.alignment_ms - metrics.sync_ms - metrics.async_ms)


def _of(each: CheckpointStatistics, vertex: JobVertex) -> list[SubtaskStatistics]:
    return [one for one in each.subtasks if one.vertex_id == vertex.vertex_id]


def _task(each: CheckpointStatistics, vertex: JobVertex, found: Sequence[SubtaskStatistics]) -> Json:
    last_ms = max((one.acknowledged_ms for one in found), default=-1)
    is_whole = len(found) == vertex.parallelism
    status = "COMPLETED" if is_whole else "FAILED" if each.status == "failed" else "IN_PROGRESS"
    return _amounts(found, max(last_ms, 0)) | {
        "id": each.checkpoint_id,
        "status": status,
        "latest_ack_timestamp": each.timestamp_ms + last_ms if last_ms >= 0 else -1,
        "num_subtasks": vertex.parallelism,
        "num_acknowledged_subtasks": len(found),
    }


def _amounts(found: Sequence[SubtaskStatistics], duration_ms: int) -> Json:
    size = sum(one.state_size_bytes for one in found)
    return {
        "checkpointed_size": size,
        "state_size": size,
        "end_to_end_duration": duration_ms,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": _in_flight(found),
    }


def _in_flight(found: Iterable[SubtaskStatistics]) -> int:
    return sum(one.metrics.in_flight_bytes for one in found)


def _subtask(each: CheckpointStatistics, found: Sequence[SubtaskStatistics], index: int) -> Json:
    one = next((one for one in found if one.subtask_index == index), None)
    if one is None:
        return {"index": index, "status": "pending_or_failed"}
    metrics = one.metrics
    return {
        "index": index,
        "status": "completed",
        "ack_timestamp": each.timestamp_ms + one.acknowledged_ms,
        "end_to_end_duration": one.acknowledged_ms,
        "checkpointed_size": one.state_size_bytes,
        "state_size": one.state_size_bytes,
        "checkpoint": {"sync": round(metrics.sync_ms), "async": round(metrics.async_ms)},
        "alignment": {
            "buffered": 0,
            "processed": 0,
            "persisted": metrics.in_flight_bytes,
            "duration": round(metrics.alignment_ms),
        },
        "start_delay": round(start_delay_ms(one)),
        "unaligned_checkpoint": metrics.unaligned,
        "aborted": False,
    }


def config(view: JobView) -> Json:
    """/jobs/:jobid/checkpoints/config. Flink: CheckpointConfigInfo."""
    checkpoints = view.graph.checkpoints
    patience_ms = checkpoints.alignment_timeout_ms
    never_ms = 2**63 - 1
    return {
        "mode": "exactly_once" if checkpoints.exactly_once else "at_least_once",
        "interval": never_ms if checkpoints.interval_ms is None else checkpoints.interval_ms,
        "timeout": checkpoints.timeout_ms,
        "min_pause": checkpoints.min_pause_ms,
        "max_concurrent": checkpoints.max_concurrent,
        "externalization": {
            "enabled": checkpoints.retention.value != "never",
            "delete_on_cancellation": checkpoints.retention.value != "on_cancellation",
        },
        "state_backend": view.graph.state_backend,
        "checkpoint_storage": checkpoints.directory,
        "unaligned_checkpoints": patience_ms is not None,
        "tolerable_failed_checkpoints": checkpoints.tolerable_failures,
        "aligned_checkpoint_timeout": patience_ms or 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": 0,
        "changelog_storage": "",
    }


def numbers(values: Iterable[float]) -> Json:
    """Least, greatest, mean and quantiles. Flink: StatsSummaryDto."""
    found = sorted(values)
    if not found:
        return dict.fromkeys(("min", "max", "avg"), 0) | dict.fromkeys(_QUANTILES, "NaN")
    at = {name: found[min(len(found) - 1, math.ceil(share * len(found)) - 1)] for name, share in _QUANTILES.items()}
    whole = {"min": round(found[0]), "max": round(found[-1]), "avg": round(sum(found) / len(found))}
    return whole | {name: float(value) for name, value in at.items()}
