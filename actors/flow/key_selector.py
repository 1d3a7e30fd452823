"""KeySelector: finds the key of each record, in lists of records and in Arrow batches. Flink: KeySelector.

Made of column names, of positions, or of one function. A name is a column of an Arrow batch, an attribute of a record,
an item of a dict, or `_1` to `_n` of a plain tuple. One part gives the bare value as the key, several give a tuple. A
selector holds nothing else, but the name of the operator that it is the key of, so it travels with the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter, length_hint
from types import NoneType
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import Row, shape_of, shown, those_there_are
from ...messages.shown import place_of_function
from ...state.keys.column_hash import combined, hashes_of
from ...state.keys.key_groups import groups_of_hashes, key_groups_of
from ...state.keys.key_hash import KEY_TYPES, NEEDS_A_KEY, InvalidKey, java_hash, with_same_nans
from ..errors import UnusableRecord, UnwantedResult
from ..unrun import UNRUN, refuse_first
from .elements import Batch
from .records import rows_of, rows_one_by_one, values_of

KeyPart: TypeAlias = "str | int | Callable[[Any], Any]"


class KeySelectionFailed(UnusableRecord):
    """A record has no usable key. `position` is its index in the batch; the cause, if any, is what user code raised."""

    def __init__(self, position: int, text: str) -> None:
        super().__init__(text)
        self.position = position


class NullKey(KeySelectionFailed):
    """A record's key, or a part of it, is None."""


class UnusableKey(KeySelectionFailed, InvalidKey):
    """A record's key, or a part of it, is of a type without a stable hash."""


class UnstableKey(KeySelectionFailed):
    """The key function gave another key for the same record when it was asked again."""


class NoSuchColumn(KeySelectionFailed):
    """A record or a batch does not have the column of the key; the text says which it has."""


class KeySelector:
    """The key of a record, by column names or positions, or by one function of the record."""

    operator_name: str = ""
    """Of the operator whose key it is; empty where that is not known."""
    _has_asked_again = False
    """Whether its function was asked again for a record that it had a key of."""

    def __init__(self, *parts: KeyPart) -> None:
        if not parts or (len(parts) > 1 and any(callable(part) for part in parts)):
            raise ValueError(f"a key is made of column names and positions, or of one function; found {parts!r:.80}")
        self.parts = parts

    def of_operator(self, name: str) -> KeySelector:
        """The same selector, as the key of this operator."""
        named = KeySelector(*self.parts)
        named.operator_name = name
        return named

    def __repr__(self) -> str:
        return f"KeySelector({', '.join(map(repr, self.parts))})"

    def keys(self, batch: Batch) -> list[Any]:
        """The key of each record, in order. Raises KeySelectionFailed."""
        columns = self._columns(batch)
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def keyed_rows(self, batch: Batch) -> tuple[list[Any], Iterable[Any]]:
        """The key and the record of each row, in order; Rows are made one by one. Raises KeySelectionFailed."""
        if not isinstance(batch, pa.RecordBatch):
            return self.keys(batch), batch
        if callable(self.parts[0]):
            rows = rows_of(batch)
            return self.keys(rows), rows
        places = [_place(batch, part) for part in self.parts]
        columns = [values_of(column) for column in batch.columns]
        keys = [with_same_nans(columns[place]) for place in places]
        for part, place in zip(self.parts, places, strict=True):
            if batch.column(place).null_count:
                _check_keys(part, columns[place], batch)
        rows_left = rows_one_by_one(batch, columns)
        return keys[0] if len(keys) == 1 else list(zip(*keys, strict=True)), rows_left

    def arrays(self, batch: Batch) -> list[pa.Array] | None:
        """The key's columns of an Arrow batch; None for a list, or when the key is a function of the record."""
        if not isinstance(batch, pa.RecordBatch) or callable(self.parts[0]):
            return None
        return [batch.column(_place(batch, part)) for part in self.parts]

    def key_groups(self, batch: Batch, max_parallelism: int) -> npt.NDArray[np.int32]:
        """The key group of each record. Raises KeySelectionFailed, or InvalidKey for what cannot be a key."""
        arrays = self.arrays(batch)
        if arrays is not None:
            assert isinstance(batch, pa.RecordBatch)
            for part, array in zip(self.parts, arrays, strict=True):
                if array.null_count:
                    _check_keys(part, values_of(array), batch)
            return key_groups_of(arrays, max_parallelism, [str(part) for part in self.parts])
        return groups_of_hashes(combined([hashes_of(column) for column in self._columns(batch)]), max_parallelism)

    def _columns(self, batch: Batch) -> list[list[Any]]:
        """The parts of the keys, one list per part."""
        arrays = self.arrays(batch)
        if arrays is not None:
            columns = [values_of(array) for array in arrays]
        else:
            records = rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch
            columns = [_values(records, part) for part in self.parts]
        for part, column in zip(self.parts, columns, strict=True):
            _check_keys(part, column, batch)
        keys = list(map(with_same_nans, columns))
        if callable(self.parts[0]) and not self._has_asked_again and keys[0]:
            self._has_asked_again = True
            again = with_same_nans(_values(records[:1], self.parts[0]))
            if again != keys[0][:1]:
                raise UnstableKey(0, _changing(self.parts[0], keys[0][0], again[0], batch))
        return keys


