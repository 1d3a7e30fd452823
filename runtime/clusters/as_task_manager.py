"""A process as a TaskManager, or as one that prepares them, in which no cluster may start. A module that starts one
where it is imported would do so in each process that imports it, and their TaskManagers again, without end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..api.errors import InvalidProgram
from ..library_code import is_library

_here: list[str] = []
"""The jobs of which this process is a TaskManager: none, or one."""
_prepares = False


@contextmanager
def as_task_manager(job_name: str) -> Iterator[None]:
    """Until it ends: a Python worker of Spark does other work afterwards."""
    _here.append(job_name)
    try:
        yield
    finally:
        _here.remove(job_name)


@contextmanager
def preparing_task_managers() -> Iterator[None]:
    """This process imports what TaskManagers will need."""
    global _prepares
    _prepares = True
    try:
        yield
    finally:
        _prepares = False


def check_may_start() -> None:
    """Raises InvalidProgram in such a process, with the line of the program that wanted a cluster."""
    if not (_here or _prepares):
        return
    frame = _program(sys._getframe(1))
    place = "" if frame is None else f", at {frame.f_code.co_filename}:{frame.f_lineno}"
    below = 'write that line, and what goes with it, below `if __name__ == "__main__":`'
    if _here:
        raise InvalidProgram(
            f"a cluster was to start in a TaskManager of job {_here[0]!r}, which imports this module to run the job"
            f"{place}: {below}"
        )
    name = "" if frame is None else f", as {frame.f_globals.get('__name__', '')!r}"
    raise InvalidProgram(
        f"a cluster was to start in a process that prepares TaskManagers, which imports this file{name}{place}. If "
        f"that is the name of a library, give the file another one; in any case {below}"
    )


def _program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is neither ours nor Python's."""
    while frame is not None and is_library(frame):
        frame = frame.f_back
    return frame
