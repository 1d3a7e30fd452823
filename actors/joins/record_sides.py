"""RecordSides: what joins of records share: a list of kept records for each of two inputs, by key.

Not at home here: when records meet, and for how long they are kept.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Final

from ...state.kinds.descriptors import ListState
from ..flow.elements import END_OF_TIME
from ..operators.collector import Collector
from .joined_columns import How
from .keys_of_sides import ComparesKeys

_REMOVALS: Final = 16


class RecordSides(ComparesKeys):
    """Each kept record is a list that begins with the record."""

    inputs: ClassVar[int] = 2

    _left: ListState[Any] = ListState(object, name="left")
    _right: ListState[Any] = ListState(object, name="right")

    def __init__(self, how: How) -> None:
        self._how = how
        self._outer = (how in ("left", "full"), how in ("right", "full"))
        """Whether a record of this side is a result of its own if it has no match."""

    def process(self, record: Any, out: Collector) -> None:
        if self._looks_at_keys:
            self._look_at_key(0)
        self._take(0, record, out)

    def process_2(self, record: Any, out: Collector) -> None:
        if self._looks_at_keys:
            self._look_at_key(1)
        self._take(1, record, out)

    @abstractmethod
    def _take(self, side: int, record: Any, out: Collector) -> None:
        """Take one record of the left (0) or the right (1) input."""

    def _sides(self, side: int) -> tuple[ListState[Any], ListState[Any]]:
        """What is kept of this side, and of the other one."""
        return (self._left, self._right) if side == 0 else (self._right, self._left)


def rounded_up(due_ms: int, kept_for_ms: int) -> int:
    """A time to remove a row of a key at, by which others are over as well: all that are kept of the key are looked
    through then, which happens about sixteen times within the time for which a row is kept, however many there are.
    """
    step_ms = max(1, kept_for_ms // _REMOVALS)
    return min(-(-due_ms // step_ms) * step_ms, END_OF_TIME)
