"""OperatorTime: the clock of an operator's state that expires.

Event time is where the watermark has come to, as far as its timers have fired: while one fires it is the timer's time,
also between the parts in which many fire. So what a timer sees does not depend on how far the watermark that made it
due has come at once. The end of the data is no time, and makes nothing older.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import NoEventTime
from .keyed_operator import KeyedOperator


class OperatorTime:
    """A StateClock. It is made where the operator's context is set already."""

    processing_ms: Callable[[], int]

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator
        self.processing_ms = operator.context.clock.wall_ms

    def event_ms(self) -> int:
        operator = self._operator
        if operator.timestamps is not None:  # its batch is processed
            return operator._reached_ms
        try:
            return max(operator._reached_ms, operator.timestamp)
        except AttributeError:  # it is no timer of event time either
            return operator._reached_ms

    def written_ms(self, what: str) -> int:
        operator = self._operator
        try:
            return operator.timestamp
        except AttributeError:
            if operator._is_due or operator._loop is not None:
                return operator._reached_ms
            raise NoEventTime(operator.context.name, what) from None
