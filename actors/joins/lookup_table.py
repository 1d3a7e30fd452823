"""LookupTable: the newest row of each key of a table, found for many keys at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ...state.columnar.exact_arrays import canonical_type
from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import RowReader, RowStore
from ...state.columnar.rows_format import KeptRows
from ...state.keys.column_hash import check_no_null
from ...state.keys.key_index import KeyIndex

_FEWEST_ROWS = 8192


class LookupTable:
    """Rows by key. A row takes the place of the one before with its key."""

    def __init__(self, kept: KeptRows) -> None:
        self._kept = kept
        self._store = RowStore(kept.schema)
        self._kinds = [canonical_type(kept.schema.field(name).type) for name in kept.keys]
        self._keys = KeyIndex(self._kinds)
        self._newest: npt.NDArray[np.int64] = np.empty(0, np.int64)
        """By slot."""

    def __len__(self) -> int:
        return self._store.live_count

    def put(self, batch: pa.RecordBatch) -> None:
        """Add rows, in order. Raises InvalidKey for a null key."""
        if not len(batch):
            return
        columns = [batch.column(name) for name in self._kept.keys]
        for name, column in zip(self._kept.keys, columns, strict=True):
            check_no_null(column, repr(name))
        slots = self._keys.slots_of(self._canonical(columns))
        more = len(self._keys) - len(self._newest)
        if more > 0:
            self._newest = np.concatenate((self._newest, np.full(max(more, len(self._newest)), -1)))
        first = self._store.append(batch, slots, np.zeros(len(batch), np.int64))
        new = np.arange(first, first + len(batch))
        before = np.unique(self._newest[slots])
        self._newest[slots] = new  # of several of one key NumPy assigns the last
        self._store.drop(np.concatenate((before[before >= 0], new[self._newest[slots] != new])))
        if self._store.dropped >= max(_FEWEST_ROWS, len(self._store) // 2):
            self._store.compact()
            self._newest[self._store.slots] = np.arange(len(self._store))

    def find(self, keys: Sequence[pa.Array]) -> RowNumbers:
        """The number of the row of each of these keys; -1 where there is none, and for a null."""
        valid = np.ones(len(keys[0]), np.bool_)
        for key in keys:
            valid &= key.is_valid().to_numpy(zero_copy_only=False)
        slots = self._keys.find(self._canonical([key.filter(pa.array(valid)) for key in keys]))
        found = np.full(len(valid), -1)
        found[valid] = np.where(slots < 0, -1, self._newest[slots]) if len(self._newest) else -1
        return found

    def reader(self) -> RowReader:
        return self._store.reader()

    def rows(self) -> pa.RecordBatch:
        """All rows, in the order in which they came."""
        return self._store.reader().take(self._store.live_rows())

    def _canonical(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """The columns as the index takes them: equal keys of either stream are equal there."""
        plain = [column.dictionary_decode() if pt.is_dictionary(column.type) else column for column in columns]
        return [column.cast(kind) for column, kind in zip(plain, self._kinds, strict=True)]
