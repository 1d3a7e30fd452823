"""Runs of an incremental checkpoint in sections: what is left of their rows, and several as one snapshot.

Of each key the rows of the newest run that has some are left; of windows also those that are not gone without a row of
their own (window_runs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import KeyedStateHandle
from ..backends.backend import ReadState
from ..backends.stored_runs import runs_of
from ..columns.column_values import distinct_values, narrowed
from ..keys.key_groups import KeyGroupRange
from .group_sections import read_header, read_sections, schema_of, write_sections
from .slot_groups import Share
from .window_runs import RUN, without_gone


def rows_left(runs: Sequence[pa.RecordBatch], header: Mapping[str, Any]) -> list[pa.RecordBatch]:
    """Of these runs, the oldest first; `header`: that of the newest one. Raises LookupError, TypeError or ValueError
    for batches that are no such runs.
    """
    left = newest_rows(runs, header["keys"])
    if RUN in header:
        left = [without_gone(batch, header) for batch in left]
    return [batch for batch in left if batch.num_rows]


def newest_rows(runs: Sequence[pa.RecordBatch], keys: Sequence[str]) -> Sequence[pa.RecordBatch]:
    """Of each run, the oldest first, the rows of keys that no newer run has. `keys`: the key columns."""
    if len(runs) < 2:
        return runs
    codes = _codes([pa.concat_arrays([batch.column(name) for batch in runs]) for name in keys])
    sizes = [batch.num_rows for batch in runs]
    number = np.repeat(np.arange(len(runs)), sizes)
    newest = np.zeros(len(codes), np.int64)
    newest[codes] = number  # of equal codes the last one counts
    is_left = np.split(newest[codes] == number, np.cumsum(sizes)[:-1])
    return [batch.filter(pa.array(own)) for batch, own in zip(runs, is_left, strict=True)]


def _codes(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """A number for each row: equal ones, below the number of rows, for equal keys."""
    codes, *others = map(_codes_of, columns)
    for each in others:
        codes = _codes_of(pa.array(codes << 32 | each))
    return codes


def _codes_of(column: pa.Array) -> npt.NDArray[np.int64]:
    _, codes = distinct_values(column)
    return codes.astype(np.int64)


def in_one(handle: KeyedStateHandle, read: ReadState) -> KeyedStateHandle:
    """What the runs in this handle hold, as one snapshot, inline. Raises a StateError, or what `rows_left` does."""
    runs = [(data, run, read_header(data, run)) for run, data in runs_of(handle, read)]
    newest = runs[-1][-1]
    batches: list[pa.RecordBatch] = []
    shares, end = list[Share](), 0
    own = KeyGroupRange(handle.first_key_group, handle.last_key_group)
    for group in sorted({group for _, run, _ in runs for group in run.offsets} & set(own.groups)):
        one = KeyGroupRange(group, group)
        said = [rows for data, run, header in runs for rows in read_sections(data, run, header, one)]
        found = rows_left(said, newest)
        batches += found
        if found:
            shares.append((group, end, end := end + sum(batch.num_rows for batch in found)))
    schema = schema_of(newest)
    (rows,) = pa.Table.from_batches(batches, schema).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], schema)
    ]
    stored = pa.RecordBatch.from_arrays([narrowed(column) for column in rows.columns], names=schema.names)
    about = {what: each for what, each in newest.items() if what != RUN}
    return write_sections(own, about, schema, stored, shares)
