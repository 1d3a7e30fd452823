"""JobClient: how the handle of a job reaches its job's JobManager, and what the JobManager's answers mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from ...actors.actor import Actor
from ...actors.context import Ref
from ...messages import (
    AskOperator,
    CheckpointNotTaken,
    CheckpointTaken,
    DisposeSavepointFailure,
    DisposeSavepointSuccess,
    JobId,
    JobStatus,
    OperatorAnswer,
    SubtaskIndex,
    TriggerSavepointFailure,
    TriggerSavepointSuccess,
    UnregisteredMessage,
    tag_of,
)
from ...state.keys.key_hash import java_hash
from ..system.future import ActorFuture
from .job_errors import CheckpointRequestFailed, SavepointFailed, SavepointNotDisposed
from .leader_line import AnswerLost

EventCallback = Callable[[Any], None]
NO_KEY = object()
"""In place of a key: the question is to subtask 0."""


class JobClient(Protocol):
    """How a handle reaches its job's JobManager; a cluster supplies it."""

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        """Put a question to the JobManager; the future can be awaited. None: the usual time."""
        ...

    def ask_operator(
        self, question: AskOperator, wait_ms: float, deadline_ms: float = math.inf
    ) -> ActorFuture[OperatorAnswer]:
        """Put a question to a running operator; as long as it does not run, again, for so long at most. It fails when
        there is no answer by the deadline.
        """
        ...

    def promise(self) -> ActorFuture[None]:
        """A future that the handle keeps, and that the user may wait for."""
        ...

    @property
    def job_manager(self) -> Ref: ...

    @property
    def waits_by(self) -> Callable[[], ActorFuture[None]] | None:
        """Makes what has to be waited for, where time goes on only then; None: threads and event loops just wait."""
        ...

    def start(self, actor: Actor) -> Ref:
        """Let an actor of the handle's run beside it, until its end or the cluster's. Raises SystemStopped."""
        ...

    def settle_output(self, timeout: float) -> None:
        """Wait until all that the job has printed and logged so far is here, for `timeout` seconds at most."""
        ...

    def listen(self, callback: EventCallback) -> JobStatus:
        """Call back with every event of this job from now on, one after the other, on any thread. Its status now."""
        ...


def operator_question(
    job_id: JobId,
    operator: str,
    message: Any,
    key: Any = NO_KEY,
    deadline_ms: float = math.inf,
    subtask: int = 0,
) -> AskOperator:
    """What to put to a running operator: an instance of a message class, or plain data. Raises InvalidKey."""
    if key is not NO_KEY:
        java_hash(key)
    try:
        tag_of(message)
        is_message = True
    except UnregisteredMessage:
        is_message = False
    return AskOperator(
        job_id=job_id,
        operator=operator,
        has_key=key is not NO_KEY,
        key=None if key is NO_KEY else key,
        question=message if is_message else None,
        plain_question=None if is_message else message,
        timeout_ms=0 if math.isinf(deadline_ms) else math.ceil(deadline_ms),
        subtask=SubtaskIndex(subtask),
    )


def savepoint_path(answer: TriggerSavepointSuccess | TriggerSavepointFailure) -> str:
    """The path that the JobManager has answered with; raises SavepointFailed."""
    if isinstance(answer, TriggerSavepointFailure):
        raise SavepointFailed(f"the savepoint of job {answer.job_id} failed: {answer.cause}")
    return answer.savepoint_path


def checkpoint_taken(answer: CheckpointTaken | CheckpointNotTaken) -> CheckpointTaken:
    """Raises CheckpointRequestFailed."""
    if isinstance(answer, CheckpointNotTaken):
        raise CheckpointRequestFailed(f"no checkpoint of job {answer.job_id} was taken: {answer.cause}")
    return answer


def checkpoint_failure(error: BaseException) -> BaseException:
    """What the future of a checkpoint fails with when there is no answer."""
    return CheckpointRequestFailed(str(error)) if isinstance(error, AnswerLost) else error


def savepoint_failure(error: BaseException) -> BaseException:
    """What the future of a savepoint fails with when there is no answer."""
    return SavepointFailed(str(error)) if isinstance(error, AnswerLost) else error


def disposed_path(answer: DisposeSavepointSuccess | DisposeSavepointFailure) -> str:
    """The path of a savepoint that is disposed of; raises SavepointNotDisposed."""
    if isinstance(answer, DisposeSavepointFailure):
        raise SavepointNotDisposed(f"the savepoint was not disposed of: {answer.cause}")
    return answer.savepoint_path
