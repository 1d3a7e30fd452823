"""Home: the process in which something was made. A fork of it has the object too, and none of the threads that serve
it; who would wait there, as gunicorn's workers with --preload, waits for nothing.
"""

from __future__ import annotations

import os


class Home:
    """The process that makes it."""

    def __init__(self) -> None:
        self._process = os.getpid()

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of it."""
        return os.getpid() != self._process

    @property
    def why(self) -> str:
        """The reason that a fork gives when it is used there."""
        return (
            f"it was started in process {self._process}; this one, {os.getpid()}, is a fork of that, and has none of "
            "its threads. Start a cluster after the fork, as in the worker's lifespan; or reach the one of the other "
            "process by a RemoteCluster"
        )
