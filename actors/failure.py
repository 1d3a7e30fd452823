"""Failures told to people: an exception becomes a FailureCause that says what, where, and with which traceback."""

from __future__ import annotations

import traceback
from dataclasses import replace

from ..messages import FailureCause, TaskDeployment
from .errors import UserCodeError


def describe(error: BaseException) -> FailureCause:
    """The exception and all that caused it, outermost first, each with its own traceback text."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return FailureCause(
        error_type=type(error).__name__,
        error_message=str(error),
        traceback="".join(traceback.format_exception(error, chain=False)),
        cause=describe(cause) if cause is not None else None,
    )


def describe_in_task(error: BaseException, deployment: TaskDeployment, task_manager: str) -> FailureCause:
    """The same, with the place: vertex, operator, subtask, attempt, and the position of the record that user code
    took.
    """
    operator_name, position = "", None
    if isinstance(error, UserCodeError):
        operator_name, position = error.operator_name, error.record_position
    return replace(
        describe(error),
        vertex_name=deployment.vertex_name,
        operator_name=operator_name,
        subtask_index=deployment.subtask_index,
        attempt_number=deployment.attempt_number,
        record_position=-1 if position is None else position,
        task_manager=task_manager,
    )


def lost_task_manager(task_manager: str, reason: str) -> FailureCause:
    """Why the attempts of a lost TaskManager failed."""
    return FailureCause("TaskManagerLost", f"TaskManager {task_manager} was lost: {reason}", task_manager=task_manager)


def tell_story(failure: FailureCause) -> str:
    """The chain as text for a person: place first, then each cause with its traceback."""
    lines: list[str] = []
    step: FailureCause | None = failure
    while step is not None:
        place = [
            f"{name} {value!r}"
            for name, value in (("job", step.job_name), ("vertex", step.vertex_name), ("operator", step.operator_name))
            if value
        ]
        place += [
            f"{name} {value}"
            for name, value in (
                ("subtask", step.subtask_index),
                ("attempt", step.attempt_number),
                ("record", step.record_position),
            )
            if value >= 0
        ]
        if step.task_manager:
            place.append(f"on {step.task_manager}")
        prefix = "" if not lines else "caused by "
        where = f" ({', '.join(place)})" if place else ""
        lines.append(f"{prefix}{step.error_type}: {step.error_message}{where}")
        if step.traceback:
            lines += [f"    {line}" for line in step.traceback.rstrip().splitlines()]
        step = step.cause
    return "\n".join(lines)
