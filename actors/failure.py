"""Failures told to people: an exception becomes a FailureCause that says what, where, and with which traceback.

User code may raise anything: an exception that cannot be shown, that is its own cause, or whose text is a data set.
Telling of it must not fail, and must fit into a message.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace

from ..messages import FailureCause, MissingColumn, Row, TaskDeployment
from .errors import UserCodeError

LOST_TASK_MANAGER = "TaskManagerLost"

MAX_CAUSES = 10
MAX_TEXT = 20_000


def describe(error: BaseException) -> FailureCause:
    """The exception and all that caused it, outermost first, each with its own traceback text."""
    told: FailureCause | None = None
    for step in reversed(_chain(error)):
        told = FailureCause(
            error_type=type(step).__name__,
            error_message=_text(lambda step=step: str(_told_by_a_row(step) or step)),  # type: ignore[misc]
            traceback=_text(lambda step=step: "".join(traceback.format_exception(step, chain=False))),  # type: ignore[misc]
            cause=told,
        )
    assert told is not None
    return told


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, each once; of a long chain the first ones and the root."""
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and all(step is not known for known in chain):
        chain.append(step)
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)
    return chain if len(chain) <= MAX_CAUSES else [*chain[: MAX_CAUSES - 1], chain[-1]]


def _told_by_a_row(error: BaseException) -> MissingColumn | None:
    """What a Row would say of an attribute that it does not have, could it say so without becoming slower."""
    if type(error) is AttributeError and isinstance(error.obj, Row):
        return MissingColumn(error.name, error.obj.keys())
    return None


def _text(make: Callable[[], str]) -> str:
    """Text that can be sent: not too long, of valid characters, and not missing because user code fails to make it."""
    try:
        text = make()
    except Exception as error:  # noqa: BLE001 - the user's own __str__
        return f"<cannot be shown: {type(error).__name__}>"
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n... {len(text) - MAX_TEXT} characters ...\n{text[-MAX_TEXT // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()


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


def died_in_silence(deployment: TaskDeployment, task_manager: str, reason: str) -> FailureCause:
    """A task that ended without a word."""
    return FailureCause(
        "TaskDied",
        f"the task ended without telling why: {reason}",
        vertex_name=deployment.vertex_name,
        subtask_index=deployment.subtask_index,
        attempt_number=deployment.attempt_number,
        task_manager=task_manager,
    )


def lost_task_manager(task_manager: str, reason: str) -> FailureCause:
    """Why the attempts of a lost TaskManager failed."""
    return FailureCause(LOST_TASK_MANAGER, f"TaskManager {task_manager} was lost: {reason}", task_manager=task_manager)


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
