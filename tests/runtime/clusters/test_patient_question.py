"""What is still in the inbox of a question when it ends changes nothing any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pykka
import pytest

from understudy import AskTimeout
from understudy.messages import AskOperator, JobId
from understudy.runtime.clusters.patient_question import PatientQuestion, _Answered, _Failed, _Overdue


@pytest.mark.parametrize("late", [_Answered("at last"), _Failed(RuntimeError("lost")), _Overdue()])
def test_an_answer_that_comes_with_the_deadline_is_no_failure(late: Any) -> None:
    promise: pykka.Future[Any] = pykka.ThreadingFuture()
    question = PatientQuestion(SimpleNamespace(ask=lambda *_, **__: None), 0.0, 50.0)  # type: ignore[arg-type]
    question.context = SimpleNamespace(  # type: ignore[assignment]
        promise=lambda: promise,
        clock=SimpleNamespace(now_ms=lambda: 0.0),
        schedule=lambda *_: None,
        pipe_to_self=lambda *_: None,
        stop=lambda _: None,
        self_ref=None,
    )
    question.on_receive(AskOperator(JobId("job-1"), "count", False, None, None, "seen"))
    question.on_receive(_Overdue())
    question.on_receive(late)
    with pytest.raises(AskTimeout, match="has not answered within"):
        promise.get(timeout=0)