def field_values(batch: Batch, name: str, what: str) -> list[Any]:
    """What each record has under this name: a column, an item or an attribute. Raises NoSuchColumn."""
    if isinstance(batch, pa.RecordBatch):
        return values_of(batch.column(_place(batch, name, what)))
    return _values(batch, name, what)


def _check_keys(part: KeyPart, column: list[Any], batch: Batch) -> None:
    """Whether these can be keys, as far as their types tell."""
    kinds = set(map(type, column))
    if kinds <= KEY_TYPES:
        return
    if callable(part) and any(UNRUN[kind] for kind in kinds):
        _refuse_unrun(column)
    if NoneType in kinds:
        position = [value is None for value in column].index(True)
        raise NullKey(position, f"{_told(part)} is None {_at(batch, position)}; {NEEDS_A_KEY}")
    for kind in kinds - KEY_TYPES:
        position = [type(value) is kind for value in column].index(True)
        try:
            java_hash(column[position])
        except InvalidKey as error:
            raise UnusableKey(position, f"{_told(part)} {_at(batch, position)}: {error}") from error.__cause__


def _changing(function: Any, first: Any, then: Any, batch: Batch) -> str:
    return (
        f"the key function{place_of_function(function)} gave {shown(first)} {_at(batch, 0)}, and {shown(then)} when it "
        "was asked again: wanted the same key each time, as state is found by it; put what changes, such as a time or "
        "a random number, into the record with a map before key_by"
    )


def _refuse_unrun(keys: list[Any]) -> NoReturn:
    try:
        refuse_first("the key function", keys, "return the key")
    except UnwantedResult as error:
        raise KeySelectionFailed(error.index or 0, str(error)) from None


def _place(batch: pa.RecordBatch, part: Any, what: str = "key column") -> int:
    """The index of the part's column."""
    known = batch.schema.names
    if isinstance(part, str) and known.count(part) == 1:
        return known.index(part)  # type: ignore[no-any-return]
    if isinstance(part, int) and -len(known) <= part < len(known):
        return part % len(known)
    raise NoSuchColumn(
        0, f"{_told(part, what)} is not there, or more than once; the batch has {those_there_are(part, known)}"
    )


def _values(records: Sequence[Any], part: KeyPart, what: str = "key column") -> list[Any]:
    if not records:
        return []
    get = _position_getter(part, records) if isinstance(part, int) else getter_of(part, records[0])
    left = iter(records)
    try:
        return [get(record) for record in left]
    except Exception as error:
        position = len(records) - length_hint(left) - 1
        where = _at(records, position)
        if callable(part):
            raise KeySelectionFailed(position, f"the key function raised {type(error).__name__} {where}") from error
        there = _there(part, records[position])
        raise NoSuchColumn(position, f"{_told(part, what)} is not there {where}; there is {there}") from error


def _position_getter(place: int, records: Sequence[Any]) -> Callable[[Any], Any]:
    """How the records give their item at a position; a Row gives an attribute more quickly."""
    first = records[0]
    if (
        isinstance(first, Row)
        and -len(first._fields) <= place < len(first._fields)
        and len(set(map(type, records))) == 1
    ):
        return attrgetter(first._fields[place])
    return itemgetter(place)


def getter_of(part: str | Callable[[Any], Any], record: Any) -> Callable[[Any], Any]:
    """How records of the kind of this one give the part: a column, an item or an attribute, or the function's result.
    The getter raises KeyError, AttributeError or IndexError where there is no such thing.
    """
    if not isinstance(part, str):
        return part
    if isinstance(record, dict):
        return itemgetter(part)
    if isinstance(record, Row):
        columns = record._columns
        return attrgetter(record._fields[columns.index(part)] if part in columns else part)
    if isinstance(record, tuple) and not hasattr(record, "_fields") and part[:1] == "_" and part[1:].isdecimal():
        return itemgetter(int(part[1:]) - 1)
    return attrgetter(part)


def _there(part: KeyPart, record: Any) -> str:
    """What the record has in place of the part."""
    shape = shape_of(type(record))
    if isinstance(record, dict):
        names = list(record)
    elif isinstance(record, Row) or shape is None:
        names = list(getattr(record, "_columns", ()) or getattr(record, "__dict__", ()))
    else:
        names = list(shape.fields)
    if record is None:
        return "only None: does the function before it return nothing?"
    if isinstance(record, tuple | list) and not names:
        return f"a {type(record).__name__} of {len(record)} items, which go by their positions: key_by(0) is the first"
    return those_there_are(part, names) if names else f"only a value of type {type(record).__name__}"


def _told(part: KeyPart, what: str = "key column") -> str:
    if isinstance(part, str):
        return f"{what} {part!r}"
    return f"key position {part}" if isinstance(part, int) else "the key function's result"


def _at(batch: Batch, position: int) -> str:
    record = batch.slice(position, 1).to_pylist()[0] if isinstance(batch, pa.RecordBatch) else batch[position]
    return f"at record {position} of the batch: {shown(record, 120)}"
