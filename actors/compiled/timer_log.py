"""TimerLog: what a kernel registers and deletes, on its way into the operator's SlotTimers."""

from __future__ import annotations

import numpy as np

from ...state.columnar.slot_timers import SlotTimers
from ...state.columnar.timer_runs import TimerRun
from .growing_rows import GrowingRows
from .input_columns import WorkTable, address_of
from .layout import LAST, LOG_COLUMNS, LOG_KINDS, SLICE, TIMER_LOG, TOUCHED


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
        times, slots, live = self._rows.filled
        if len(times):
            timers.apply(TimerRun(times, slots, live.view(np.bool_)))
