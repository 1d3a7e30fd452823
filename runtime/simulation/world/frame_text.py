"""FrameText: a frame that went over the simulated network, as a trace shows it. Decoded only when somebody reads it."""

from __future__ import annotations

from collections.abc import Sequence

from ....actors.flow.elements import Element
from ....messages import LeaderSessionId, LeaderSessionMessage, MessageError, decode
from ...system.remote.envelope import Envelope, unpack_payload
from ...transport.frames import HEADER_BYTES, unpack_header
from ...transport.payloads import decode_element


class FrameText:
    """What was said, and by whom."""

    __slots__ = ("_parts", "_peer")

    def __init__(self, peer: str, parts: Sequence[bytes]) -> None:
        self._peer = peer
        self._parts = parts

    def __str__(self) -> str:
        return f"from {self._peer}: {self._said()}"

    def message(self) -> object:
        """What was said to an actor; None of what went over a channel, or says nothing."""
        return self.directed()[1]

    def directed(self) -> tuple[LeaderSessionId | None, object]:
        """The same, with the leader session for which it was meant, if it was for one."""
        try:
            return (None, None) if len(self._parts[0]) == HEADER_BYTES else _unwrapped(decode(self._parts[0]))[1:]
        except MessageError:
            return None, None

    def _said(self) -> object:
        try:
            return self._on_a_channel() if len(self._parts[0]) == HEADER_BYTES else _to_an_actor(self._parts[0])
        except MessageError as error:
            return f"{sum(map(len, self._parts))} bytes that say nothing ({error})"

    def _on_a_channel(self) -> str:
        header = unpack_header(self._parts[0])
        said: Element | str = f"{header.first} {header.second}"
        if header.kind.is_batch:
            said = decode_element(header, self._parts[1])
        return f"channel {header.channel_id} frame {header.sequence} {header.kind.name} {said}"


def _to_an_actor(frame: bytes) -> object:
    to, session, inner = _unwrapped(decode(frame))
    if session is not None:
        return f"to {to} in {session}: {inner}"
    return f"to {to}: {inner}" if to else inner


def _unwrapped(said: object) -> tuple[str, LeaderSessionId | None, object]:
    """To whom something is said, in which session, and what; a connection's own messages are for nobody."""
    if not isinstance(said, Envelope):
        return "", None, said
    inner = unpack_payload(said.payload)
    if isinstance(inner, LeaderSessionMessage):
        return said.target, inner.leader_session_id, inner.message
    return said.target, None, inner
