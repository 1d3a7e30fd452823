"""Deadlines: which slots have something due, without a look at all of them.

A slot is entered with a time, in a bucket of times. It is found once its bucket has been reached, and then entered
again by who looked, if its time has moved on meanwhile. So a slot that is touched a thousand times is entered once.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from ..columns.timed_batch import Times
from ..keys.word_table import Slots


class Deadlines:
    """Slots by the bucket of their time; `width_ms`, of a bucket."""

    def __init__(self, width_ms: int) -> None:
        self._width_ms = max(1, width_ms)
        self._buckets: dict[int, list[Slots]] = defaultdict(list)

    def enter(self, slots: Slots, times: Times) -> None:
        """Each of these slots is to be found when its time has come. Nobody changes the arrays."""
        if not len(slots):
            return
        first, last = int(times.min()) // self._width_ms, int(times.max()) // self._width_ms
        if first == last:
            self._buckets[first].append(slots)
            return
        buckets = times // self._width_ms
        order = np.argsort(buckets, kind="stable")
        ordered, ordered_slots = buckets[order], slots[order]
        starts = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(ordered)]
        for start, stop in pairwise(starts):
            self._buckets[int(ordered[start])].append(ordered_slots[start:stop])

    def take(self, until_ms: int) -> Slots:
        """The slots whose time may have come by then, which are not entered any more."""
        reached = [bucket for bucket in self._buckets if bucket * self._width_ms <= until_ms]
        found = [slots for bucket in sorted(reached) for slots in self._buckets.pop(bucket)]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def renumber(self, new_slots: Slots) -> None:
        """For each old slot its new number; -1 for one that is gone."""
        for bucket, several in self._buckets.items():
            renumbered = new_slots[np.concatenate(several)]
            self._buckets[bucket] = [renumbered[renumbered >= 0]]
