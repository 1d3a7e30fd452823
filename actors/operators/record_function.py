"""RecordFunction: what the operators made of one Python function share.

The function runs over whole batches without a `try` per record; when it raises, the position of the record is known
from how far the batch was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from ..errors import UnwantedResult, UserCodeError
from ..flow.elements import Batch
from ..flow.records import rows_of, rows_one_by_one, values_of
from .operator import Operator, Takes

T = TypeVar("T")


class RecordFunction(Operator):
    """An operator made of a function of one record."""

    takes: ClassVar[Takes] = "any"

    _taken: int = 0
    """Records of this attempt in the batches before."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def _over(self, batch: Batch, run: Callable[[Iterator[Any]], T]) -> T:
        """`run` over the records; raises UserCodeError with the position of the record it stopped at."""
        left, records = _records(batch)
        try:
            result = run(records)
        except (Exception, SystemExit) as error:
            index = error.index if isinstance(error, UnwantedResult) else None
            position = self._taken + (len(batch) - length_hint(left) - 1 if index is None else index)
            raise UserCodeError(self.context.name, position) from error
        self._taken += len(batch)
        return result


def _records(batch: Batch) -> tuple[Iterator[Any], Iterator[Any]]:
    """The records, one by one, behind an iterator that knows how many are left."""
    if not isinstance(batch, pa.RecordBatch):
        left = iter(batch)
        return left, left
    if not batch.num_columns:
        left = iter(rows_of(batch))
        return left, left
    first, *others = (values_of(column) for column in batch.columns)
    left = iter(first)
    return left, rows_one_by_one(batch, [left, *others])
