"""OpenPanes: the panes of one subtask that a window still needs, by number, and what windows hold of them.

When a window fires and how long a pane is needed, its owner says, by bounds; here is which panes that concerns.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import ItemsView, Iterable, Mapping, Sequence

import pyarrow as pa

from ..keys.word_table import Slots
from ..kinds.aggregates import Part
from .pane import Pane
from .pane_windows import FIRST_BOUND, LAST_BOUND, PaneWindows
from .part_columns import PartColumns


class OpenPanes:
    """`parts`: those of the aggregates. Each pane holds something."""

    def __init__(self, windows: PaneWindows, parts: Mapping[Part, pa.DataType]) -> None:
        self._windows, self._parts = windows, parts
        self._panes: dict[int, Pane] = {}
        self._numbers: list[int] = []
        """Those of the panes, in order, behind `_gone` ones of panes that have gone. The windows of a later pane end
        later: so whatever ends by some bound comes first, and thousands of windows fire without a look at each pane.
        """
        self._gone = 0
        self._entries = 0
        self._counted: dict[int, int] = {}
        """By number, the keys of each pane when they were counted last: `_entries` in all."""
        self._opened: set[int] = set()
        """The panes into which something may have come since; the others are not counted again."""
        self.spare: list[PartColumns] = []
        """For panes that become wide: as long as keys that were given up wanted it, so emptied then."""
        self._rows_of_gone: list[int] = []
        """How many came to panes that have gone, the last one last. Each says once what is to be expected of a new one:
        a pane of many rows is not followed by many panes that become wide for as many.
        """

    def __len__(self) -> int:
        """How many pairs there are of a key and a pane."""
        for number in self._opened:
            count = len(self._panes[number])
            self._entries += count - self._counted.get(number, 0)
            self._counted[number] = count
        self._opened.clear()
        return self._entries

    def __getitem__(self, number: int) -> Pane:
        return self._panes[number]

    @property
    def largest(self) -> int:
        """The number of keys of the pane with the most."""
        return max(map(len, self._panes.values()), default=0)

    @property
    def first(self) -> int:
        """The number of the first one; LAST_BOUND if there is none."""
        return self._numbers[self._gone] if self._panes else LAST_BOUND

    @property
    def all(self) -> Iterable[Pane]:
        return self._panes.values()

    def items(self) -> ItemsView[int, Pane]:
        """By number, in the order in which they came."""
        return self._panes.items()

    def opened(self, number: int) -> Pane:
        """The pane of this number, a new one if there is none: whoever asks puts something into it."""
        self._opened.add(number)
        pane = self._panes.get(number)
        if pane is None:
            expected = self._rows_of_gone.pop() if self._rows_of_gone else 0
            pane = self._panes[number] = Pane(self._parts, expected, self.spare)
            insort(self._numbers, number, self._gone)
        return pane

    def take_out(self, bound: int) -> Iterable[tuple[int, Pane]]:
        """Those that are in a window which ends there or before, in order; each is gone once it is given."""
        while self._panes and (self._windows.first_end(self.first, FIRST_BOUND) or 0) <= bound:
            yield self.first, self._first_taken()

    def next_end(self, fired: int) -> int:
        """The end of the first window after this one that holds anything; above LAST_BOUND if there is none."""
        at = bisect_right(self._numbers, fired, self._gone, key=self._last_end)
        end = self._windows.first_end(self._numbers[at], fired) if at < len(self._numbers) else None
        return LAST_BOUND + 1 if end is None else end

    def in_window(self, end: int) -> list[int]:
        """The numbers of those that the window with this end holds, in order."""
        start = self._windows.start_of(end)
        if end - start <= len(self._panes):
            return [number for number in range(start, end) if number in self._panes]
        return sorted(number for number in self._panes if start <= number < end)

    def window(self, end: int, closing: int, keys: int) -> Pane:
        """All that a window holds. It is the pane itself if there is one, which no window needs afterwards: those that
        end at `closing` or before have closed then. `keys`: how many slots there are.
        """
        numbers = self.in_window(end)
        if len(numbers) > 1:
            return self._merged(numbers, keys)
        pane = self._panes[numbers[0]]
        is_last = end <= closing and self._windows.first_end(numbers[0], end) is None
        return pane if is_last else pane.copy()

    def _merged(self, numbers: Sequence[int], keys: int) -> Pane:
        """In one order, as sums of floats depend on it: the largest pane first."""
        panes = sorted((self._panes[number] for number in numbers), key=len, reverse=True)
        rows = sum(map(len, panes))
        is_wide = keys <= rows
        merged = Pane(self._parts, rows, self.spare) if is_wide else panes[0].copy(rows)
        for pane in panes if is_wide else panes[1:]:
            merged.merge(pane, keys)
        return merged

    def those_of(self, slots: Slots, end: int, keys: int) -> Pane:
        """What the window with this end holds of some keys."""
        merged = Pane(self._parts)
        for number in self.in_window(end):
            pane = self._panes[number]
            places = there(pane.find(slots, keys))
            merged.merge_values(pane.slots[places], pane.parts.at(places), keys)
        return merged

    def drop_unneeded(self, closed: int) -> None:
        """Those all of whose windows end there or before."""
        while self._panes and self._last_end(self.first) <= closed:
            self._first_taken()

    def _last_end(self, number: int) -> int:
        end = self._windows.last_end(number)
        assert end is not None, "each pane is in a window"
        return end

    def _first_taken(self) -> Pane:
        number = self.first
        pane = self._panes.pop(number)
        self._opened.discard(number)
        self._entries -= self._counted.pop(number, 0)
        self._gone += 1
        if 2 * self._gone >= len(self._numbers):
            del self._numbers[: self._gone]
            self._gone = 0
        self._rows_of_gone.append(pane.rows_taken)
        return pane


def there(places: Slots) -> Slots:
    """Of places in a pane those that are any."""
    found: Slots = places[places >= 0]
    return found
