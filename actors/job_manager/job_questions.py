"""JobQuestions: brings what clients ask of an operator, and send into an inlet, to its task, and the answer back.

Of one job, on its JobManager's dispatcher. It knows nothing of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pykka

from ...messages import (
    AskOperator,
    AskTask,
    ExecutionState,
    JobStatus,
    LeaderSessionMessage,
    PutIntoInlet,
    SendToInlet,
    SubtaskIndex,
    TaskManagerId,
)
from ...state import key_group, operator_index_of
from ...state.checkpoints.high_availability import HighAvailability
from ..ask_errors import ActorDead, AskTimeout, InletIsOver, NoSuchVertex, NotRunning, RemoteActorError, Unreachable
from ..context import ActorContext
from ..jobs.execution import Execution
from ..jobs.job_master import JobMaster
from .job_lease import Lease
from .job_workers import Worker


@dataclass(frozen=True, slots=True)
class InletAnswered:
    """An inlet has answered, or will not."""

    questions: JobQuestions
    execution: Execution
    worker: Worker
    promise: pykka.Future[Any]
    answer: Any
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class QuestionFailed:
    """An operator that was asked has not answered, and will not."""

    operator: str
    promise: pykka.Future[Any]
    error: BaseException

    def hand_on(self) -> None:
        """As NotRunning, where the task or its TaskManager is gone: it may be asked again."""
        why = _why_gone(self.error, "ask again")
        _fail(self.promise, self.error if why is None else NotRunning(self.operator, why))


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """An operator has answered."""

    promise: pykka.Future[Any]
    answer: Any

    def hand_on(self) -> None:
        self.promise.set(self.answer)


class JobQuestions:
    """`workers`: those that there are now."""

    def __init__(
        self,
        context: ActorContext,
        high_availability: HighAvailability,
        master: JobMaster,
        lease: Lease,
        workers: Mapping[TaskManagerId, Worker],
        told_status: Callable[[], str],
    ) -> None:
        self._context = context
        self._high_availability = high_availability
        self._master = master
        self._lease = lease
        self._workers = workers
        self._told_status = told_status

    def ask(self, question: AskOperator, timeout_ms: float) -> pykka.Future[Any]:
        """The future of a running operator's answer; raises NotRunning. It fails with NotRunning, too, if the task or
        its TaskManager is gone before it answers.
        """

        def subtask_of(parallelism: int, max_parallelism: int) -> SubtaskIndex:
            if not question.has_key:
                return question.subtask
            group = key_group(question.key, max_parallelism)
            return SubtaskIndex(operator_index_of(group, max_parallelism, parallelism))

        execution, worker = self._place_of(question.operator, subtask_of)
        asked = LeaderSessionMessage(self._high_availability.session, AskTask(execution.attempt_id, question))
        promise = self._context.promise()
        self._context.pipe_to_self(
            worker.ref.ask(asked, timeout_ms=timeout_ms),
            partial(QuestionAnswered, promise),
            partial(QuestionFailed, question.operator, promise),
        )
        return promise

    def send(self, sent: SendToInlet, timeout_ms: float) -> pykka.Future[Any]:
        """The future of an inlet's answer; raises NotRunning, and InletIsOver of a job that is over.

        It fails with NotRunning, too, if the task or its TaskManager is gone before it answers, or if the attempt is
        not current any more when the answer comes: one that was given up may go on and say that records last which its
        successor has not read.
        """

        def subtask_of(parallelism: int, _: int) -> SubtaskIndex:
            if not 0 <= sent.subtask < parallelism:
                raise ValueError(f"inlet {sent.inlet!r} has {parallelism} subtasks, found subtask {sent.subtask}")
            return sent.subtask

        try:
            execution, worker = self._place_of(sent.inlet, subtask_of)
        except NotRunning as error:
            if error.is_over and not isinstance(error, NoSuchVertex):
                raise InletIsOver(str(error)) from None
            raise
        order = LeaderSessionMessage(self._high_availability.session, PutIntoInlet(execution.attempt_id, sent))
        promise = self._context.promise()

        def settled(answer: Any = None, error: BaseException | None = None) -> InletAnswered:
            return InletAnswered(self, execution, worker, promise, answer, error)

        answer = worker.ref.ask(order, timeout_ms=timeout_ms)
        self._context.pipe_to_self(answer, settled, lambda error: settled(error=error))
        return promise

    def answered(self, found: InletAnswered) -> None:
        """Hand an inlet's answer on, if it is still one of the job's."""
        execution, error = found.execution, found.error
        if error is not None and (why := _why_unanswered(error)) is not None:
            error = NotRunning(execution.vertex_id, why)
        is_current = self._master.graph.execution(execution.attempt_id) is execution
        slot = execution.slot
        is_here = slot is not None and self._workers.get(slot.task_manager_id) is found.worker
        if error is None and not (is_current and is_here and execution.state is ExecutionState.RUNNING):
            error = NotRunning(execution.vertex_id, "its task was given up before the answer came; send again")
        if error is None and not self._high_availability.is_sure:
            error = NotRunning(execution.vertex_id, "another JobManager may lead by now; send again")
        if error is None and not self._lease.is_sure:
            self._lease.beat()
            error = NotRunning(execution.vertex_id, "another process may have resumed the job meanwhile; send again")
        if error is None:
            found.promise.set(found.answer)
        else:
            _fail(found.promise, error)

    def _place_of(self, operator: str, subtask_of: Callable[[int, int], SubtaskIndex]) -> tuple[Execution, Worker]:
        """The running attempt with this operator, and where it is; raises NotRunning."""
        execution = self._master.report.holder_of(operator, subtask_of)
        worker = self._workers.get(execution.slot.task_manager_id) if execution and execution.slot else None
        if execution is None or worker is None or execution.state is not ExecutionState.RUNNING:
            task = "it has no task" if execution is None else f"its task is {execution.state.value}"
            status = self._master.status
            is_over = status.is_terminal or status in (JobStatus.FAILING, JobStatus.CANCELLING)
            raise NotRunning(operator, f"{task}, the job is {self._told_status()}", is_over=is_over)
        return execution, worker


def _why_unanswered(error: BaseException) -> str | None:
    """Why an inlet has not said what became of records, which then are sent again; None: it has refused them."""
    if isinstance(error, AskTimeout):
        return f"it has not answered in time: {error.reason}; send again"
    return _why_gone(error, "send again")


def _why_gone(error: BaseException, advice: str) -> str | None:
    """Why a task that was asked has not answered, if it is gone, or its TaskManager; else None. One in another process
    says by its name and text what it raised.
    """
    match error:
        case RemoteActorError(type_name=NotRunning.__name__):
            return error.message.partition("not running: ")[2] or error.message
        case ActorDead() | Unreachable():
            return f"its TaskManager was lost before it answered: {error.reason}; {advice}"
    return None


def _fail(promise: pykka.Future[Any], error: BaseException) -> None:
    promise.set_exception((type(error), error, error.__traceback__))
