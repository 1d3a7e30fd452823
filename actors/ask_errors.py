"""How an ask fails.

ActorError
├── AskFailed             the base of all others; `address` is whom was asked
│   ├── AskTimeout        no answer in time; the actor may still be at it. Also a pykka.Timeout
│   ├── ActorDead         the actor stopped, was never there, or its system is shut down. Also a pykka.ActorDeadError
│   ├── Unreachable       its process cannot be reached, or the connection broke before the answer came
│   ├── RemoteActorError  its handler raised, in another process: what it raised, as text
│   ├── NotRunning        a stream operator that no task runs now: its job restarts, or is over
│   │   └── NoSuchVertex  the job has none of this name
│   └── KeyWanted         a stream operator that needs the key of the question, which has none
└── InletIsOver           nothing can be sent into a job any more: it has ended, or is about to

A handler of this process that raises fails the ask with that very exception.
"""

from __future__ import annotations

import pykka

from .errors import ActorError


class AskFailed(ActorError):
    """An ask has no answer."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class AskTimeout(AskFailed, pykka.Timeout):
    """No answer within the timeout."""


class ActorDead(AskFailed, pykka.ActorDeadError):
    """There is no such actor, or not any more."""


class Unreachable(AskFailed):
    """The actor's process cannot be reached; whether it got the message is not known.

    `is_refused`: it is there, and does not accept this process's key.
    """

    def __init__(self, address: str, reason: str, *, is_refused: bool = False) -> None:
        super().__init__(address, reason)
        self.is_refused = is_refused


class RemoteActorError(AskFailed):
    """The handler raised in the other process. Nothing is unpickled: type, message and traceback are text."""

    def __init__(self, address: str, type_name: str, message: str, traceback_text: str) -> None:
        super().__init__(address, f"{type_name}: {message}")
        self.type_name = type_name
        self.message = message
        self.traceback_text = traceback_text


class NotRunning(AskFailed):
    """No task runs this operator now. While its job starts or restarts it is worth asking again:
    `job.ask(..., wait_ms=5_000)` does. `is_over`: the job has ended, or is about to, so that it will not help.
    """

    def __init__(self, operator: str, why: str, *, is_over: bool = False) -> None:
        super().__init__(f"operator {operator!r}", f"not running: {why}")
        self.operator = operator
        self.why = why
        self.is_over = is_over


class NoSuchVertex(NotRunning):
    """The job has no vertex or operator of this name."""

    def __init__(self, wanted: str, job: str, known: str) -> None:
        super().__init__(wanted, f"job {job!r} has no such vertex or operator; it has {known}", is_over=True)
        self.args = (f"{wanted!r}: {self.why}",)


class InletIsOver(ActorError):
    """The job of an inlet has ended, or is about to. Other processes know it by name: they get that and its text."""


class KeyWanted(AskFailed):
    """The question was put without a key, and the operator used keyed state, or its key, to answer it."""
