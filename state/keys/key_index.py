"""KeyIndex: key columns to slots. A slot is a small number that stands for one key: 0, 1, 2, ... as keys come.

Slots are never given up, and the key of a slot never changes; so keys of given slots may be read on another thread
while new ones are added. Key columns hold no nulls.

Keys of 64 bits are found in a WordTable, texts in a TextIndex; other types by a dict, once per distinct value of a
batch; several columns by a table over pairs of their slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ..columns.column_values import column_of_words, distinct_values, is_ordered, stored_type, words_of
from ..errors import WrongColumn
from .text_index import TextIndex, is_text
from .word_table import Slots, WordTable

_LOW_WORD = 0xFFFF_FFFF


class ColumnIndex(Protocol):
    """Slots of one column's values."""

    def slots_of(self, column: pa.Array) -> Slots: ...

    def find(self, column: pa.Array) -> Slots:
        """The same, but -1 for a value that is not there."""

    def values(self, slots: Slots) -> pa.Array: ...

    def __len__(self) -> int: ...


class KeyIndex:
    """Slots of keys of one or several columns."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        assert types, "a key has at least one column"
        self._types = types
        self._columns = [column_index(kind) for kind in types]
        self._pairs = [WordTable() for _ in types[1:]]

    @classmethod
    def of_columns(cls, columns: Mapping[str, pa.DataType]) -> KeyIndex:
        """Of key columns by name. Raises WrongColumn, naming the first one that cannot be a key."""
        for name, kind in columns.items():
            try:
                column_index(kind)
            except ValueError as error:
                decode = ": decode it, by pyarrow.compute.run_end_decode" if pt.is_run_end_encoded(kind) else ""
                raise WrongColumn(f"key column {name!r}: {error}{decode}") from error
        return cls(list(columns.values()))

    def __len__(self) -> int:
        return len(self._pairs[-1]) if self._pairs else len(self._columns[0])

    def slots_of(self, columns: Sequence[pa.Array]) -> Slots:
        """The slot of each row's key; a new key gets the next one."""
        # The slots of two columns make one word: both are below 2**31, so no two pairs of slots share a word. The slot
        # of that pair stands for both columns, and is paired with the third, and so on.
        slots = self._columns[0].slots_of(columns[0])
        for pairs, index, column in zip(self._pairs, self._columns[1:], columns[1:], strict=True):
            slots = pairs.slots_of(slots << 32 | index.slots_of(column))
        return slots

    def find(self, columns: Sequence[pa.Array]) -> Slots:
        """The slot of each row's key; -1 for one that is not there."""
        slots = self._columns[0].find(columns[0])
        for pairs, index, column in zip(self._pairs, self._columns[1:], columns[1:], strict=True):
            second = index.find(column)
            slots = np.where((slots < 0) | (second < 0), -1, pairs.find(slots << 32 | second))
        return slots

    def keys(self, slots: Slots | slice) -> list[pa.Array]:
        """The key columns of these slots."""
        if isinstance(slots, slice):
            first = self._columns[0]
            if not self._pairs and isinstance(first, FixedIndex):
                return [first.values(slots)]
            slots = np.arange(slots.start, slots.stop)
        found = []
        for pairs, index in zip(reversed(self._pairs), reversed(self._columns), strict=False):
            words = pairs.words(slots)
            found.append(index.values(words & _LOW_WORD))
            slots = words >> 32
        return [self._columns[0].values(slots), *reversed(found)]

    def keeping(self, kept: Slots) -> tuple[KeyIndex, Slots]:
        """A new index of the keys of these slots, in which they have the slots 0, 1, 2, ...; and by old slot the new
        one, or -1.
        """
        index, new_slots = KeyIndex(self._types), np.full(len(self), -1, np.int64)
        if len(kept):
            new_slots[kept] = index.slots_of(self.keys(kept))
        return index, new_slots


def keys_in(columns: Iterable[pa.Array]) -> list[Any]:
    """The keys of these columns as Python values: of one column its own, of several tuples."""
    lists = [column.to_pylist() for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def column_index(kind: pa.DataType) -> ColumnIndex:
    """The index for a column of this type. Raises ValueError for a type that cannot be a key."""
    if is_ordered(kind):
        return FixedIndex(kind)
    if is_text(kind):
        return TextIndex(kind)
    if pt.is_nested(stored_type(kind)) or pt.is_null(kind):
        raise ValueError(f"a column of type {kind} cannot be a key")
    return DistinctIndex(kind)


class FixedIndex:
    """Values of at most 64 bits: numbers, booleans, dates and times."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._table = WordTable()

    def __len__(self) -> int:
        return len(self._table)

    def slots_of(self, column: pa.Array) -> Slots:
        return self._table.slots_of(words_of(column))

    def find(self, column: pa.Array) -> Slots:
        return self._table.find(words_of(column))

    def values(self, slots: Slots | slice) -> pa.Array:
        return column_of_words(self._table.words(slots), self._kind)


class DistinctIndex:
    """Values of any other type, such as decimals and UUIDs."""

    def __init__(self, kind: pa.DataType) -> None:
        self._slots: dict[object, int] = {}
        self._values = pa.array([], kind)

    def __len__(self) -> int:
        return len(self._slots)

    def slots_of(self, column: pa.Array) -> Slots:
        values, places = distinct_values(column)
        # Invariant: value i of `_values` has slot i. New values get slots in the order in which they are appended.
        slots: list[int] = []
        new: list[int] = []
        for place, value in enumerate(values.to_pylist()):
            slots.append(self._slots.setdefault(value, len(self._slots)))
            if slots[-1] == len(self._values) + len(new):
                new.append(place)
        if new:
            self._values = pa.concat_arrays([self._values, values.take(pa.array(new))])
        taken: Slots = np.array(slots, np.int64)[places]
        return taken

    def find(self, column: pa.Array) -> Slots:
        return np.array([self._slots.get(value, -1) for value in column.to_pylist()], np.int64)

    def values(self, slots: Slots) -> pa.Array:
        return self._values.take(pa.array(slots))
