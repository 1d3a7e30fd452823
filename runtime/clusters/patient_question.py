"""PatientQuestion: an actor that puts one question to an operator, and puts it again while the operator does not run.

    asked -> put to the JobManager -> answered, or failed permanently
              ^                 '-> not running, and time is left -> a pause -.
              '---------------------------------------------------------------'

Whoever spawned it asks it with an AskOperator; the answer is the operator's. Only NotRunning is worth another try, and
the loss of the TaskManager that was asked: a question changes no state, so it may be put twice. It stops when it has
answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pykka

from ...actors.actor import Actor
from ...actors.ask_errors import ActorDead, NotRunning, RemoteActorError, Unreachable
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


class PatientQuestion(Actor):
    """`wait_ms`: how long an operator that does not run is worth waiting for; 0: it is asked once."""

    def __init__(self, job_manager: Ref, wait_ms: float) -> None:
        self._job_manager = job_manager
        self._wait_ms = wait_ms
        self._question: AskOperator
        self._promise: pykka.Future[Any]
        self._began_ms = 0.0

    def on_receive(self, message: Any) -> Any:
        match message:
            case AskOperator():
                self._question, self._promise = message, self.context.promise()
                self._began_ms = self.context.clock.now_ms()
                self._put()
                return self._promise
            case _Answered(answer):
                self._promise.set(answer)
                self.context.stop(self.context.self_ref)
            case _Failed(error):
                self._failed(error)
            case _Again():
                self._put()
        return None

    def _put(self) -> None:
        self.context.pipe_to_self(self._job_manager.ask(self._question), _Answered, _Failed)

    def _failed(self, error: BaseException) -> None:
        refusal = self._as_not_running(error)
        left_ms = self._began_ms + self._wait_ms - self.context.clock.now_ms()
        if refusal is not None and not refusal.is_over and left_ms > 0:
            self.context.schedule(min(PAUSE_MS, left_ms), _Again())
            return
        told = refusal or error
        self._promise.set_exception((type(told), told, told.__traceback__))
        self.context.stop(self.context.self_ref)

    def _as_not_running(self, error: BaseException) -> NotRunning | None:
        """None when to ask again would not help."""
        match error:
            case NotRunning():
                why = error.why
            case RemoteActorError(type_name=NotRunning.__name__):
                why = error.message.partition("not running: ")[2] or error.message
            case ActorDead() | Unreachable() if error.address != self._job_manager.address:
                why = f"its TaskManager was lost before it answered: {error.reason}"
            case _:
                return None
        is_over = isinstance(error, NotRunning) and error.is_over
        if self._wait_ms and not is_over:
            why = f"{why} (waited for it for {self._wait_ms / 1000:g} s)"
        refusal = NotRunning(self._question.operator, why, is_over=is_over)
        refusal.__cause__ = error
        return refusal
