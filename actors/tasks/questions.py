"""Questions: what was put to an operator with `job.ask`, or sent into an inlet; its task answers between batches.

What is raised here fails the question, and not the attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pykka

from ...messages import AskOperator, ExecutionState, InletAnswer, OperatorAnswer, SendToInlet
from ..ask_errors import NotRunning
from ..operators.source import Source
from ..unrun import RETURN, result_of
from .task_setup import TaskParts


def answer(
    question: AskOperator, promise: pykka.Future[OperatorAnswer], state: ExecutionState, parts: TaskParts | None
) -> None:
    """Keep the promise, or break it. `state` and `parts`: the task's."""
    try:
        promise.set(OperatorAnswer(_ask(question, state, parts)))
    except SystemExit as error:
        promise.set_exception((RuntimeError, RuntimeError(f"on_receive raised SystemExit({error.code!r})"), None))
    except Exception:  # noqa: BLE001 - supervision boundary: the asker gets it
        promise.set_exception()


def take(
    sent: SendToInlet, promise: Callable[[], pykka.Future[Any]], state: ExecutionState, source: Source | None
) -> pykka.Future[InletAnswer]:
    """What the inlet has promised; it keeps that later."""
    try:
        if state is not ExecutionState.RUNNING:
            raise NotRunning(sent.inlet, f"its task is {state.value}; send again")
        assert source is not None, f"{sent.inlet!r} is no source"
        found: pykka.Future[InletAnswer] = source.on_receive(sent)
        return found
    except Exception:  # noqa: BLE001 - supervision boundary: the sender gets it
        broken = promise()
        broken.set_exception()
        return broken


def _ask(question: AskOperator, state: ExecutionState, parts: TaskParts | None) -> Any:
    if state is not ExecutionState.RUNNING:
        raise NotRunning(question.operator, f"its task is {state.value}; ask again")
    assert parts is not None, "a task that runs has its parts"
    operator = parts.chain.find(question.operator)
    assert operator is not None, f"no operator {question.operator!r} in this task"
    asked = question.plain_question if question.question is None else question.question
    with parts.state.reading(operator, question.has_key, question.key):
        return result_of(operator, "on_receive", asked, in_place_of_yield=RETURN)
