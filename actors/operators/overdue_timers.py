"""OverdueTimers: event-time timers that an operator of the user's takes back when they are due already.

The watermark follows behind the records of a batch. So when a record comes whose time is not before that of a pending
timer, the timer is due, and would have fired before this record if a batch had ended in between. Who deletes it then
gets other results where batches end elsewhere. The log says so, once for each operator in a process; the job goes on,
as `process` may do itself what the timer was to do.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dis import get_instructions
from types import CodeType, FrameType
from typing import Any, Final

from ...messages.code_steps import codes_of
from ...messages.whose_code import PACKAGE, is_ours

log = logging.getLogger(__name__)

_MOST_SAID: Final = 1_000

_said: set[tuple[str, str, str]] = set()
"""Operators of jobs, in this process: each subtask and each attempt would say it again."""

_DELETING: Final = ("delete_event_time", "delete")


class OverdueTimers:
    """Of one operator, whose context is set. `is_seen`: one was taken back, and no other need be looked for."""

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self.is_seen = False
        self.told = ""
        """What is to be said of it."""

    @property
    def operator_name(self) -> str:
        name: str = self._operator.context.name
        return name

    def look_at(self, time_ms: int) -> None:
        """A pending timer of this time was deleted by the function that runs."""
        try:
            now_ms: int = self._operator.timestamp
        except AttributeError:  # neither a record with an event time, nor a timer
            return
        if time_ms <= now_ms:
            self.say(time_ms, now_ms, _caller())

    def say(self, time_ms: int, now_ms: int | None = None, place: str = "") -> None:
        """One was due. `now_ms`: what event time was then. `place`: the line; by default all that it may be."""
        self.is_seen = True
        operator, context = self._operator, self._operator.context
        lines = place or " or ".join(_lines_of(type(operator))) or type(operator).__qualname__
        at = "" if now_ms is None else f", and self.timestamp is {now_ms}"
        self.told = (
            f"operator {context.name!r} deletes a timer that is due: that of {time_ms}{at} ({lines}). {self._why}"
        )
        about = context.job_id, context.name, lines
        if about not in _said:
            if len(_said) >= _MOST_SAID:
                _said.clear()
            _said.add(about)
            log.warning("%s", self.told)

    @property
    def _why(self) -> str:
        operator = self._operator
        if operator.timestamps is None and operator._calls is None and not operator.compiled:  # in on_timer
            return (
                "It never fires now, and timers of one time fire in no order after a restart. Set them to different "
                "times, or keep in state which of them counts"
            )
        return (
            "It never fires now, but where a batch ends before this record it does: results depend on where batches "
            "end. Compare first, as in `if self.timestamp < due_ms: self.timers.delete_event_time(due_ms)`, and let "
            "one that is due fire"
        )


def _caller() -> str:
    """The line that called the library, if it is in sight."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == PACKAGE:
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _lines_of(cls: type) -> Iterator[str]:
    """Where the user's methods delete timers of event time."""
    found: dict[str, None] = {}
    for each in cls.__mro__:
        for method in vars(each).values():
            code = getattr(method, "__code__", None)
            if not isinstance(code, CodeType) or is_ours(each):
                continue
            for part in codes_of(code):
                for step in get_instructions(part):
                    if step.argval in _DELETING and step.positions is not None:
                        found[f"{part.co_filename}:{step.positions.lineno}"] = None
    yield from found
