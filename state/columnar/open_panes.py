"""OpenPanes: the panes of one subtask that a window still needs, by number, and what windows hold of them.

When a window fires and how long a pane is needed, its owner says, by bounds; here is which panes that concerns.
"""

from __future__ import annotations

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
        self.spare: list[PartColumns] = []
        """For panes that open: as long as keys that were given up wanted it, so emptied then."""
        self._usual_rows = 0
        """The number of rows that came to the pane that went last."""

    def __len__(self) -> int:
        """How many pairs there are of a key and a pane."""
        return sum(map(len, self._panes.values()))

    def __getitem__(self, number: int) -> Pane:
        return self._panes[number]

    @property
    def largest(self) -> int:
        """The number of keys of the pane with the most."""
        return max(map(len, self._panes.values()), default=0)

    @property
    def first(self) -> int:
        """The number of the first one; LAST_BOUND if there is none."""
        return min(self._panes, default=LAST_BOUND)

    @property
    def all(self) -> Iterable[Pane]:
        return self._panes.values()

    def items(self) -> ItemsView[int, Pane]:
        """By number, in the order in which they came."""
        return self._panes.items()

    def opened(self, number: int) -> Pane:
        """The pane of this number, a new one if there is none: whoever asks puts something into it."""
        pane = self._panes.get(number)
        if pane is None:
            pane = self._panes[number] = Pane(self._parts, self._usual_rows, self.spare)
        return pane

    def take_out(self, bound: int) -> Iterable[tuple[int, Pane]]:
        """Those that are in a window which ends there or before, in order; each is gone once it is given."""
        for number in sorted(self._panes):
            if (self._windows.first_end(number, FIRST_BOUND) or 0) <= bound:
                yield number, self._taken(number)

    def next_end(self, fired: int) -> int:
        """The end of the first window after this one that holds anything; above LAST_BOUND if there is none."""
        ends = (self._windows.first_end(number, fired) for number in self._panes)
        return min((end for end in ends if end is not None), default=LAST_BOUND + 1)

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
        largest = max(numbers, key=lambda number: len(self._panes[number]))
        merged = self._panes[largest].copy(sum(len(self._panes[number]) for number in numbers))
        for number in numbers:
            if number != largest:
                merged.merge(self._panes[number], keys)
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
        for number in [number for number in self._panes if self._windows.first_end(number, closed) is None]:
            self._taken(number)

    def _taken(self, number: int) -> Pane:
        pane = self._panes.pop(number)
        self._usual_rows = pane.rows_taken
        return pane


def there(places: Slots) -> Slots:
    """Of places in a pane those that are any."""
    found: Slots = places[places >= 0]
    return found
