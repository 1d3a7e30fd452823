"""Pane: the aggregates of one span of time, for the keys that came in it.

The keys' slots are those of an index that all panes share, so a key is looked up once, and panes are merged by slot. A
pane's arrays are as long as it has keys, however many keys there are elsewhere. But while more rows have come to it
than there are keys, a key's slot is its place: to find places would take longer than to add the rows up, and arrays
with room for all keys are not longer than those of the rows. Such a pane is *wide*.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..keys.word_table import Slots
from ..kinds.aggregates import Part
from .part_columns import PartColumns, Values

_FEWEST = 1024
_TO_BE_COUNTED = -1
_FEW = 8
"""If fewer than one slot in 8 has rows, these are reset one by one: all at once would take longer."""


class Pane:
    """Values by place: 0, 1, 2, ... as keys come to this pane.

    `rows`: how many rows may come, if that is known. `spare`: wide arrays that no pane uses, all neutral.
    """

    def __init__(
        self, parts: Mapping[Part, pa.DataType], rows: int = 0, spare: list[PartColumns] | None = None
    ) -> None:
        self.parts = PartColumns(parts)
        self._count = 0
        self._known = 0
        self._is_wide = False
        """While it is, there is a place for every slot, and those with rows are counted when they are asked for."""
        self._spare = [] if spare is None else spare
        self.rows_taken = 0
        self._rows = rows
        """How many have come since it was made, or was wide last, and those that were to be expected."""
        self._slots: Slots = np.empty(0, np.int64)
        self._places: npt.NDArray[np.int32] = np.empty(0, np.int32)
        """By slot, its place + 1; 0 if it has none. Memory of zeros that is not looked at costs nothing."""

    def __len__(self) -> int:
        if self._count < 0:
            self._count = int(np.count_nonzero(self._have_rows()))
        return self._count

    @property
    def slots(self) -> Slots:
        """The slot of each place: a view, which later keys leave as it is."""
        self._narrow()
        return self._slots[: self._count]

    def places_of(self, slots: Slots, known: int) -> Slots:
        """The place of each slot, of which there may be several alike, for rows that are added next: it holds until
        anything else is asked of the pane. New slots get places.

        `known`: slots of the index are below this.
        """
        self.rows_taken += len(slots)
        self._rows += len(slots)
        if known <= self._rows and self.parts.row_counts() is not None:
            self._widen(known)
            return slots
        self._narrow()
        self._know(known)
        places = self._places.take(slots)
        if len(places) and not places.min():
            missing = np.flatnonzero(places == 0)
            self._add(slots[missing])
            places[missing] = self._places.take(slots[missing])
        return np.subtract(places, 1, dtype=np.int64)

    def find(self, slots: Slots, known: int) -> Slots:
        """The place of each slot, -1 for one that has none."""
        self._narrow()
        self._know(known)
        return np.subtract(self._places.take(slots), 1, dtype=np.int64)

    def values(self) -> Values:
        """By place, as they are: good until the pane takes more in."""
        self._narrow()
        return self.parts.view(slice(0, self._count))

    def merge(self, other: Pane, known: int) -> None:
        """Add all of another pane."""
        self.merge_values(other.slots, other.values(), known)

    def merge_values(self, slots: Slots, values: Values, known: int) -> None:
        """Add values for these slots, which are all different."""
        places = self.places_of(slots, known)
        self.parts.merge_values(places, values)

    def copy(self, rows: int = 0) -> Pane:
        """The same, apart. `rows`: how many more may come to it."""
        made = Pane(self.parts.types, rows, self._spare)
        made._hold(self.slots.copy(), self.parts.chosen(slice(0, self._count)))
        return made

    def take_out(self) -> tuple[Slots, Values]:
        """The slots with rows, and their values; the pane is empty afterwards."""
        slots, values = self.slots, self.values()
        self._hold(np.empty(0, np.int64), PartColumns(self.parts.types))
        self._rows = 0
        return slots, values

    def seal(self) -> None:
        """Give up memory that is only needed to take more in; it is made again when more comes."""
        self._places = np.empty(0, np.int32)

    def renumber(self, new_slots: Slots) -> None:
        """The index has other slots now: for each old one, the new one."""
        self._slots = new_slots[self.slots]
        self.seal()

    def _widen(self, known: int) -> None:
        """Let slots be places, with room for rows of this many."""
        if not self._is_wide:
            slots, values = self.slots, self.values()
            self.parts = self._spare.pop() if self._spare else PartColumns(self.parts.types)
            self.parts.reserve(known)
            self.parts.put(slots, values)
            self.seal()
            self._is_wide = True
        self.parts.reserve(known)
        self._known, self._count = known, _TO_BE_COUNTED

    def _have_rows(self) -> npt.NDArray[np.bool_]:
        """By slot, of a wide pane."""
        counts = self.parts.row_counts()
        assert counts is not None, "a pane without them is never wide"
        return np.asarray(counts[: self._known] > 0)

    def _narrow(self) -> None:
        """From now on slots with rows have places 0, 1, 2, ..., and others have none."""
        if not self._is_wide:
            return
        slots = np.flatnonzero(self._have_rows())
        wide, parts = self.parts, self.parts.chosen(slots)
        wide.reset(slots if _FEW * len(slots) < self._known else slice(0, self._known))
        self._spare.append(wide)
        self._is_wide, self._rows = False, 0
        self._hold(slots, parts)

    def _hold(self, slots: Slots, parts: PartColumns) -> None:
        """These slots only, which are all different, with these values by place."""
        self.parts, self._slots, self._count = parts, slots, len(slots)
        self.seal()

    def _know(self, known: int) -> None:
        if known <= len(self._places):
            return
        grown = np.zeros(max(known, 2 * len(self._places)), np.int32)
        if len(self._places):
            grown[: len(self._places)] = self._places
        else:
            grown[self.slots] = np.arange(1, self._count + 1)
        self._places = grown

    def _add(self, slots: Slots) -> None:
        """Give places to slots that have none, of which there may be several alike."""
        marks = np.arange(1, len(slots) + 1, dtype=np.int32)
        self._places[slots] = marks
        new = slots[self._places.take(slots) == marks]  # of equal ones, the one whose mark stands
        count = self._count + len(new)
        self._places[new] = np.arange(self._count + 1, count + 1)
        if count > len(self._slots):
            grown = np.empty(max(count, 2 * len(self._slots), _FEWEST), np.int64)
            grown[: self._count] = self.slots
            self._slots = grown
        self._slots[self._count : count] = new
        self._count = count
        self.parts.reserve(count)
