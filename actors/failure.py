"""Failures as users see them: an exception becomes a FailureCause that says what, where, and with which traceback.

User code may raise anything: an exception that cannot be shown, that is its own cause, or whose text is a data set.
The description must not fail, and must fit into a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType

from ..messages import FailureCause, FailureKind, MissingColumn, Row, TaskDeployment
from ..messages.error_frames import is_the_librarys_word
from ..state.errors import CorruptState, LostOwnership, MissingState, OutsideRoot, StateError
from .errors import ChannelBroken, UnusableRecord, UserCodeError
from .passing_errors import is_repeatable
from .remedies import remedy
from .traceback_text import traceback_text

MAX_CAUSES = 10
MAX_TEXT = 20_000

_KINDS: tuple[tuple[type[BaseException], FailureKind], ...] = (
    (UserCodeError, FailureKind.USER_CODE),
    (ChannelBroken, FailureKind.CHANNEL_BROKEN),
    (CorruptState, FailureKind.UNREADABLE_STATE),
    (MissingState, FailureKind.UNREADABLE_STATE),
    (OutsideRoot, FailureKind.UNREADABLE_STATE),
)


def describe(error: BaseException) -> FailureCause:
    """The exception and all that caused it, outermost first, each with its own traceback text.

    A traceback begins at the first frame that is not this package's own machinery, so that the user's line is near.
    What this package says of stored state or of a record has none: its text says what was found, and no line of the
    user led there.
    """
    told: FailureCause | None = None
    chain = chain_of(error)
    plain = set(map(id, _told_by_their_texts(chain)))
    for step in reversed(chain):
        told = FailureCause(
            error_type=type(step).__name__,
            error_message=_text(lambda step=step: _message(step)),  # type: ignore[misc]
            traceback="" if id(step) in plain else _text(lambda step=step: _traceback(step)),  # type: ignore[misc]
            cause=told,
            kind=_kind(step),
        )
    assert told is not None
    return told


def _told_by_their_texts(chain: Sequence[BaseException]) -> Iterator[BaseException]:
    """Errors that passed no code of the user: of a record; of stored state, with what the system said of the file."""
    above: BaseException | None = None
    for step in chain:
        if isinstance(step, StateError | UnusableRecord):
            is_told = is_the_librarys_word(step)
        else:
            is_told = above is not None and isinstance(step, OSError)
        above = step if is_told and isinstance(step, StateError) else None
        if is_told:
            yield step


def _kind(error: BaseException) -> FailureKind:
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), FailureKind.OTHER)


def _message(error: BaseException) -> str:
    """Of a UserCodeError without its cause, which is described by itself."""
    text = error.what if isinstance(error, UserCodeError) else str(_told_by_a_row(error) or error)
    return "; ".join(filter(None, (text, remedy(error))))


def _traceback(error: BaseException) -> str:
    """Of a UserCodeError none: all its frames are ours, and its cause has one."""
    if isinstance(error, UserCodeError) and error.__cause__ is not None:
        return ""
    return traceback_text(error, _from_the_users_first(error.__traceback__))


def _from_the_users_first(frames: TracebackType | None) -> TracebackType | None:
    """Without the frames of the machinery that come first; all of them when there are no others."""
    step = frames
    while step is not None and step.tb_frame.f_globals.get("__name__", "").startswith(_MACHINERY):
        step = step.tb_next
    return frames if step is None else step


_MACHINERY = tuple(f"{__name__.partition('.')[0]}.{room}." for room in ("actors", "runtime.coroutines"))
"""What calls the user's code."""


def chain_of(error: BaseException) -> list[BaseException]:
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
    operator_name, position, record_key, record_origin = "", None, "", ""
    repeatable = is_repeatable(chain_of(error))
    if isinstance(error, UserCodeError):
        operator_name, position, record_origin = error.operator_name, error.record_position, error.record_origin
        record_key = error.record_key if repeatable or error.others_ended else ""
    return replace(
        describe(error),
        repeatable=repeatable,
        vertex_name=deployment.vertex_name,
        operator_name=operator_name,
        subtask_index=deployment.subtask_index,
        attempt_number=deployment.attempt_number,
        record_position=-1 if position is None else position,
        record_key=record_key,
        record_origin=record_origin,
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


def canceled_without_order(task_manager: str) -> FailureCause:
    """Why a task failed that its TaskManager has canceled, though the JobManager has not ordered that."""
    text = f"TaskManager {task_manager} has canceled this task by itself, as it does when it ends: its log says why"
    return FailureCause("TaskCanceled", text, task_manager=task_manager)


def lost_task_manager(task_manager: str, reason: str) -> FailureCause:
    """Why the attempts of a lost TaskManager failed."""
    text = f"TaskManager {task_manager} was lost: {reason}"
    return FailureCause("TaskManagerLost", text, task_manager=task_manager, kind=FailureKind.TASK_MANAGER_LOST)


def ended_unheard(task_manager: str) -> FailureCause:
    """Why an attempt failed that is not among those which its TaskManager runs, though it has not reported its end."""
    text = f"TaskManager {task_manager} was without a JobManager for a while, and does not run this task now"
    return FailureCause("TaskManagerLost", text, task_manager=task_manager, kind=FailureKind.TASK_MANAGER_LOST)


def is_run_by_another(failure: FailureCause | None) -> bool:
    """Whether the job has ended because another run, which owns its name now, goes on with it."""
    while failure is not None and failure.error_type != LostOwnership.__name__:
        failure = failure.cause
    return failure is not None


def tell_kept(path: str, failure: FailureCause | None = None) -> str:
    """How to start from the checkpoint that a job has left; or that none may, where another run goes on with it."""
    if is_run_by_another(failure):
        return (
            "its checkpoint is kept, and the run that owns its name now goes on by itself: a job that was started from "
            f"{path} would give records twice"
        )
    return f"its checkpoint is kept; to go on from there: from_savepoint={path!r}"


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
        if step.record_origin:
            place.append(step.record_origin)
        if step.task_manager:
            place.append(f"on {step.task_manager}")
        prefix = "" if not lines else "caused by "
        where = f" ({', '.join(place)})" if place else ""
        lines.append(f"{prefix}{step.headline}{where}")
        if step.traceback:
            lines += [f"    {line}" for line in step.traceback.rstrip().splitlines()]
        step = step.cause
    return "\n".join(lines)
