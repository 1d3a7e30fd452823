"""SlotKeys: which slot a key has. A slot is a small number, 0, 1, 2, ... as keys come, and the key's until `keep`.

Batches bring keys as Arrow columns, which a KeyIndex takes; accessors and snapshots bring Python objects. Until the
first batch tells the types of the columns, keys may be anything (`LooseKeys`); from then on they are values of these
columns (`TypedKeys`), and slots stay what they were. As in Python, 1, 1.0 and True are one key, and so are 0.0 and
-0.0; unlike in Python, a NaN equals every other.

Replaced arrays are not changed any more: a snapshot goes on reading the keys it has taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ..columns.column_values import narrowed
from ..columns.packed_columns import Column, column_of
from ..errors import StateIncompatible
from ..keys.column_hash import check_no_null
from ..keys.key_groups import key_groups_of, key_groups_of_list
from ..keys.key_hash import InvalidKey, same_nan
from ..keys.key_index import KeyIndex, keys_in
from ..keys.word_table import Slots
from .exact_arrays import NoSuchValue, canonical_type, exact_columns

KeyColumns: TypeAlias = "list[pa.Array]"

_CHUNK = 65_536
_NO_SLOT = -1


class LooseKeys:
    """Keys as Python objects."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        """By slot."""
        self._slots: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: Any) -> int:
        """-1 for a key that is not there."""
        return self._slots.get(same_nan(key), _NO_SLOT)

    def slot_of(self, key: Any) -> int:
        key = same_nan(key)
        slot = self._slots.setdefault(key, len(self.keys))
        if slot == len(self.keys):
            self.keys.append(key)
        return slot

    def listed(self, slots: Slots | slice) -> list[Any]:
        return self.keys[slots] if isinstance(slots, slice) else [self.keys[slot] for slot in slots.tolist()]

    def column(self, slots: Slots) -> Column:
        """These keys, as a snapshot stores them."""
        return column_of(self.listed(slots))

    def groups(self, start: int, end: int, max_parallelism: int) -> npt.NDArray[np.int32]:
        """The key groups of these slots. Raises InvalidKey."""
        return key_groups_of_list(self.keys[start:end], max_parallelism)


class TypedKeys:
    """Keys as values of columns. Raises ValueError for columns that cannot be keys."""

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self.kinds = tuple(kinds)
        """Canonical."""
        self._index = KeyIndex(self.kinds)

    def __len__(self) -> int:
        return len(self._index)

    def slots_of(self, columns: Sequence[pa.Array]) -> Slots:
        """The slot of each row's key; new keys are added. The columns are of `kinds`."""
        return self._index.slots_of(columns)

    def find(self, key: Any) -> int:
        """-1 for a key that is not there, or that these columns cannot hold."""
        try:
            return int(self._index.find(exact_columns([key], self.kinds))[0])
        except NoSuchValue:
            return _NO_SLOT

    def slot_of(self, key: Any) -> int:
        """Raises NoSuchValue."""
        return int(self._index.slots_of(exact_columns([key], self.kinds))[0])

    def columns(self, slots: Slots | slice) -> KeyColumns:
        return self._index.keys(slots)

    def listed(self, slots: Slots | slice) -> list[Any]:
        return keys_in(self.columns(slots))

    def column(self, slots: Slots) -> Column:
        """These keys, as a snapshot stores them."""
        columns = tuple(map(_stored, self.columns(slots)))
        return columns[0] if len(columns) == 1 else columns

    def groups(self, start: int, end: int, max_parallelism: int) -> npt.NDArray[np.int32]:
        """The key groups of these slots. Raises InvalidKey."""
        parts = [key_groups_of(columns, max_parallelism) for columns in _chunks(self.columns(slice(start, end)))]
        return np.concatenate([np.empty(0, np.int32), *parts])


AnyKeys: TypeAlias = "LooseKeys | TypedKeys"


