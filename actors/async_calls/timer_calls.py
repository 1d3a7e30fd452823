"""TimerCalls: timers of an operator with coroutines become calls, one of each key at a time: an earlier one may delete
the next, or set one before it.

It begins no call and emits nothing. On the task's thread.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from ...state.backends.shared_backend import SharedBackend
from ...state.backends.timer_queue import TimerEntry
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from ..operators.timers import FIRED_AT_ONCE, Domain, KeyedTimer
from .call import Call
from .call_table import CallTable
from .frozen_calls import CallInFlight

_LOOK_AGAIN_MS: Final = 10
"""While a timer of a key fires, those that are due are looked at again after this time."""


class TimerCalls:
    """Of one operator."""

    def __init__(self, operator: Operator, backend: SharedBackend, table: CallTable) -> None:
        self._operator = operator if isinstance(operator, KeyedOperator) else None
        self._backend = backend
        self._table = table
        self._firing: set[Any] = set()
        """The keys of which a timer has become a call that is not finished."""

    @staticmethod
    def are_of(operator: Operator) -> bool:
        """Whether it may have timers."""
        return isinstance(operator, KeyedOperator) and type(operator).on_timer is not KeyedOperator.on_timer

    def due_ms(self, now_ms: int) -> int | None:
        """When the next one of processing time is."""
        assert self._operator is not None
        timer_ms = self._operator.timers.queues.processing.next_ms()
        if timer_ms is not None and self._firing:  # those of keys of which one fires are due, and have to wait
            return max(timer_ms, now_ms + _LOOK_AGAIN_MS)
        return timer_ms

    def restored(self, each: CallInFlight) -> None:
        if each.kind == "timer" and each.results is None:
            self._firing.add(each.key)

    def finished(self, call: Call) -> None:
        if call.kind == "timer":
            self._firing.discard(call.key)

    def fire(self, domain: Domain, until_ms: int) -> bool:
        """Make calls of the timers that are due, the earliest of each key and at most FIRED_AT_ONCE; whether there are
        any.
        """
        operator = self._operator
        assert operator is not None
        queues, is_event = operator.timers.queues, domain == "event"
        queue = queues.event if is_event else queues.processing
        fired: list[TimerEntry] = []
        with self._backend.lock:
            due = list(islice(queue.due(until_ms), FIRED_AT_ONCE))
            for timer in due:
                if timer[1] in self._firing:  # an earlier one of its key may delete it, or set one before it
                    queue.add(timer)
                else:
                    self._firing.add(timer[1])
                    fired.append(timer)
        for time_ms, key, namespace in fired:
            watermark_ms = until_ms if is_event else operator.watermark
            call = Call(0, key, KeyedTimer(time_ms, domain, namespace), watermark_ms)
            call.kind, call.time_ms = "timer", time_ms if is_event else None
            self._table.add_timer(call)
        return bool(due)
