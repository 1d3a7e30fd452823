"""TimerLog: what a kernel registers and deletes, on its way into the operator's SlotTimers."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...state.columnar.slot_timers import SlotTimers
from ...state.columnar.timer_runs import TimerRun
from .growing_rows import GrowingRows
from .input_columns import WorkTable, address_of
from .layout import DELETED_DUE, LAST, LOG_COLUMNS, LOG_KINDS, REGISTERED, SLICE, TIMER_LOG, TOUCHED

FEW: Final = 16


class TimerLog:
    """Belongs to one work table. `begin` before the kernel runs, `apply` after it."""

    def __init__(self, work: WorkTable) -> None:
        self._work = work
        self._rows = GrowingRows(work, TIMER_LOG, LOG_COLUMNS, LOG_KINDS)

    def begin(self, timers: SlotTimers) -> None:
        """With room in `timers` for all slots. Its arrays must be kept while the kernel runs."""
        work = self._work
        work[LAST], work[TOUCHED] = address_of(timers.last), address_of(timers.touched)
        work[SLICE] = timers.slice_number
        self._rows.begin_again()

    def apply(self, timers: SlotTimers) -> None:
        times, slots, changes = self._rows.filled
        if len(times):
            timers.apply(TimerRun(times, slots, changes == REGISTERED))

    def overdue(self, timers: SlotTimers) -> int | None:
        """The time of one that was pending and due when it was deleted. Before `apply`. Of a batch the first FEW that
        may have been are looked at.
        """
        times, slots, changes = self._rows.filled
        for row in np.flatnonzero(changes == DELETED_DUE)[:FEW].tolist():
            time_ms, slot = int(times[row]), int(slots[row])
            before = np.flatnonzero((times[:row] == time_ms) & (slots[:row] == slot))
            was_there = changes[before[-1]] == REGISTERED if len(before) else timers.has(time_ms, slot)
            if was_there:
                return time_ms
        return None
