"""PatientQuestion: an actor that puts one question to an operator, and puts it again while the operator does not run.

    asked -> put to the JobManager -> answered, or failed permanently
              ^                 '-> not running, and time is left -> a pause -.
              '---------------------------------------------------------------'

Whoever spawned it asks it with an AskOperator; the answer is the operator's. Only NotRunning is worth another try,
which the JobManager says of the loss of a TaskManager, too: a question changes no state, so it may be put twice. It
stops when it has answered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pykka

from ...actors.actor import Actor
from ...actors.ask_errors import AskTimeout, NotRunning, RemoteActorError
from ...actors.context import Ref
from ...messages import AskOperator

PAUSE_MS = 100.0


@dataclass(frozen=True, slots=True)
class _Answered:
    answer: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


@dataclass(frozen=True, slots=True)
class _Again:
    pass


@dataclass(frozen=True, slots=True)
class _Overdue:
    pass


class PatientQuestion(Actor):
    """`wait_ms`: how long an operator that does not run is worth waiting for; 0: it is asked once. `deadline_ms`: when
    all is over, whatever it waits for by then.
    """

    def __init__(self, job_manager: Ref, wait_ms: float, deadline_ms: float = math.inf) -> None:
        self._job_manager = job_manager
        self._wait_ms = min(wait_ms, deadline_ms)
        self._deadline_ms = deadline_ms
        self._refusal: NotRunning | None = None
        """The latest one, while it waits to ask again."""
        self._question: AskOperator
        self._promise: pykka.Future[Any]
        self._began_ms = self._put_ms = 0.0
        self._is_over = False

    def on_receive(self, message: Any) -> Any:
        if self._is_over:
            return None  # what was in the inbox when it ended: an answer that came too late
        match message:
            case AskOperator():
                self._question, self._promise = message, self.context.promise()
                self._began_ms = self.context.clock.now_ms()
                if not math.isinf(self._deadline_ms):
                    self.context.schedule(self._deadline_ms, _Overdue())
                self._put()
                return self._promise
            case _Answered(answer):
                self._promise.set(answer)
                self._end()
            case _Failed(error):
                self._failed(error)
            case _Again():
                self._put()
            case _Overdue():
                self._overdue()
        return None

    def _put(self) -> None:
        """Up to its deadline, if it has one, the JobManager may take its time."""
        self._put_ms = self.context.clock.now_ms()
        timeout_ms = None if math.isinf(self._deadline_ms) else math.inf
        answer = self._job_manager.ask(self._question, timeout_ms=timeout_ms)
        self.context.pipe_to_self(answer, _Answered, _Failed)

    def _failed(self, error: BaseException) -> None:
        refusal = self._as_not_running(error)
        left_ms = self._began_ms + self._wait_ms - self.context.clock.now_ms()
        if refusal is not None and not refusal.is_over and left_ms > 0:
            self._refusal = refusal
            self.context.schedule(min(PAUSE_MS, left_ms), _Again())
            return
        self._fail(refusal or error)

    def _fail(self, error: BaseException) -> None:
        self._promise.set_exception((type(error), error, error.__traceback__))
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self.context.stop(self.context.self_ref)

    def _overdue(self) -> None:
        """What it has waited for: a task, or the answer of one."""
        asked_ms = self.context.clock.now_ms() - self._put_ms
        if self._refusal is not None and asked_ms <= PAUSE_MS:
            self._fail(self._refusal)
            return
        asked = f"operator {self._question.operator!r}"
        self._fail(AskTimeout(asked, f"it was asked, and has not answered within {self._deadline_ms / 1000:g} s"))

    def _as_not_running(self, error: BaseException) -> NotRunning | None:
        """None when to ask again would not help."""
        match error:
            case NotRunning():
                why = error.why
            case RemoteActorError(type_name=NotRunning.__name__):
                why = error.message.partition("not running: ")[2] or error.message
            case _:
                return None
        is_over = isinstance(error, NotRunning) and error.is_over
        if self._wait_ms and not is_over:
            why = f"{why} (waited for it for {self._wait_ms / 1000:g} s)"
        refusal = NotRunning(self._question.operator, why, is_over=is_over)
        refusal.__cause__ = error
        return refusal
