"""SlotTimers: the event-time timers of a compiled operator, in columns by slot; one for each time and slot.

A log-structured merge tree in memory: what a kernel registers and deletes during a batch becomes a sorted run, and the
last two runs become one whenever the last is at least half as long as the one before. So there are few runs, a timer is
moved a few times in its life, and nothing is scanned. Flink keeps timers as a heap of objects: HeapPriorityQueueSet.

Timers become due in slices of at most AT_ONCE. A kernel fires one until it comes to a timer of a slot whose timers have
changed meanwhile: so what `on_timer` registers and deletes holds before the next timer of the same key fires. Of one
key they fire in the order of their times, and of different keys slice by slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from ..columns.timed_batch import Times
from ..keys.word_table import Slots
from .timer_runs import EMPTY, TimerRun, live_run, merged, run_of

AT_ONCE: Final = 65_536
NO_TIME: Final = -(2**63)
"""In `last`: nothing."""


class SlotTimers:
    """Owned by the task's thread. Arrays of runs are never changed, so a snapshot reads them on another one."""

    def __init__(self) -> None:
        self.last: Times = np.empty(0, np.int64)
        """By slot: the time that was registered last, if it is certain to be pending, else NO_TIME. A kernel writes it,
        and need not log what it finds there: most records register a timer that is there already.
        """
        self.touched: npt.NDArray[np.int64] = np.empty(0, np.int64)
        """By slot: the number of the slice in which `on_timer` changed its timers. A kernel writes it."""
        self.slice_number = 0
        self._runs: list[TimerRun] = []
        """The oldest first. While `_head` has something, all their times are after `_head_until`."""
        self._head = EMPTY
        """What is due next, without deleted ones."""
        self._head_until = NO_TIME
        self._single: dict[tuple[int, int], bool] = {}
        """(time, slot) of timers set and deleted one by one, from Python; newer than all runs."""

    def __len__(self) -> int:
        self._to_one_run()
        return len(self._head.times) + sum(len(run.times) for run in self._runs)

    def has(self, time_ms: int, slot: int) -> bool:
        single = self._single.get((time_ms, slot))
        if single is not None:
            return single
        for run in (*reversed(self._runs), self._head):
            found = run.find(time_ms, slot)
            if found is not None:
                return found
        return False

    def add(self, time_ms: int, slot: int) -> bool:
        """Whether it was not there yet."""
        return not self.has(time_ms, slot) and self._set(time_ms, slot, True)

    def remove(self, time_ms: int, slot: int) -> bool:
        """Whether it was there."""
        self._forget_last(time_ms, slot)
        return self.has(time_ms, slot) and self._set(time_ms, slot, False)

    def load(self, times: Times, slots: Slots) -> None:
        """Add what a snapshot holds."""
        self._append(live_run(times, slots))

    def apply(self, changes: TimerRun) -> None:
        """What a kernel has logged, in its order."""
        self._add_single()
        self._take_in(run_of(changes))

    def reserve(self, slots: int) -> None:
        """Have `last` and `touched` for this many slots."""
        size = len(self.last)
        if slots > size:
            more = max(slots, 2 * size) - size
            self.last = np.concatenate((self.last, np.full(more, NO_TIME)))
            self.touched = np.concatenate((self.touched, np.zeros(more, np.int64)))

    def due(self, until_ms: int) -> TimerRun:
        """The next slice of what is not after `until_ms`; empty when there is nothing. It stays until `fired`."""
        self._add_single()
        while not len(self._head.times) and self._take_head(until_ms):
            pass
        self.slice_number += 1
        return self._head.part(0, min(AT_ONCE, self._head.up_to(until_ms)))

    def fired(self, count: int) -> None:
        """The first `count` of the slice are not pending any more. To be called before `apply`."""
        self._head = self._head.part(count)

    def pop(self, until_ms: int) -> tuple[int, int] | None:
        """Take out the first one, its time and its slot, if it is not after `until_ms`."""
        times, slots, _ = self.due(until_ms)
        if not len(times):
            return None
        time_ms, slot = int(times[0]), int(slots[0])
        self.fired(1)
        self._forget_last(time_ms, slot)
        return time_ms, slot

    def next_ms(self) -> int | None:
        """The earliest time, or earlier where timers were deleted; None when there are none."""
        self._add_single()
        return min((int(run.times[0]) for run in (self._head, *self._runs) if len(run.times)), default=None)

    def pending(self) -> Iterator[tuple[int, int]]:
        """Time and slot of each."""
        self._to_one_run()
        for run in (self._head, *self._runs):
            yield from zip(run.times.tolist(), run.slots.tolist(), strict=True)

    def slots(self) -> Slots:
        """Those that have timers, each once."""
        self._to_one_run()
        return np.unique(np.concatenate([self._head.slots, *(run.slots for run in self._runs)]))

    def move(self, kept: Slots, slots: Slots) -> None:
        """The timers of the slots `kept`, which are all that have some, move to `slots`."""
        self._to_one_run()
        new_slot = np.zeros(int(kept.max(initial=-1)) + 1, np.int64)
        new_slot[kept] = slots
        self._head, *self._runs = (run_of(run._replace(slots=new_slot[run.slots])) for run in (self._head, *self._runs))
        self.last, self.touched = np.empty(0, np.int64), np.empty(0, np.int64)

    def frozen(self) -> list[TimerRun]:
        """All runs as they are now, the oldest first."""
        self._add_single()
        return [run for run in (self._head, *self._runs) if len(run.times)]

    def frozen_of(self, slots: Slots, count: int) -> list[TimerRun]:
        """The same of these of the first `count` slots."""
        wanted = np.zeros(count, np.bool_)
        wanted[slots] = True
        chosen = [run.chosen(wanted[run.slots]) for run in self.frozen()]
        return [run for run in chosen if len(run.times)]

    def forget(self, slots: Slots) -> None:
        """These have no timers any more."""
        self._to_one_run()
        chosen = [run.chosen(~np.isin(run.slots, slots)) for run in (self._head, *self._runs)]
        self._head, *self._runs = chosen
        self._runs = [run for run in self._runs if len(run.times)]

    def clear(self) -> None:
        self._runs, self._head = [], EMPTY
        self._single.clear()
        self.last.fill(NO_TIME)

    def _forget_last(self, time_ms: int, slot: int) -> None:
        if slot < len(self.last) and self.last[slot] == time_ms:
            self.last[slot] = NO_TIME

    def _set(self, time_ms: int, slot: int, is_live: bool) -> bool:
        self._single[time_ms, slot] = is_live
        return True

    def _add_single(self) -> None:
        if self._single:
            times, slots = zip(*self._single, strict=True)
            live = np.fromiter(self._single.values(), np.bool_, len(times))
            self._single.clear()
            self._take_in(run_of(TimerRun(np.array(times, np.int64), np.array(slots, np.int64), live)))

    def _take_in(self, run: TimerRun) -> None:
        """What is not after the head's last time goes into the head, which would fire before it otherwise."""
        if len(self._head.times) and (early := run.up_to(self._head_until)):
            self._head = merged((self._head, run.part(0, early))).alive()
            run = run.part(early)
        self._append(run)

    def _append(self, run: TimerRun) -> None:
        if not len(run.times):
            return
        runs = self._runs
        runs.append(run)
        while len(runs) > 1 and 2 * len(runs[-1].times) >= len(runs[-2].times):
            runs[-2:] = [merged(runs[-2:])]
        if len(runs) == 1:  # nothing is older
            self._runs = [run for run in (runs[0].alive(),) if len(run.times)]

    def _take_head(self, until_ms: int) -> bool:
        """Make a head of about AT_ONCE timers, or all of one time; whether there was anything not after `until_ms`."""
        for run in self._runs:
            if len(run.times) > AT_ONCE:
                until_ms = min(until_ms, int(run.times[AT_ONCE - 1]))
        ends = [run.up_to(until_ms) for run in self._runs]
        if not any(ends):
            return False
        parts = list(zip(self._runs, ends, strict=True))
        self._head = merged([run.part(0, end) for run, end in parts]).alive()
        self._head_until = until_ms
        self._runs = [run.part(end) for run, end in parts if end < len(run.times)]
        return True

    def _to_one_run(self) -> None:
        """Behind the head, and without what was deleted."""
        self._add_single()
        whole = merged(self._runs).alive()
        self._runs = [whole] if len(whole.times) else []
