"""RestoredCalls: the calls of a snapshot, from its load until they are in flight again. A part of AsyncCalls.

They wait until it is known how far event time is: not as far as some of them have seen, where they come from several
subtasks. Those behind a watermark wait again, in the backlog, until it has passed.
"""

from __future__ import annotations

from ...messages import NO_WATERMARK
from ...state.backends.frozen_state import Stored
from ..operators.operator import Operator
from .backlog import Backlog
from .call_table import CallTable
from .failed_tries import FailedTries
from .frozen_calls import CallInFlight, calls_of, in_their_order
from .timer_calls import TimerCalls


class RestoredCalls:
    """One attempt's."""

    def __init__(
        self, operator: Operator, table: CallTable, backlog: Backlog, timers: TimerCalls, failed: FailedTries
    ) -> None:
        self.waiting: list[CallInFlight] = []
        self._operator = operator
        self._table = table
        self._backlog = backlog
        self._timers = timers
        self._failed = failed

    def __bool__(self) -> bool:
        """Whether some wait."""
        return bool(self.waiting)

    def load(self, stored: Stored) -> None:
        self.waiting.extend(calls_of(stored))

    def take(self, watermark_ms: int) -> bool:
        """Event time is so far: make calls of all that wait. Whether there were any."""
        if not self.waiting:
            return False
        restored, behind = in_their_order(self.waiting, watermark_ms)
        self.waiting = []
        passed_ms = NO_WATERMARK
        for behind_ms, each in restored[:behind]:
            if behind_ms > passed_ms:
                self._table.order.close(behind_ms)
                passed_ms = behind_ms
            for call in self._backlog.calls_of(each) if each.kind == "waiting" else (each,):
                self._hold(call)
        for behind_ms, each in restored[behind:]:
            if behind_ms > passed_ms:
                self._backlog.add_watermark(behind_ms)
                passed_ms = behind_ms
            self._backlog.add_restored(each)
        return True

    def _hold(self, each: CallInFlight) -> None:
        self._timers.restored(each)
        ready, clock = self._table.ready, self._operator.context.clock
        call = self._table.add_restored(each)
        is_next = each.again_wall_ms and ready and ready[-1] is call
        if is_next and self._failed.waits_again(call, each.again_wall_ms, clock.now_ms(), clock.wall_ms()):
            ready.pop()
