"""Pane: the aggregates of one span of time, for the keys that came in it.

The keys' slots are those of an index that all panes share, so a key is looked up once, and panes are merged by slot. A
pane's arrays are as long as it has keys, however many keys there are elsewhere.
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


class Pane:
    """Values by place: 0, 1, 2, ... as keys come to this pane."""

    def __init__(self, parts: Mapping[Part, pa.DataType]) -> None:
        self.parts = PartColumns(parts)
        self._count = 0
        self._slots: Slots = np.empty(0, np.int64)
        self._places: npt.NDArray[np.int32] = np.empty(0, np.int32)
        """By slot, its place + 1; 0 if it has none. Memory of zeros that is not looked at costs nothing."""

    def __len__(self) -> int:
        return self._count

    @property
    def slots(self) -> Slots:
        """The slot of each place: a view, which later keys leave as it is."""
        return self._slots[: self._count]

    def places_of(self, slots: Slots, known: int) -> Slots:
        """The place of each slot, of which there may be several alike; new ones get the next places.

        `known`: slots of the index are below this.
        """
        self._know(known)
        places = self._places.take(slots)
        if len(places) and not places.min():
            missing = np.flatnonzero(places == 0)
            self._add(slots[missing])
            places[missing] = self._places.take(slots[missing])
        return np.subtract(places, 1, dtype=np.int64)

    def find(self, slots: Slots, known: int) -> Slots:
        """The place of each slot, -1 for one that has none."""
        self._know(known)
        return np.subtract(self._places.take(slots), 1, dtype=np.int64)

    def values(self) -> Values:
        """Copies, by place."""
        return self.parts.at(slice(0, self._count))

    def merge(self, other: Pane, known: int) -> None:
        """Add all of another pane."""
        self.merge_values(other.slots, other.values(), known)

    def merge_values(self, slots: Slots, values: Values, known: int) -> None:
        """Add values for these slots, which are all different."""
        places = self.places_of(slots, known)
        self.parts.merge_values(places, values)

    def copy(self) -> Pane:
        """The same, apart."""
        made = Pane(self.parts.types)
        made._slots, made._count = self.slots.copy(), self._count
        made.parts.reserve(self._count)
        made.parts.put(slice(0, self._count), self.values())
        return made

    def seal(self) -> None:
        """Give up memory that is only needed to take more in; it is made again when more comes."""
        self._places = np.empty(0, np.int32)

    def renumber(self, new_slots: Slots) -> None:
        """The index has other slots now: for each old one, the new one."""
        self._slots = new_slots[self.slots]
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
