"""RecordFunction: what the operators made of one Python function share.

The function runs over whole batches without a `try` per record; when it raises, the position of the record is known
from how far the batch was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from typing import Any, ClassVar, TypeVar

from ..errors import UserCodeError
from .operator import Operator, Takes

T = TypeVar("T")


class RecordFunction(Operator):
    """An operator made of a function of one record."""

    takes: ClassVar[Takes] = "records"

    _taken: int = 0
    """Records of this attempt in the batches before."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def _over(self, records: Sequence[Any], run: Callable[[Iterator[Any]], T]) -> T:
        """`run` over the records; raises UserCodeError with the position of the record it stopped at."""
        left = iter(records)
        try:
            result = run(left)
        except Exception as error:
            position = self._taken + len(records) - length_hint(left) - 1
            raise UserCodeError(self.context.name, position) from error
        self._taken += len(records)
        return result
