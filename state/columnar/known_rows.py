"""Partials whose keys both ends of a channel know by number: SlotRows as a first phase emits them, KnownRows as the
second one takes them, and KnownKeys, what a channel's consumer knows of its keys.

Belongs to one channel of one attempt, and to its task's thread. Nothing of it is part of a snapshot: rows in flight
are written with their keys (`KnownRows.expanded`). Numbers: state/columns/numbered_rows.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import MalformedMessage
from ..columns.column_values import Numbers, Words, number_dtype
from ..columns.numbered_rows import KeyNumbers, NamedRows, NumberedRows, part_of
from ..keys.key_index import KeyIndex
from ..keys.word_table import Slots
from ..kinds.aggregates import Aggregate, Part
from .aggregate_columns import AggregateColumns
from .part_columns import Values, as_slice, value_columns, values_at


class _Emptied(Protocol):
    """The table that rows come from."""

    @property
    def origin(self) -> object: ...

    def partials_of(self, slots: Slots | slice, values: Values) -> pa.RecordBatch: ...


class SlotRows:
    """Partials of a table that is emptied with each flush, by slot; slots ascend, and each is there once.

    `is_view`: the values are the table's own, until more of it is taken; `kept` has its own.
    """

    def __init__(self, table: _Emptied, slots: Slots | slice, values: Values, *, is_view: bool = False) -> None:
        self.slots = slots
        self._table = table
        self._values = values
        self._is_view = is_view
        distinct = {id(each): each for each in values.values()}
        self.words: tuple[Words, ...] = tuple(each.view(np.int64) for each in distinct.values())
        """The different ones among the parts' values."""
        places = {each: place for place, each in enumerate(distinct)}
        self.places = tuple(places[id(each)] for each in values.values())
        """For each part, which of these are its own."""

    def __len__(self) -> int:
        return len(self.words[0])

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.words)

    def cut(self, start: int, end: int) -> SlotRows:
        """The rows from `start` to `end`."""
        if start == 0 and end == len(self):
            return self
        slots = part_of(self.slots, start, end)
        if not isinstance(slots, slice):
            slots = as_slice(slots)
        values = values_at(self._values, slice(start, end))
        return SlotRows(self._table, slots, values, is_view=self._is_view)

    def kept(self) -> SlotRows:
        """The same rows, which stay what they are."""
        if not self._is_view:
            return self
        copies = {id(each): each.copy() for each in self._values.values()}
        return SlotRows(self._table, self.slots, {part: copies[id(each)] for part, each in self._values.items()})

    @property
    def origin(self) -> object:
        """The same as long as a slot stands for the same key."""
        return self._table.origin

    def records(self) -> pa.RecordBatch:
        """With their keys, as any partials."""
        return self._table.partials_of(self.slots, self.kept()._values)


