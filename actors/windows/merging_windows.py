"""MergingWindows: the open windows of one key where windows that touch become one. Flink: MergingWindowSet.

Contents stay where they are when a window grows: each open window has a *slot*, a small number that no other open
window of the key has, and its contents are kept under that. When windows merge, the contents move into the slot of the
earliest. As most keys have one open window, nearly all of them share slot 0, which keeps state and snapshots small.

A value: `with_window` says what would come of one more window, and `after` is the set once that is done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from .window import TimeWindow

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
    """The open windows of one key, which do not touch, and their slots."""

    __slots__ = ("slots",)

    def __init__(self, slots: Mapping[Span, int]) -> None:
        self.slots = slots

    def with_window(self, window: TimeWindow) -> Merge:
        """What adding this window comes to. Nothing is changed by that."""
        start, end = window
        touching = [span for span in self.slots if span[0] <= end and start <= span[1]]
        if not touching:
            return Merge(window, self._free_slot(), is_new=True)
        if len(touching) > 1:
            touching.sort()
        first, last = touching[0], touching[-1]
        slot = self.slots[first]
        if first[0] <= start and end <= first[1]:
            return Merge(TimeWindow(*first), slot)
        result = TimeWindow(min(start, first[0]), max(end, last[1]))
        return Merge(result, slot, tuple(TimeWindow(*span) for span in touching), is_new=True)

    def slots_of(self, windows: Iterable[Span]) -> list[int]:
        """Of open windows."""
        return [self.slots[window] for window in windows]

    def after(self, merge: Merge) -> MergingWindows:
        """The open windows once the merge is done."""
        return MergingWindows({**self._without(merge.replaced), (merge.window.start, merge.window.end): merge.slot})

    def _without(self, gone: Collection[Span]) -> dict[Span, int]:
        return {span: slot for span, slot in self.slots.items() if span not in gone}

    def _free_slot(self) -> int:
        taken = self.slots.values()
        return next(slot for slot in range(len(taken) + 1) if slot not in taken)
