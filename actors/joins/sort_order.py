"""SortOrder: the order of rows by some of their columns, each up or down. Nulls come last, then NaNs before them.

Columns are turned into numbers that are sorted upwards, so a comparison of rows is one of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from ...messages import those_there_are
from ...state.columns.column_values import is_ordered, numbers_of, plain_type

SortKeys: TypeAlias = "list[npt.NDArray[Any]]"
"""The first counts the most; each has an item for each row."""


class SortOrder:
    """`columns` with `descending` for each. Raises ValueError for columns that have no order, or are not there."""

    def __init__(self, columns: Sequence[str], descending: Sequence[bool], schema: pa.Schema) -> None:
        for name in columns:
            if schema.names.count(name) != 1:
                raise ValueError(
                    f"there is no column {name!r} to sort by, or more than one; there is "
                    f"{those_there_are(name, schema.names)}"
                )
            kind = plain_type(schema.field(name).type)
            if not is_ordered(kind):
                raise ValueError(f"wanted columns of numbers or times to sort by, found {name!r} of type {kind}")
        self.places = [schema.get_field_index(name) for name in columns]
        self._descending = tuple(descending)

    def keys(self, columns: Sequence[pa.Array]) -> SortKeys:
        """Of rows with these columns, in the order of `places`."""
        found: SortKeys = []
        for column, is_descending in zip(columns, self._descending, strict=True):
            absent = column.is_null().to_numpy(zero_copy_only=False)
            if pt.is_dictionary(column.type):
                column = column.dictionary_decode()
            if column.null_count:
                column = column.fill_null(pa.scalar(0).cast(column.type) if not pt.is_boolean(column.type) else False)
            numbers = numbers_of(column)
            if is_descending:
                numbers = -numbers if numbers.dtype == np.float64 else ~numbers
            found += [absent, numbers]
        return found


def taken(keys: SortKeys, places: npt.NDArray[np.int64]) -> SortKeys:
    """The keys of these rows."""
    return [each[places] for each in keys]


def concatenated(keys: SortKeys, others: SortKeys) -> SortKeys:
    """The keys of both, one after the other."""
    return [np.concatenate(pair) for pair in zip(keys, others, strict=True)]


def are_before(keys: SortKeys, others: SortKeys, *, or_equal: bool) -> npt.NDArray[np.bool_]:
    """Row by row, whether it comes before the other one."""
    before = np.full(len(keys[0]), or_equal)
    for one, other in zip(reversed(keys), reversed(others), strict=True):
        less = one < other
        same = one == other
        if one.dtype == np.float64:
            is_nan, other_is_nan = np.isnan(one), np.isnan(other)
            less |= ~is_nan & other_is_nan
            same |= is_nan & other_is_nan
        before = less | (same & before)
    return before


def order_rule(by: Sequence[str], descending: Sequence[bool]) -> str:
    """As text that is equal for equal orders."""
    return ", ".join(f"{name} {'down' if down else 'up'}" for name, down in zip(by, descending, strict=True))
