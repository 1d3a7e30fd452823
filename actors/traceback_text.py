"""Tracebacks as text, as messages carry them to other processes: as Python prints them, unless whoever runs the actors
wants them otherwise.

The simulator does: what its messages say must not depend on where the package lies, since their length is part of what
happens.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import TracebackType

Format = Callable[[BaseException, TracebackType | None], str]
"""One error and its frames as lines of text, without what caused it."""

_BETWEEN = "\nwhich led to:\n\n"
_MOST_CAUSES = 10


def usual_traceback(error: BaseException, frames: TracebackType | None) -> str:
    """As Python prints it."""
    return "".join(traceback.format_exception(type(error), error, frames, chain=False))


def placeless_traceback(error: BaseException, frames: TracebackType | None) -> str:
    """The same without ranges, and of each file's path only what its packages say: it is the same wherever they lie."""
    lines: list[str] = []
    for frame, line_number in traceback.walk_tb(frames):
        path = frame.f_code.co_filename
        place = _within_packages(path, frame.f_globals.get("__name__", ""))
        lines.append(f'  File "{place}", line {line_number}, in {frame.f_code.co_name}\n')
        if line := linecache.getline(path, line_number, frame.f_globals).strip():
            lines.append(f"    {line}\n")
    heading = ["Traceback (most recent call last):\n"] if lines else []
    return "".join([*heading, *lines, *traceback.format_exception_only(type(error), error)])


_format: ContextVar[Format] = ContextVar("format of tracebacks", default=usual_traceback)


@contextmanager
def formatting(how: Format) -> Iterator[None]:
    """Within, and in all tasks that begin within, tracebacks become text in this way."""
    token = _format.set(how)
    try:
        yield
    finally:
        _format.reset(token)


def traceback_text(error: BaseException, frames: TracebackType | None) -> str:
    """The error and these frames, which begin where the reader's interest does; not what caused the error."""
    return _format.get()(error, frames)


def chained_traceback_text(error: BaseException) -> str:
    """The error with all of its frames, and before it what caused it."""
    if _format.get() is usual_traceback:
        return "".join(traceback.format_exception(error))
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain and len(chain) < _MOST_CAUSES:
        chain.append(step)
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)
    return _BETWEEN.join(traceback_text(each, each.__traceback__) for each in reversed(chain))


@lru_cache(maxsize=1024)
def _within_packages(path: str, module: str) -> str:
    """The end of a file's path: its name, and those of the packages that its module is in."""
    parts = path.replace("\\", "/").split("/")
    depth = module.count(".") + (2 if parts[-1] == "__init__.py" else 1)
    return "/".join(parts[-depth:])
