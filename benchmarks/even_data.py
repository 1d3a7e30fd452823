"""The rows of the benchmark `async`: record i has the key i modulo the number of keys, and the value i.

No key is hotter than another: the records of one key wait for each other, so with a hot key its turns would be
measured. As long as there are more keys than records in flight, each key's records stay in order on every side, and
one right answer serves all.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .data import FILE_ROWS, SCHEMA, Dataset, make_once
from .digest import combined, digest


def even_dataset(cache: Path, rows: int, keys: int) -> Dataset:
    """The data, made now unless it is there: Parquet files, and the same rows as raw pairs in one file."""
    folder = cache / "data" / f"even-{keys}keys-{rows}rows"
    make_once(folder, lambda into: _write(Dataset(into, rows, keys)))
    return Dataset(folder, rows, keys)


def even_pairs(data: Dataset) -> Path:
    """The folder of the raw pairs."""
    return data.folder / "pairs"


def numbered_answer(data: Dataset) -> int:
    """The digest of (key, number of the record within its key, value, 0) for each row."""
    starts = range(0, data.rows, FILE_ROWS)
    return combined(
        digest(ids % data.keys, ids // data.keys + 1, ids, np.zeros(len(ids)))
        for ids in (np.arange(start, min(start + FILE_ROWS, data.rows)) for start in starts)
    )


def totals_answer(data: Dataset) -> int:
    """The digest of (key, number of its rows, sum of their values, 0) for each key."""
    every = np.arange(min(data.keys, data.rows))
    counts = data.rows // data.keys + (every < data.rows % data.keys)
    sums = counts * every + data.keys * (counts * (counts - 1) // 2)
    return digest(every, counts, sums, np.zeros(len(every)))


def _write(data: Dataset) -> None:
    data.parquet.mkdir(parents=True)
    even_pairs(data).mkdir()
    with (even_pairs(data) / "all.bin").open("wb") as pairs:
        for part, start in enumerate(range(0, data.rows, FILE_ROWS)):
            ids = np.arange(start, min(start + FILE_ROWS, data.rows))
            columns = [ids % data.keys, ids]
            table = pa.table(columns, schema=SCHEMA)
            pq.write_table(table, data.parquet / f"part-{part:05d}.parquet", row_group_size=FILE_ROWS)
            pairs.write(np.column_stack(columns).astype("<i8").tobytes())
