"""RecordSides: what joins of records share: a list of kept records for each of two inputs, by key.

Not at home here: when records meet, and for how long they are kept.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ...state.kinds.descriptors import ListState
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from .joined_columns import How


class RecordSides(KeyedOperator):
    """Each kept record is a list that begins with the record."""

    inputs: ClassVar[int] = 2

    _left: ListState[Any] = ListState(object, name="left")
    _right: ListState[Any] = ListState(object, name="right")

    def __init__(self, how: How) -> None:
        self._how = how
        self._outer = (how in ("left", "full"), how in ("right", "full"))
        """Whether a record of this side is a result of its own if it has no match."""

    def process(self, record: Any, out: Collector) -> None:
        self._take(0, record, out)

    def process_2(self, record: Any, out: Collector) -> None:
        self._take(1, record, out)

    @abstractmethod
    def _take(self, side: int, record: Any, out: Collector) -> None:
        """Take one record of the left (0) or the right (1) input."""

    def _sides(self, side: int) -> tuple[ListState[Any], ListState[Any]]:
        """What is kept of this side, and of the other one."""
        return (self._left, self._right) if side == 0 else (self._right, self._left)
