"""TimerLog: what a kernel registers and deletes, on its way into the operator's SlotTimers."""

from __future__ import annotations

from typing import Final

import numpy as np

from ...state.columnar.slot_timers import SlotTimers
from ...state.columnar.timer_runs import TimerRun
from ...state.keys.word_table import Slots
from ..flow.elements import Times
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

    def overdue(self, timers: SlotTimers, batch: tuple[Slots, Times]) -> tuple[int, int] | None:
        """Of those that were pending and due when they were deleted, the one that is farthest behind its record: its
        time, and the earliest time of a record that may have done it. Before `apply`. Of a batch the first FEW that
        may have been are looked at. `batch`: slots and event times of its records.
        """
        times, slots, changes = self._rows.filled
        found: tuple[int, int] | None = None
        for row in np.flatnonzero(changes == DELETED_DUE)[:FEW].tolist():
            time_ms, slot = int(times[row]), int(slots[row])
            before = np.flatnonzero((times[:row] == time_ms) & (slots[:row] == slot))
            was_there = changes[before[-1]] == REGISTERED if len(before) else timers.has(time_ms, slot)
            if was_there:
                at_ms = int(batch[1][(batch[0] == slot) & (batch[1] >= time_ms)].min())
                if found is None or at_ms - time_ms > found[1] - found[0]:
                    found = time_ms, at_ms
        return found
