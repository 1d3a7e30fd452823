"""JobQuestions: what becomes of records that are sent into an inlet when its task does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pykka
import pytest

from understudy import NotRunning
from understudy.actors.ask_errors import AskTimeout, InletIsOver
from understudy.actors.job_manager.job_lease import Lease
from understudy.actors.job_manager.job_questions import InletAnswered, JobQuestions
from understudy.messages import ExecutionState, JobId, JobStatus, SendToInlet, SubtaskIndex, TaskManagerId

SENT = SendToInlet(JobId("job"), "orders", SubtaskIndex(0), b"")


def questions(status: JobStatus, execution: Any = None, worker: Any = None) -> JobQuestions:
    """Of a job with this status, whose inlet has this task."""
    master: Any = SimpleNamespace(
        status=status,
        report=SimpleNamespace(holder_of=lambda *_: execution),
        graph=SimpleNamespace(execution=lambda _: execution),
    )
    leading: Any = SimpleNamespace(session="session", is_sure=True)
    context: Any = SimpleNamespace(promise=pykka.ThreadingFuture)
    workers = {} if worker is None else {TaskManagerId("tm-0"): worker}
    return JobQuestions(context, leading, master, Lease(), workers, lambda: status.value)


@pytest.mark.parametrize("status", [JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.CANCELED])
def test_a_job_that_only_ends_takes_no_more_records(status: JobStatus) -> None:
    """Its tasks may take long to end, and whoever sends need not wait for that."""
    with pytest.raises(InletIsOver):
        questions(status).send(SENT, 1_000)


@pytest.mark.parametrize("status", [JobStatus.CREATED, JobStatus.RESTARTING])
def test_of_one_that_goes_on_it_is_tried_again(status: JobStatus) -> None:
    with pytest.raises(NotRunning) as raised:
        questions(status).send(SENT, 1_000)
    assert not raised.value.is_over


def test_a_task_that_does_not_answer_in_time_is_asked_again() -> None:
    """What it has taken may last: whoever sends it again is told, and nothing is taken twice."""
    slot = SimpleNamespace(task_manager_id=TaskManagerId("tm-0"))
    execution: Any = SimpleNamespace(
        vertex_id="orders", attempt_id="attempt-1", slot=slot, state=ExecutionState.RUNNING
    )
    worker: Any = object()
    asked = questions(JobStatus.RUNNING, execution, worker)
    promise: pykka.Future[Any] = pykka.ThreadingFuture()
    late = AskTimeout("tm-0", "no answer within 1,000 ms")
    asked.answered(InletAnswered(asked, execution, worker, promise, None, late))
    with pytest.raises(NotRunning, match=r"has not answered in time: .*; send again") as raised:
        promise.get(timeout=0)
    assert not raised.value.is_over
