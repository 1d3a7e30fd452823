"""EventStream: what a stream of server-sent events says, as it comes. Bytes in, events out; it reads nothing itself.

WHATWG HTML, section 9.2.6, "Interpreting an event stream". Fields that the standard does not know are left out.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple


class ServerEvent(NamedTuple):
    """`event`: its type, "message" if the server names none; `data`: its lines, joined by a line end; `id`: the last
    id that the server has sent up to it, "" if none.
    """

    event: str
    data: str
    id: str


class EventStream:
    """One connection. `last_id`: what stands before an id comes."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        """As of the last event that was complete."""
        self.retry_ms: int | None = None
        """How long the server wants a client to wait before it connects again; None: it has not said."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._is_begun = False
        self._data: list[str] = []
        self._type, self._id = "", last_id

    @property
    def held_bytes(self) -> int:
        """Of the event that is not complete: about what the server has sent of it."""
        return len(self._rest) + sum(map(len, self._data))

    def events(self, block: bytes) -> list[ServerEvent]:
        """Those that are complete with this block. A line that is cut off waits for its rest."""
        text = self._rest + self._decoder.decode(block)
        if not self._is_begun and text:
            self._is_begun, text = True, text.removeprefix("\ufeff")
        if text.endswith("\r"):  # a line feed may follow, which belongs to it
            text, held = text[:-1], "\r"
        else:
            held = ""
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest = rest + held
        found = [event for line in lines if (event := self._line(line)) is not None]
        return found

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatched()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._type = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry_ms = int(value)
        return None

    def _dispatched(self) -> ServerEvent | None:
        self.last_id = self._id
        event = ServerEvent(self._type or "message", "\n".join(self._data), self._id) if self._data else None
        self._data, self._type = [], ""
        return event
