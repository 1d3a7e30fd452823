"""LineSource: lines of text from a TCP or Unix socket, for trials. Flink: socketTextStream.

At most once: a socket cannot be asked for what it has sent. What was emitted behind the checkpoint that a restart goes
back to, and what waited in the source, is lost; so is the line that was cut off. With checkpoints this is said when the
job is submitted. The stream ends when the other side closes the connection.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

from ....actors.flow.elements import Batch
from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import duration_setting
from ..fed_source import FedSource, Feed
from ..names import one_name
from .asking import check_max_bytes, too_long

log = logging.getLogger("understudy.source")

_BLOCK_BYTES = 1 << 16
_WAIT_S = 0.5

_ADDRESS = "host:port, or the path of a Unix socket"


class LineSource(FedSource):
    """`address`: "host:port", or the path of a Unix socket. A record is a line of at most `max_bytes`, without its end;
    bytes that are not UTF-8 are replaced, and the first of them logged. One subtask reads.
    """

    bounded = False
    _how_to_bound = ""

    def __init__(self, address: str, *, retry_ms: float = RETRY_MS, max_bytes: int = 16 << 20) -> None:
        self.address, self.max_bytes = one_name("address", address, _ADDRESS), check_max_bytes(max_bytes)
        self.retry_ms = duration_setting("retry_ms", retry_ms)
        host, _, port = address.rpartition(":")
        self._is_tcp = bool(host) and port.isdigit()
        if not self._is_tcp and "/" not in address:
            raise ValueError(f"address: wanted {_ADDRESS}, found {address!r}")

    def check_at_submit(self, on_this_machine: bool) -> None:
        log.warning(
            "LineSource(%r) is for trials: a socket cannot be read again, so after each restart lines are lost (at "
            "most once), whatever checkpoints there are",
            self.address,
        )
        super().check_at_submit(on_this_machine)

    def __repr__(self) -> str:
        return f"LineSource({self.address!r})"

    def place(self) -> str:
        return self.address

    def look(self) -> Callable[[], object] | None:
        """Whether the host has an address: a connection would take what `nc` is about to send."""
        if not self._is_tcp:
            return None
        return lambda: socket.getaddrinfo(self.address.rpartition(":")[0].strip("[]"), None)

    def open(self) -> None:
        self._lines = 0

    def offset(self) -> Any:
        """How many lines have come: nobody can go on there, but it shows that something has."""
        return {"lines": self._lines}

    def seek(self, offset: Any) -> None:
        self._lines = offset["lines"]
        log.warning(
            "source %r goes on with what %s sends now: lines behind line %d may be lost",
            self.context.name,
            self.address,
            self._lines,
        )

    def rescale(self, offsets: Sequence[Any]) -> None:
        """Subtask 0 has always been the one that reads."""
        self.seek(offsets[0])

    def take(self, piece: list[str]) -> Batch:
        self._lines += len(piece)
        return piece

    def may_pass(self, error: Exception) -> bool:
        """A connection that cannot be made, or that breaks."""
        return isinstance(error, OSError)

    def listen(self, feed: Feed) -> None:
        if self.context.subtask_index:
            return
        with self._connected() as connection:
            feed.works()
            connection.settimeout(_WAIT_S)
            rest = b""
            while not feed.closed.is_set():
                try:
                    block = connection.recv(_BLOCK_BYTES)
                except TimeoutError:
                    continue
                *lines, rest = (rest + block).split(b"\n")
                if not block and rest:
                    lines, rest = [rest], b""
                if len(rest) > self.max_bytes:
                    raise too_long(f"{self!r}: a line that begins with {rest[:80]!r}", self.max_bytes)
                if lines:
                    feed.put([self._text(line.removesuffix(b"\r")) for line in lines])
                if not block:
                    return

    def _text(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            if not hasattr(self, "_has_warned"):
                self._has_warned = True
                log.warning(
                    "source %r: wanted lines of UTF-8, found %r from %s: others are replaced, from here on",
                    self.context.name,
                    line[:80],
                    self.address,
                )
            return line.decode(errors="replace")

    def _connected(self) -> socket.socket:
        if self._is_tcp:
            host, _, port = self.address.rpartition(":")
            return socket.create_connection((host.strip("[]"), int(port)), timeout=10)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(10)
            connection.connect(self.address)
        except BaseException:
            connection.close()
            raise
        return connection