class SlotKeys:
    """The keys of one backend. Owned by its task's thread; others read `known`."""

    def __init__(self) -> None:
        self.known: AnyKeys = LooseKeys()
        self._last: tuple[Any, int] = (None, _NO_SLOT)
        """A key that is known, and its slot."""
        self._types: tuple[pa.DataType, ...] | None = None
        """Those of the batches, once one has come."""

    def __len__(self) -> int:
        return len(self.known)

    def slots_of(self, columns: Sequence[pa.Array]) -> Slots:
        """The slot of each row's key; new keys are added.

        Raises InvalidKey for a null and for columns that cannot be keys, and StateIncompatible where a key known
        already, from a snapshot, is no value of these columns.
        """
        types = tuple(column.type for column in columns)
        if types != self._types:
            self._expect(types)
        assert isinstance(self.known, TypedKeys), "columns were expected"
        for position, column in enumerate(columns):
            check_no_null(column, str(position))
        return self.known.slots_of(list(map(_cast, columns, self.known.kinds)))

    def find(self, key: Any) -> int:
        """-1 for a key that is not there."""
        last, slot = self._last
        if key is last and slot != _NO_SLOT:
            return slot
        slot = self.known.find(key)
        self._last = key, slot
        return slot

    def remember(self, key: Any, slot: int) -> None:
        """This very object is looked for next, and its slot is this one."""
        self._last = key, slot

    def slot_of(self, key: Any) -> int:
        """A new key gets the next slot. Raises InvalidKey for one that the columns of the batches cannot hold."""
        slot = self.find(key)
        if slot != _NO_SLOT:
            return slot
        try:
            return self.known.slot_of(key)
        except NoSuchValue:
            assert isinstance(self.known, TypedKeys), "loose keys take anything"
            if self._types is None:  # these types are a guess of ours
                self._loosen()
                return self.known.slot_of(key)
            raise InvalidKey(f"key {key!r:.60} is no value of the key columns: {_told(self.known.kinds)}") from None

    def add(self, keys: Sequence[Any]) -> Slots:
        """`slot_of` each."""
        return np.fromiter(map(self.slot_of, keys), np.int64, len(keys))

    def add_columns(self, columns: KeyColumns) -> Slots:
        """The same for keys in columns of canonical types, from a snapshot."""
        kinds = tuple(column.type for column in columns)
        if not len(self.known) and self._types is None:
            self.known = TypedKeys(kinds)
        if isinstance(self.known, TypedKeys) and self.known.kinds == kinds:
            return np.concatenate([np.empty(0, np.int64), *map(self.known.slots_of, _chunks(columns))])
        return self.add(keys_in(columns))

    def columns(self, slots: Slots) -> KeyColumns | None:
        """The keys of these slots, in columns of the types of the batches, once one has come. None while keys are not
        known to be columns.
        """
        if not isinstance(self.known, TypedKeys):
            return None
        columns = self.known.columns(slots)
        if self._types is None:
            return columns
        return [column.cast(kind) for column, kind in zip(columns, self._types, strict=True)]

    def keep(self, slots: Slots) -> Slots:
        """Forget all keys but those of these slots; returns their new ones, which are 0 to their number."""
        known = self.known
        if isinstance(known, TypedKeys):
            typed = self.known = TypedKeys(known.kinds)
            found = [typed.slots_of(columns) for columns in _chunks(known.columns(slots))]
        else:
            loose = self.known = LooseKeys()
            found = [np.fromiter(map(loose.slot_of, known.listed(slots)), np.int64, len(slots))]
        self._last = None, _NO_SLOT
        return np.concatenate([np.empty(0, np.int64), *found])

    def _expect(self, types: tuple[pa.DataType, ...]) -> None:
        """Batches with such key columns come. Keys known already go into an index of their types."""
        kinds = tuple(map(canonical_type, types))
        if not isinstance(self.known, TypedKeys) or self.known.kinds != kinds:
            if self._types is not None:
                raise InvalidKey(f"the key columns are {_told(types)} now, and were {_told(self._types)}")
            try:
                self.known = self._converted(kinds)
            except ValueError as error:
                raise InvalidKey(f"a compiled operator's key: {error}") from error
            self._last = None, _NO_SLOT
        self._types = types

    def _converted(self, kinds: tuple[pa.DataType, ...]) -> TypedKeys:
        made = TypedKeys(kinds)
        keys = self.known.listed(slice(0, len(self.known)))
        if keys:
            try:
                slots = made.slots_of(exact_columns(keys, kinds))
            except NoSuchValue as error:
                found = f"the key {keys[error.position]!r:.60}"
                raise StateIncompatible("key", f"columns of {_told(kinds)}", found) from error
            assert np.array_equal(slots, np.arange(len(keys))), "different keys are different in these columns"
        return made

    def _loosen(self) -> None:
        loose = LooseKeys()
        for key in self.known.listed(slice(0, len(self.known))):
            loose.slot_of(key)
        self.known = loose


def _chunks(columns: KeyColumns) -> Iterator[KeyColumns]:
    """The same rows, in pieces of a size with which the dictionaries which Arrow makes of texts stay in the cache."""
    for start in range(0, len(columns[0]), _CHUNK):
        yield [column.slice(start, _CHUNK) for column in columns]


def check_key_types(kinds: Sequence[pa.DataType]) -> None:
    """Raises InvalidKey for key columns, of these types, that no operator with such keys can take."""
    try:
        TypedKeys(list(map(canonical_type, kinds)))
    except ValueError as error:
        raise InvalidKey(f"a compiled operator's key: {error}") from error


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def _stored(column: pa.Array) -> npt.NDArray[Any]:
    if column.type in (pa.int64(), pa.float64()):
        found: npt.NDArray[Any] = narrowed(column).to_numpy()
        return found
    return np.fromiter(column.to_pylist(), object, len(column))


def _told(kinds: Sequence[pa.DataType]) -> str:
    return ", ".join(map(str, kinds))