class KnownKeys:
    """The keys of one channel by number, from the first that has number 0 until one has it again.

    `keys`, `aggregates`: those of the partials. A key that was named is kept until its row is taken in; then its slot
    is known, and the table has the key.
    """

    def __init__(self, keys: Sequence[str], aggregates: Mapping[str, Aggregate], named: NamedRows) -> None:
        """Raises ValueError for partials of other keys or aggregates."""
        self._columns = AggregateColumns.of_partials(keys, aggregates, named.records.schema)
        self.schema = named.records.schema
        self._names = [*self._columns.keys, *(self._columns.names[part] for part in self._columns.parts)]
        if self.schema.names != self._names:
            raise ValueError(f"wanted partials of {', '.join(self._names)}, found {', '.join(self.schema.names)}")
        self._waiting: deque[NamedRows] = deque()
        self._count = 0
        self._index: KeyIndex | None = None
        self._slots: Slots = np.empty(0, np.int64)
        self._taken = 0
        """Keys whose slots are known: those with numbers below."""

    def receive(self, rows: NamedRows | NumberedRows) -> KnownRows:
        """What comes on the channel next. Raises MalformedMessage."""
        if isinstance(rows, NamedRows):
            if rows.first != self._count or not rows.records.schema.equals(self.schema):
                raise MalformedMessage(f"keys are named from {rows.first} on, wanted {self._count}, or other columns")
            self._waiting.append(rows)
            self._count += len(rows)
        else:
            end = rows.numbers.stop if isinstance(rows.numbers, slice) else int(rows.numbers[-1]) + 1
            if end > self._count or len(rows.places) != len(self._columns.parts):
                raise MalformedMessage(f"a key has number {end - 1}, and {self._count} were named; or other columns")
        return KnownRows(self, rows)

    def has_types(self, types: Mapping[Part, pa.DataType]) -> bool:
        """Whether the parts have these types, in this order."""
        return list(self._columns.parts.items()) == list(types.items())

    def has_keys(self, types: Mapping[str, pa.DataType]) -> bool:
        """Whether the keys have these types. If not, several of them may be one key of the table, and have its slot."""
        return self._columns.keys == types

    def take_in(self, named: NamedRows, slots: Slots, index: KeyIndex) -> None:
        """The rows that were named are in the table now: these slots."""
        first = self._waiting.popleft()
        assert first is named, "rows are taken in as they came"
        self._follow(index)
        end = named.first + len(named)
        if end > len(self._slots):
            grown = np.empty(max(end, 2 * len(self._slots)), np.int64)
            grown[: self._taken] = self._slots[: self._taken]
            self._slots = grown
        self._slots[named.first : end] = slots
        self._taken = end

    def slots(self, numbers: slice | KeyNumbers, index: KeyIndex) -> Slots:
        """The slots of keys whose rows have been taken in."""
        self._follow(index)
        found: Slots = self._slots[: self._taken][numbers]
        return found

    def _follow(self, index: KeyIndex) -> None:
        """A table with another index has other slots."""
        if self._index is not None and self._index is not index:
            self._slots = index.slots_of(self._index.keys(self._slots[: self._taken]))
        self._index = index

    def values_of(self, rows: NumberedRows) -> Values:
        """By part."""
        typed: dict[tuple[int, str], Numbers] = {}
        found: Values = {}
        for (part, kind), place in zip(self._columns.parts.items(), rows.places, strict=True):
            dtype = number_dtype(kind)
            found[part] = typed.setdefault((place, dtype.char), rows.values[place].view(dtype))
        return found

    def records_of(self, rows: NumberedRows) -> pa.RecordBatch:
        """The rows with their keys."""
        columns = value_columns(self._columns.parts, self.values_of(rows))
        return pa.RecordBatch.from_arrays([*self._keys_of(rows.numbers), *columns], schema=self.schema)

    def _keys_of(self, numbers: slice | KeyNumbers) -> list[pa.Array]:
        wanted = np.arange(numbers.start, numbers.stop) if isinstance(numbers, slice) else numbers
        middle = int(np.searchsorted(wanted, self._taken))
        found: list[list[pa.Array]] = []
        if middle:
            assert self._index is not None, "keys have slots in a table"
            keys = self._index.keys(self._slots[wanted[:middle]])
            kinds = self._columns.keys.values()  # those of the table may be others
            found.append(
                [each if each.type == kind else each.cast(kind) for each, kind in zip(keys, kinds, strict=True)]
            )
        found += self._waiting_keys(wanted[middle:])
        return [pa.concat_arrays(several) for several in zip(*found, strict=True)]

    def _waiting_keys(self, wanted: KeyNumbers | npt.NDArray[np.int64]) -> Iterator[list[pa.Array]]:
        """The key columns of numbers whose rows wait to be taken in, from each batch that named some of them."""
        start = 0
        while start < len(wanted):
            named = self._waiting[bisect_right(self._waiting, int(wanted[start]), key=_first_of) - 1]
            end = int(np.searchsorted(wanted, named.first + len(named)))
            records = named.records.select(list(self._columns.keys))
            yield self._columns.key_columns(records.take(pa.array(wanted[start:end] - named.first)))
            start = end


def _first_of(named: NamedRows) -> int:
    return named.first


class KnownRows:
    """Rows that a channel has brought, with what it knows of their keys."""

    def __init__(self, known: KnownKeys, rows: NamedRows | NumberedRows) -> None:
        self.known, self.rows = known, rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def schema(self) -> pa.Schema:
        return self.known.schema

    def expanded(self) -> pa.RecordBatch:
        """The rows with their keys, as any partials. Before what came after them is taken in."""
        return self.rows.records if isinstance(self.rows, NamedRows) else self.known.records_of(self.rows)
