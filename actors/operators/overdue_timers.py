"""OverdueTimers: event-time timers that an operator of the user's takes back when they are due already.

The watermark follows behind the records of a batch. So a record may take a timer back that the watermark of this very
record fires: had a batch ended in between, the timer would have fired. Who deletes it gets other results where batches
end elsewhere. The log says so, once for each operator in a process; the job goes on, as `process` may do itself what
the timer was to do.

How far watermarks are behind the records that bring them shows with the next one. So what a record deletes is noted,
and looked at then: where events may come an hour late, nothing fires a timer within an hour behind its time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dis import get_instructions
from types import CodeType
from typing import Any, Final, NamedTuple

from ...messages.attributes import attributes_of
from ...messages.code_steps import codes_of
from ...messages.whose_code import is_ours
from ...state.backends.unit_of_work import CURRENT
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Times
from .line_of_caller import line_of_caller
from .said_once import SaidOnce

log = logging.getLogger(__name__)

_said = SaidOnce()

_DELETING: Final = ("delete_event_time", "delete")

_OF_ONE_TIME = (
    "It never fires now, and timers of one time fire in no order after a restart. Set them to different times, or keep "
    "in state which of them counts"
)
_BEFORE_ITS_RECORD = (
    "It never fires now, but it may where a batch ends before this record: results depend on where batches end. "
    "Compare first, as in `if self.timestamp < due_ms: self.timers.delete_event_time(due_ms)`, and let one that is due "
    "fire"
)


class _Deleted(NamedTuple):
    """By a record, or perhaps by one of a compiled batch: then `now_ms` is the earliest that it may have been."""

    time_ms: int
    now_ms: int
    place: str

    @property
    def behind_ms(self) -> int:
        """How far the timer is behind its record."""
        return self.now_ms - self.time_ms


class OverdueTimers:
    """Of one operator, whose context is set. `is_seen`: one was taken back, and no other need be looked for."""

    def __init__(self, operator: Any) -> None:
        self._operator = operator
        self.is_seen = False
        self.told = ""
        """What is to be said of it."""
        self._deleted: _Deleted | None = None
        """Since the last watermark: the one that is farthest behind its record."""
        self._newest_ms = NO_WATERMARK
        """The latest event time so far, of the batches that matter: those since something was deleted."""

    @property
    def operator_name(self) -> str:
        name: str = self._operator.context.name
        return name

    def look_at(self, time_ms: int) -> None:
        """A pending timer of this time was deleted by the function that runs."""
        operator = self._operator
        try:
            now_ms: int = operator.timestamp
        except AttributeError:  # neither a record with an event time, nor a timer
            return
        if time_ms > now_ms:
            return
        if self._in_on_timer():
            self._say(_Deleted(time_ms, now_ms, line_of_caller()), _OF_ONE_TIME)
        elif self._deleted is None or now_ms - time_ms > self._deleted.behind_ms:
            self._note(_Deleted(time_ms, now_ms, line_of_caller()))

    def look_at_batch(self, deleted: tuple[int, int] | None) -> None:
        """A compiled batch has run. `deleted`: a timer that was taken back, and the earliest time of a record that may
        have done it.
        """
        if deleted is not None and (self._deleted is None or deleted[1] - deleted[0] > self._deleted.behind_ms):
            self._note(_Deleted(*deleted, ""))

    def came(self, times: Times) -> None:
        """A batch comes. Its records bring the next watermark, perhaps."""
        if len(times) and not self.is_seen and (self._deleted is not None or self._operator._is_async):
            self._newest_ms = max(self._newest_ms, int(times.max()))

    def advanced(self, watermark_ms: int) -> None:
        """A watermark has come behind all of that."""
        if self._deleted is None:
            return
        deleted, self._deleted = self._deleted, None
        lag_ms = max(self._newest_ms - watermark_ms, 0)
        if watermark_ms != END_OF_TIME and deleted.behind_ms >= lag_ms:
            self._say(deleted, _BEFORE_ITS_RECORD)

    def _note(self, deleted: _Deleted) -> None:
        self._deleted = deleted
        self._newest_ms = max(self._newest_ms, deleted.now_ms)
        if not self._operator._is_async and self._operator.timestamps is not None:
            self.came(self._operator.timestamps)

    def _in_on_timer(self) -> bool:
        if self._operator._calls is not None:
            return getattr(CURRENT.get(), "kind", "record") == "timer"
        return self._operator.timestamps is None

    def _say(self, deleted: _Deleted, why: str) -> None:
        self.is_seen = True
        operator, context = self._operator, self._operator.context
        lines = deleted.place or " or ".join(_lines_of(type(operator))) or type(operator).__qualname__
        at = f", and self.timestamp is {deleted.now_ms}" if deleted.place else ""
        self.told = (
            f"operator {context.name!r} deletes a timer that is due: that of {deleted.time_ms}{at} ({lines}). {why}"
        )
        if _said.is_new(context.job_id, context.name, lines):
            log.warning("%s", self.told)


def _lines_of(cls: type) -> Iterator[str]:
    """Where the user's methods delete timers of event time."""
    found: dict[str, None] = {}
    for each in cls.__mro__:
        for method in attributes_of(each).values():
            code = getattr(method, "__code__", None)
            if not isinstance(code, CodeType) or is_ours(each):
                continue
            for part in codes_of(code):
                for step in get_instructions(part):
                    if step.argval in _DELETING and step.positions is not None:
                        found[f"{part.co_filename}:{step.positions.lineno}"] = None
    yield from found
