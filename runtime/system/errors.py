"""What can go wrong with an actor system.

    ActorSystemError
    ├── NameTaken         an actor of that name lives in this system
    ├── InvalidAddress    text that names no actor, or one that this system has no way to reach
    ├── SystemStopped     the system has not been started, or is shut down
    ├── InsecureKeyFile   a key file that others than its owner can read, or that holds no keys
    └── FutureTimeout     `result(timeout)` of a future gave up; the answer may come later

How an ask fails (AskTimeout, ActorDead, Unreachable, RemoteActorError) stands in actors/ask_errors.py.
"""

from __future__ import annotations

import pykka

from ...actors.ask_errors import ActorDead, AskFailed, AskTimeout, RemoteActorError, Unreachable
from ...actors.errors import MessageNotHandled

__all__ = [
    "ActorDead",
    "ActorSystemError",
    "AskFailed",
    "AskTimeout",
    "FutureTimeout",
    "InsecureKeyFile",
    "InvalidAddress",
    "MessageNotHandled",
    "NameTaken",
    "RemoteActorError",
    "SystemStopped",
    "Unreachable",
]


class ActorSystemError(Exception):
    """Base of all errors of runtime/system/."""


class NameTaken(ActorSystemError, ValueError):
    """Two actors of one system cannot have one name."""


class InvalidAddress(ActorSystemError, ValueError):
    """Not an address that this system can use; the text says what was found and what was wanted."""


class SystemStopped(ActorSystemError, RuntimeError):
    """The system does not run."""


class InsecureKeyFile(ActorSystemError):
    """The cluster's key file is not fit to be used."""


class FutureTimeout(ActorSystemError, pykka.Timeout, TimeoutError):
    """The future was not done within the time that `result` was given. It is still open, and can be asked again."""
