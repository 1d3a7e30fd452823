"""Aggregation: what operators share that aggregate columns by key columns, whatever they aggregate over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from ...state.kinds.aggregates import Aggregate, columns_read, misgiven
from .operator import Operator, Takes


class Aggregation(Operator):
    """Raises ValueError for what are no keys or aggregates."""

    takes: ClassVar[Takes] = "columns"

    _schema: pa.Schema | None = None
    """Of the input, when it is known before the job runs; then types of columns are its, whatever the first batch has.
    """

    def __init__(self, keys: Sequence[str], aggregates: Mapping[str, Aggregate]) -> None:
        if not keys or not aggregates:
            raise ValueError("wanted at least one key column and one aggregate")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise ValueError(f"{name}: {misgiven(aggregate, name)}")
        self._keys, self._aggregates = tuple(keys), dict(aggregates)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return self._keys

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads of its input, but for the times."""
        return columns_read(self._keys, self._aggregates)
