"""Where a coroutine waits: the line of the user's to name in a log or an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from linecache import getline
from types import FrameType
from typing import Any

from ..library_code import is_our_frame

MOST_LINES = 3


def waiting_at(coroutine: Any) -> str:
    """As in `/home/me/job.py:12: await self.client.get(record)`: the outermost line that is not Understudy's."""
    frames = list(_frames(coroutine))
    frame = next((each for each in frames if not is_our_frame(each)), None)
    if frame is None:
        return "an unknown line"
    return shown_line(frame.f_code.co_filename, frame.f_lineno)


def shown_line(path: str, line: int) -> str:
    """With its text, if its file is to be found."""
    source = getline(path, line).strip()
    return f"{path}:{line}: {source}" if source else f"{path}:{line}"


def waiting_lines(coroutines: Iterable[Any]) -> str:
    """The same of several, each line once."""
    return each_once(waiting_at(each) for each in coroutines)


def each_once(lines: Iterable[str]) -> str:
    lines = list(dict.fromkeys(lines))
    elsewhere = ["and elsewhere"] if len(lines) > MOST_LINES else []
    return "; ".join([*lines[:MOST_LINES], *elsewhere]) or "an unknown line"


def _frames(awaited: Any) -> Iterator[FrameType]:
    """From the outermost one inwards."""
    while awaited is not None:
        frame = next(
            (found for each in ("cr_frame", "gi_frame", "ag_frame") if (found := getattr(awaited, each, None))), None
        )
        if frame is not None:
            yield frame
        awaited = next(
            (found for each in ("cr_await", "gi_yieldfrom", "ag_await") if (found := getattr(awaited, each, None))),
            None,
        )
