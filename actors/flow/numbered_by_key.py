"""NumberedByKey: deals the partials of a first phase out by key, and a key goes once on each channel, with its number.

It keeps the channel, the number and the slot of each key, about 14 bytes. They stand for the slots of one table: with
another one it begins again. So does another attempt, which has channels of its own.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ...state.columnar.known_rows import SlotRows
from ...state.columns.numbered_rows import KeyNumbers, NamedRows, NumberedRows, part_of
from .elements import AnyBatch, Numbered
from .partitioner import MAX_BATCH_RECORDS, HashByKey, Partitioner, cut_rows, rows_by_owner

_N = TypeVar("_N", bound=np.generic)

Parts: TypeAlias = "list[tuple[int, AnyBatch | Numbered]]"


class NumberedByKey:
    """Of an edge with `channels` channels; `plain` deals out what has no slots.

    Invariant: slots are named in their order, so on each channel numbers ascend as slots do.
    """

    def __init__(self, plain: Partitioner, channels: int) -> None:
        self._plain = plain
        self._channels = channels
        self._begin(None)

    def split(self, batch: AnyBatch | SlotRows) -> Parts:
        if not isinstance(batch, SlotRows):
            return [*self._plain.split(batch)]
        if batch.origin is not self._origin:
            self._begin(batch.origin)
        known = self._known_in(batch.slots)
        parts = self._numbered(batch.cut(0, known)) if known else []
        if known < len(batch):
            parts += self._named(batch.cut(known, len(batch)))
        return parts

    def _begin(self, origin: object) -> None:
        self._origin = origin
        self._count = 0
        """Slots below have been named."""
        self._owners: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
        self._numbers: KeyNumbers = np.empty(0, np.int32)
        """By slot, its channel and its number there."""
        self._slots = [_Growing() for _ in range(self._channels)]
        """By channel and number."""

    def _known_in(self, slots: slice | npt.NDArray[np.int64]) -> int:
        """How many of these are named; they come first."""
        if isinstance(slots, slice):
            return int(np.clip(self._count - slots.start, 0, slots.stop - slots.start))
        return int(np.searchsorted(slots, self._count))

    def _numbered(self, rows: SlotRows) -> Parts:
        parts: Parts = []
        slots = rows.slots
        if isinstance(slots, slice):
            for channel, known in enumerate(self._slots):
                first, end = np.searchsorted(known.filled, (slots.start, slots.stop)).tolist()
                parts += _in_bounds(channel, rows, known.filled[first:end] - slots.start, slice(first, end))
            return parts
        for channel, own in enumerate(rows_by_owner(self._owners[slots], self._channels)):
            parts += _in_bounds(channel, rows, own, self._numbers[slots[own]])
        return parts

    def _named(self, rows: SlotRows) -> Parts:
        """Rows of keys that no channel knows; without numbers where a slot between them has been left out."""
        records, slots = rows.records(), rows.slots
        if not isinstance(slots, slice) or slots.start != self._count:
            return [*self._plain.split(records)]
        owners = self._plain.owners(records) if isinstance(self._plain, HashByKey) else np.zeros(len(rows), np.int32)
        own = rows_by_owner(owners, self._channels)
        numbers = np.empty(len(rows), np.int32)
        parts: Parts = []
        for channel, share in cut_rows(records, own, [len(each) for each in own]):
            named = NamedRows(self._slots[channel].count, share)
            numbers[own[channel]] = np.arange(named.first, named.first + len(share))
            self._slots[channel].add(own[channel] + slots.start)
            parts += [(channel, named.cut(*bounds)) for bounds in _bounds(len(named))]
        self._owners = _filled(self._owners, slots, owners)
        self._numbers = _filled(self._numbers, slots, numbers)
        self._count = slots.stop
        return parts


class _Growing:
    """Slots in the order of their numbers."""

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.empty(0, np.int64)

    @property
    def filled(self) -> npt.NDArray[np.int64]:
        return self._slots[: self.count]

    def add(self, slots: npt.NDArray[np.int64]) -> None:
        self._slots = _filled(self._slots, slice(self.count, self.count + len(slots)), slots)
        self.count += len(slots)


def _filled(array: npt.NDArray[_N], place: slice, values: npt.NDArray[Any]) -> npt.NDArray[_N]:
    """The array, or a larger one, with the values in this place, which is at its end."""
    if place.stop > len(array):
        grown = np.empty(max(place.stop, 2 * len(array)), array.dtype)
        grown[: place.start] = array[: place.start]
        array = grown
    array[place] = values
    return array


def _in_bounds(
    channel: int, rows: SlotRows, own: npt.NDArray[np.intp], numbers: slice | KeyNumbers
) -> list[tuple[int, NumberedRows]]:
    """These of the rows, whose keys have these numbers on the channel."""
    return [
        (channel, NumberedRows.gathered(part_of(numbers, start, end), rows.words, own[start:end], rows.places))
        for start, end in _bounds(len(own))
    ]


def _bounds(count: int) -> list[tuple[int, int]]:
    return [(start, min(start + MAX_BATCH_RECORDS, count)) for start in range(0, count, MAX_BATCH_RECORDS)]
