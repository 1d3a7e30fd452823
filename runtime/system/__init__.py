"""The actor system: usable on its own, without any stream job. See docs/actors.md."""

from .dead_letters import DeadLetter, DeadLetterReason, DeadLetters
from .dispatcher import Dispatcher, Driven, Seat, drive
from .errors import (
    ActorDead,
    ActorSystemError,
    AskFailed,
    AskTimeout,
    FutureTimeout,
    InsecureKeyFile,
    InvalidAddress,
    MessageNotHandled,
    NameTaken,
    RemoteActorError,
    SystemStopped,
    Unreachable,
)
from .future import ActorFuture
from .ref import LocalRef, NamedRef, RemoteRef
from .remote.curve import CurveKeys
from .remote.transport import Receiver, Transport
from .remote.zmq_transport import TransportOptions, ZmqTransport
from .system import ActorSystem

__all__ = [
    "ActorDead",
    "ActorFuture",
    "ActorSystem",
    "ActorSystemError",
    "AskFailed",
    "AskTimeout",
    "CurveKeys",
    "DeadLetter",
    "DeadLetterReason",
    "DeadLetters",
    "Dispatcher",
    "Driven",
    "FutureTimeout",
    "InsecureKeyFile",
    "InvalidAddress",
    "LocalRef",
    "MessageNotHandled",
    "NameTaken",
    "NamedRef",
    "Receiver",
    "RemoteActorError",
    "RemoteRef",
    "Seat",
    "SystemStopped",
    "Transport",
    "TransportOptions",
    "Unreachable",
    "ZmqTransport",
    "drive",
]
