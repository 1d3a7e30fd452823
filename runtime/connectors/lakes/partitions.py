"""Partitions: the rows of a table apart by the values of some columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def partitions_of(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """For each combination of values that occurs: the values, as one row of these columns has them in Arrow's own
    scalars, and its rows without these columns, in their order.
    """
    if not columns:
        yield {}, table
        return
    codes = np.zeros(table.num_rows, np.int64)
    for name in columns:
        encoded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1]  # so that they stay small, however many columns there are
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    rest = table.drop_columns(list(columns))
    for rows in np.split(order, ends):
        values = {name: table[name][int(rows[0])] for name in columns}
        yield values, rest if len(rows) == table.num_rows else rest.take(pa.array(rows))
