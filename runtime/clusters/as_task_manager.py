"""A process as a TaskManager, in which no cluster may start. A module that starts one where it is imported would do so
in each TaskManager that imports it, and their TaskManagers again.
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


@contextmanager
def as_task_manager(job_name: str) -> Iterator[None]:
    """Until it ends: a Python worker of Spark does other work afterwards."""
    _here.append(job_name)
    try:
        yield
    finally:
        _here.remove(job_name)


def check_may_start() -> None:
    """Raises InvalidProgram in a TaskManager, with the line of the program that wanted a cluster."""
    if _here:
        raise InvalidProgram(
            f"a cluster was to start in a TaskManager of job {_here[0]!r}, which imports this module to run the job"
            f"{_place(sys._getframe(1))}: write that line, and what goes with it, below "
            '`if __name__ == "__main__":`'
        )


def _place(frame: FrameType | None) -> str:
    while frame is not None and is_library(frame):
        frame = frame.f_back
    return "" if frame is None else f", at {frame.f_code.co_filename}:{frame.f_lineno}"
