"""MergingWindows: the open windows of one key where windows that touch become one. Flink: MergingWindowSet.

Contents stay where they are when a window grows: each open window has a *slot*, a small number that no other open
window of the key has, and its contents are kept under that. When windows merge, the contents move into the slot of the
earliest. As most keys have one open window, nearly all of them share slot 0, which keeps state and snapshots small.

`with_window` says what would come of one more window, and `take` does it. Few windows are looked through one by one,
many are found by their order. Flink looks through all of them with each record.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from .window import TimeWindow

FEW: Final = 16
"""This many open windows of a key are looked through one by one."""
_MOST_CROWDED_KEYS: Final = 4096
_START: Final[Callable[[tuple[int, int]], int]] = itemgetter(0)
_END: Final[Callable[[tuple[int, int]], int]] = itemgetter(1)

Span: TypeAlias = tuple[int, int]
"""Start and end of an open window, as it is kept in state; equal to the window."""


class Merge(NamedTuple):
    """What comes of one more window."""

    window: TimeWindow
    """The open window that holds it from now on."""
    slot: int
    replaced: tuple[TimeWindow, ...] = ()
    """Open windows that are within `window` now and no more by themselves; by start."""
    is_new: bool = False
    """Whether `window` was not open before."""


class MergingWindows:
    """The open windows of one key, which do not touch, and their slots; the dict is its own from now on."""

    __slots__ = ("_free", "_spans", "slots")

    def __init__(self, slots: dict[Span, int]) -> None:
        self.slots = slots
        self._spans: list[Span] | None = None
        """In order, once there were many."""
        self._free: list[int] = []
        """With the spans: a heap of the slots below the highest that no window has."""

    @property
    def are_few(self) -> bool:
        return len(self.slots) <= FEW

    def with_window(self, window: TimeWindow) -> Merge:
        """What adding this window comes to. Nothing is changed by that."""
        start, end = window
        touching = self._touching(start, end)
        if not touching:
            return Merge(window, self._free_slot(), is_new=True)
        first, last = touching[0], touching[-1]
        slot = self.slots[first]
        if first[0] <= start and end <= first[1]:
            return Merge(TimeWindow(*first), slot)
        result = TimeWindow(min(start, first[0]), max(end, last[1]))
        return Merge(result, slot, tuple(TimeWindow(*span) for span in touching), is_new=True)

    def slots_of(self, windows: Iterable[Span]) -> list[int]:
        """Of open windows."""
        return [self.slots[window] for window in windows]

    def take(self, merge: Merge) -> None:
        """Do what `with_window` has said of windows that are as they were then."""
        if not merge.is_new:
            return
        span, spans, free = (merge.window.start, merge.window.end), self._spans, self._free
        freed = [slot for window in merge.replaced if (slot := self.slots.pop(window)) != merge.slot]
        self.slots[span] = merge.slot
        if spans is not None:
            place = bisect_left(spans, span[0], key=_START)
            spans[place : place + len(merge.replaced)] = [span]
            for slot in freed:
                heappush(free, slot)
            if not merge.replaced and free and free[0] == merge.slot:
                heappop(free)

    def close(self, window: Span) -> None:
        """An open window is over."""
        slot, spans = self.slots.pop(window), self._spans
        if spans is not None:
            del spans[bisect_left(spans, window[0], key=_START)]
            heappush(self._free, slot)

    def _touching(self, start: int, end: int) -> list[Span]:
        """Open windows that touch this one, in order."""
        if self._spans is None and self.are_few:
            return sorted(span for span in self.slots if span[0] <= end and start <= span[1])
        spans = self._ordered()
        return spans[bisect_left(spans, start, key=_END) : bisect_right(spans, end, key=_START)]

    def _free_slot(self) -> int:
        """The least."""
        if self._spans is None and self.are_few:
            taken = self.slots.values()
            return next(slot for slot in range(len(taken) + 1) if slot not in taken)
        self._ordered()
        return self._free[0] if self._free else len(self.slots)

    def _ordered(self) -> list[Span]:
        if self._spans is None:
            taken = set(self.slots.values())
            self._spans = sorted(self.slots)
            self._free = [slot for slot in range(max(taken, default=-1)) if slot not in taken]
            heapify(self._free)
        return self._spans


class OpenWindows:
    """The open windows of keys: of a crowded one they are kept beside its state, as long as they are many, so that a
    record does not read all of them. Whoever changes the state changes these.
    """

    def __init__(self) -> None:
        self._crowded: dict[Any, MergingWindows] = {}

    def of(self, key: Any, read: Callable[[], Iterable[tuple[Any, int]]]) -> MergingWindows:
        """`read` gives those that the state of the key has."""
        found = self._crowded.get(key)
        if found is None:
            found = MergingWindows(dict(read()))
            if not found.are_few:
                if len(self._crowded) >= _MOST_CROWDED_KEYS:
                    self._crowded.clear()
                self._crowded[key] = found
        return found

    def close(self, key: Any, window: Span) -> None:
        """A window of the key is over, and its state does not have it any more."""
        found = self._crowded.get(key)
        if found is not None:
            found.close(window)
            if found.are_few:
                del self._crowded[key]
