"""TimerRun: timers of many slots in columns, sorted by time and slot. Runs are put together; none is ever changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.timed_batch import Times
from ..keys.word_table import Slots

_BITS = 63
"""Of a whole number that NumPy sorts, without its sign."""


class TimerRun(NamedTuple):
    """One row for each time and slot."""

    times: Times
    slots: Slots
    live: npt.NDArray[np.bool_]
    """False: the timer was deleted, which hides the one of an older run."""

    def part(self, start: int, end: int | None = None) -> TimerRun:
        """Some of the rows. They are copied where otherwise twice as much memory would be kept for them."""
        part = TimerRun(self.times[start:end], self.slots[start:end], self.live[start:end])
        base = part.times.base
        if isinstance(base, np.ndarray) and 2 * len(part.times) < len(base):
            return TimerRun(part.times.copy(), part.slots.copy(), part.live.copy())
        return part

    def up_to(self, until_ms: int) -> int:
        """The number of rows whose time is not after this."""
        return int(np.searchsorted(self.times, until_ms, "right"))

    def chosen(self, rows: npt.NDArray[Any]) -> TimerRun:
        """These rows, in this order."""
        return TimerRun(self.times[rows], self.slots[rows], self.live[rows])

    def alive(self) -> TimerRun:
        """Without what was deleted."""
        return self if self.live.all() else self.chosen(self.live)

    def find(self, time_ms: int, slot: int) -> bool | None:
        """Whether this timer is there; None: this run says nothing about it."""
        start, end = np.searchsorted(self.times, time_ms, "left"), np.searchsorted(self.times, time_ms, "right")
        row = start + np.searchsorted(self.slots[start:end], slot)
        return bool(self.live[row]) if row < end and self.slots[row] == slot else None


EMPTY: Final = TimerRun(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))


def run_of(changes: TimerRun) -> TimerRun:
    """A run of changes in the order in which they were made: the last one for a time and slot counts."""
    if not len(changes.times):
        return EMPTY
    in_order = changes.chosen(_order(changes.times, changes.slots))
    times, slots, _ = in_order
    is_last = np.ones(len(times), np.bool_)
    np.logical_or(times[1:] != times[:-1], slots[1:] != slots[:-1], out=is_last[:-1])
    return in_order if is_last.all() else in_order.chosen(is_last)


def merged(runs: Iterable[TimerRun]) -> TimerRun:
    """One run of several, the oldest first: a newer one's row takes the place of an older one's."""
    several = [run for run in runs if len(run.times)]
    if len(several) < 2:
        return several[0] if several else EMPTY
    return run_of(TimerRun(*map(np.concatenate, zip(*several, strict=True))))


def live_run(times: Sequence[int] | Times, slots: Slots) -> TimerRun:
    """A run of timers that were registered."""
    return run_of(TimerRun(np.asarray(times, np.int64), slots, np.ones(len(slots), np.bool_)))


def _order(times: Times, slots: Slots) -> npt.NDArray[Any]:
    """By time and slot; of the same, the earlier row first.

    NumPy sorts plain numbers ten times as fast as it sorts by two columns, so time, slot and row are made one number if
    they have 63 bits; or at least time and slot, where the sort finds out by itself that it has sorted runs to merge.
    """
    first = int(times.min())
    span_bits = (int(times.max()) - first).bit_length()
    slot_bits, row_bits = int(slots.max()).bit_length(), (len(times) - 1).bit_length()
    if span_bits + slot_bits > _BITS:
        return np.lexsort((slots, times))
    pairs = ((times - first) << slot_bits) | slots
    if span_bits + slot_bits + row_bits > _BITS:
        return np.argsort(pairs, kind="stable")
    pairs = (pairs << row_bits) | np.arange(len(times))
    pairs.sort()
    return pairs & ((1 << row_bits) - 1)
