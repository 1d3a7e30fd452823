"""relayed_prints: `sys.stdout` and `sys.stderr` of this process go to the user's process, as messages.

For a TaskManager in a Spark worker, whose descriptors are Spark's. What is written to the descriptors themselves, by C
code or by a child process, goes where Spark has it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

from .outbox import RelayOutbox

_PIECE_BYTES = 256 * 1024


@contextlib.contextmanager
def relayed_prints(outbox: RelayOutbox) -> Iterator[None]:
    """As long as the context lasts."""
    with contextlib.ExitStack() as stack:
        for name, redirected in (("stdout", contextlib.redirect_stdout), ("stderr", contextlib.redirect_stderr)):
            stream = _line_stream(name, outbox)
            stack.callback(stream.flush)
            stack.enter_context(redirected(stream))
        yield


def _line_stream(name: str, outbox: RelayOutbox) -> io.TextIOWrapper:
    raw = io.BufferedWriter(_Relay(name, outbox))
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


class _Relay(io.RawIOBase):
    """Where the bytes of a buffered stream go."""

    def __init__(self, name: str, outbox: RelayOutbox) -> None:
        self.name = f"<{name}>"
        self._stream = name
        self._outbox = outbox

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data[:_PIECE_BYTES])
        whole = _whole_characters(piece) or len(piece)
        self._outbox.put_text(self._stream, piece[:whole].decode("utf-8", "backslashreplace"))
        return whole


def _whole_characters(data: bytes) -> int:
    """How many bytes of UTF-8 there are before a character that is cut off."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:  # the first byte of a character of several
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) if back >= size else len(data) - back
        if byte < 0x80:
            break
    return len(data)
