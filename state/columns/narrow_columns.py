"""Integers of 64 bits, as snapshots store them: in as few bytes each as hold all values of a column.

Counts are small, and half of a snapshot of counts and sums would be zeros. The schema that they are read back into
says what they are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_NARROW = tuple((np.iinfo(kind).min, np.iinfo(kind).max, kind) for kind in (np.int8, np.int16, np.int32))


def narrowed(column: pa.Array) -> pa.Array:
    """The same numbers in fewer bytes; another column, or one with nulls, as it is."""
    if column.type != pa.int64() or column.null_count or not len(column):
        return column
    values = column.to_numpy()
    least, greatest = values.min(), values.max()
    for low, high, kind in _NARROW:
        if low <= least and greatest <= high:
            return pa.array(values.astype(kind))
    return column


def widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """What was narrowed, as it was. Raises ValueError for columns that are not those of the schema."""
    return batch if batch.schema.equals(schema) else batch.cast(schema)
