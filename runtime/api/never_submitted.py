"""Programs that were never submitted. Nothing runs before `cluster.submit`, so a script that has built one and forgets
that would end without a word.

A warning at its end, only of what a script itself builds, as `python job.py` runs it: a module that is imported, a
notebook and a test may well build what others submit.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

from ...messages.whose_code import PACKAGE
from ..library_code import is_our_frame
from .stream_graph import StreamGraph

log = logging.getLogger(__name__)


class _Watch:
    """On the first program that the script builds, until one is used."""

    def __init__(self) -> None:
        self.was_used = False
        self.at_exit: Callable[[], None] | None = None


_watch = _Watch()


def watch(graph: StreamGraph) -> None:
    """Called when an environment is made."""
    if _watch.was_used or _watch.at_exit is not None:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_our_frame(frame):
        frame = frame.f_back
    if frame is not None and frame.f_globals.get("__name__") == "__main__" and "__file__" in frame.f_globals:
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        _watch.at_exit = partial(_tell, graph, place, os.getpid())
        atexit.register(_watch.at_exit)


def used() -> None:
    """A program of this process is made into a job, or looked at, as for `understudy info`."""
    _watch.was_used = True
    if _watch.at_exit is not None:
        atexit.unregister(_watch.at_exit)
        _watch.at_exit = None


def _tell(graph: StreamGraph, place: str, pid: int) -> None:
    has_failed = hasattr(sys, "last_type")
    is_tested = f"{PACKAGE}.runtime.simulation" in sys.modules
    if has_failed or is_tested or pid != os.getpid():
        return
    if any(node.role == "sink" for node in graph.nodes):
        log.warning(
            "the program of the StreamEnvironment of %s was not submitted, so nothing of it has run: write "
            '`with LocalCluster() as cluster: cluster.submit(env, name="first").wait()`',
            place,
        )
