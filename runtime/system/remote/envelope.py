"""What two actor systems say to each other: every frame on a control connection is one of these messages, encoded."""

from __future__ import annotations

from functools import lru_cache

import msgpack

from ....messages import MAX_MESSAGE_BYTES, MessageError, Plain, decode, encode, message, tag_of


@message
class Envelope:
    """One message to the actor `target` of the receiving system; it asks for an answer if it has a `correlation_id`."""

    target: str
    sender: str
    """Base address of the sending system, where the answer goes; "" when none is wanted."""
    payload: bytes
    """As `pack_payload` made it: what is said may be unknown here, and yet the asker gets an answer."""
    correlation_id: str = ""


@message
class AskAnswered:
    """The outcome of an ask: what the handler returned."""

    correlation_id: str
    payload: bytes


@message
class AskRefused:
    """The outcome of an ask: there is no such actor, or it stopped before it answered."""

    correlation_id: str
    reason: str


@message
class AskRaised:
    """The outcome of an ask: the handler raised. Text only: an exception is never pickled."""

    correlation_id: str
    type_name: str
    text: str
    traceback_text: str
    raised_by: str = ""
    """The address of whose handler it was, if that is not the one that was asked, but one that it has asked itself."""


@message
class WatchActor:
    """Tell the system at `watcher` when the actor `target` has stopped. Repeating it is harmless."""

    target: str
    watcher: str
    number: int
    """Repeated in the notice, so that a late one is not taken for news of a later watch."""


@message
class UnwatchActor:
    """Nobody at `watcher` wants to know about `target` any more."""

    target: str
    watcher: str


@message
class WatchedActorStopped:
    """The actor at `address`, which was watched, has stopped or was not there. It may come twice."""

    address: str
    reason: str
    number: int


@message
class PlainValue:
    """Plain data, where an actor said no message."""

    value: Plain


def pack_payload(value: object) -> bytes:
    """A message or plain data to bytes. Raises a MessageError for what cannot travel."""
    try:
        tag_of(value)
    except MessageError:
        return encode(PlainValue(value))
    return encode(value)


def tell_frame(target: str, payload: bytes) -> bytes:
    """`encode(Envelope(target, "", payload))`, sooner: for one target, all of it but the payload is always the same."""
    before, after = _around_payload(target)
    frame: bytes = before + msgpack.packb(payload) + after
    return frame if len(frame) <= MAX_MESSAGE_BYTES else encode(Envelope(target, "", payload))


@lru_cache(maxsize=1024)
def _around_payload(target: str) -> tuple[bytes, bytes]:
    before, _, after = encode(Envelope(target, "", b"")).rpartition(msgpack.packb(b""))
    return before, after


def unpack_payload(payload: bytes) -> object:
    """What was said; raises MalformedMessage."""
    said = decode(payload)
    return said.value if isinstance(said, PlainValue) else said
