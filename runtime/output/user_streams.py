"""UserStreams: the standard output and standard error of the user's process, as they are at the moment of writing.

So whatever has replaced `sys.stdout` (a notebook, pytest, a redirection) gets what TaskManagers print. Writing blocks
as long as the stream does, and never raises: a stream that cannot be written to any more is logged once and left alone.
"""

from __future__ import annotations

import logging
import sys
from typing import IO, Any, Literal

log = logging.getLogger(__name__)

StreamName = Literal["stdout", "stderr"]


class UserStreams:
    """Called by one thread at a time."""

    def __init__(self) -> None:
        self._broken: dict[str, object] = {}

    def write(self, name: StreamName, text: str) -> None:
        """Write to the stream that has this name now, and flush it."""
        stream: IO[str] | None = getattr(sys, name)
        if stream is None or self._broken.get(name) is stream:
            return
        try:
            _write(stream, text)
            stream.flush()
        except Exception as error:  # noqa: BLE001  (whatever somebody's stream raises must not end the thread)
            self._broken[name] = stream
            log.warning("sys.%s cannot be written to (%r): what TaskManagers print is dropped from now on", name, error)


def _write(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # as a terminal without UTF-8
        encoding: Any = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
