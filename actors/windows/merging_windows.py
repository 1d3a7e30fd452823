"""MergingWindows: the open windows of one key where windows that touch become one. Flink: MergingWindowSet.

Contents stay where they are when a window grows: each open window has a *slot*, a small number that no other open
window of the key has, and its contents are kept under that. When windows merge, the contents move into the slot of the
earliest. As most keys have one open window, nearly all of them share slot 0, which keeps state and snapshots small.

A value: `with_window` says what would come of one more window, and `after` is the set once that is done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeAlias

from .window import TimeWindow

Stored: TypeAlias = tuple[int, ...]
"""Start, end and slot of each open window, one after the other: what is kept in state."""


class Merge(NamedTuple):
    """What comes of one more window."""

    window: TimeWindow
    """The open window that holds it from now on."""
    slot: int
    replaced: tuple[TimeWindow, ...] = ()
    """Open windows that are within `window` now and no more by themselves; by start."""


class MergingWindows:
    """The open windows of one key, which do not touch, and their slots."""

    __slots__ = ("_slots",)

    def __init__(self, slots: dict[TimeWindow, int]) -> None:
        self._slots = slots

    @classmethod
    def of(cls, stored: Stored) -> MergingWindows:
        numbers = iter(stored)
        return cls({TimeWindow(start, end): slot for start, end, slot in zip(numbers, numbers, numbers, strict=True)})

    def stored(self) -> Stored:
        return tuple(number for window, slot in self._slots.items() for number in (*window, slot))

    def slot(self, window: TimeWindow) -> int | None:
        """Of an open window; None if it is not open."""
        return self._slots.get(window)

    def slots(self, windows: Iterable[TimeWindow]) -> list[int]:
        """Of open windows."""
        return [self._slots[window] for window in windows]

    def with_window(self, window: TimeWindow) -> Merge:
        """What adding this window comes to. Nothing is changed by that."""
        touching = sorted(each for each in self._slots if each.touches(window))
        if not touching:
            return Merge(window, self._free_slot())
        result = TimeWindow(min(window.start, touching[0].start), max(window.end, touching[-1].end))
        return Merge(result, self._slots[touching[0]], () if touching == [result] else tuple(touching))

    def after(self, merge: Merge) -> MergingWindows:
        """The open windows once the merge is done."""
        return MergingWindows({**self._without(merge.replaced), merge.window: merge.slot})

    def without(self, window: TimeWindow) -> MergingWindows:
        """The open windows once this one is gone."""
        return MergingWindows(self._without((window,)))

    def _without(self, gone: Collection[TimeWindow]) -> dict[TimeWindow, int]:
        return {window: slot for window, slot in self._slots.items() if window not in gone}

    def _free_slot(self) -> int:
        taken = set(self._slots.values())
        return next(slot for slot in range(len(taken) + 1) if slot not in taken)
