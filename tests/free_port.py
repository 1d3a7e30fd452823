"""A port for a process that listens later."""

from __future__ import annotations

import random
import socket

_BELOW_EPHEMERAL = (15_000, 32_000)
"""The system gives none of these to connections, which could take the port until it is listened at."""


def free_port() -> int:
    """One of 127.0.0.1 at which nothing listens now. Drawn, as other tests draw theirs at the same time."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(*_BELOW_EPHEMERAL)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
