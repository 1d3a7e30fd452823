"""MapBatches: each Arrow batch becomes what a function returns for it: the vectorised form of `map` and `flat_map`.

Event times that came from a column are read again from the result, if it still has that column; else it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from ...messages import one_of_kind
from ..flow.elements import TimedBatch
from ..unrun import UNRUN, refuse
from .collector import Collector
from .event_times import times_of
from .operator import Operator, Takes

Batches: TypeAlias = "pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]"


class MapBatches(Operator):
    """The function returns a record batch, a table, or several record batches. Empty ones go no further."""

    takes: ClassVar[Takes] = "columns"

    def __init__(self, function: Callable[[pa.RecordBatch], Batches]) -> None:
        self._function = function

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        made = self._function(batch)
        if UNRUN[type(made)] and not isinstance(made, GeneratorType):
            refuse("the function of map_batches", made)
        for result in _batches(made):
            if not isinstance(result, pa.RecordBatch):
                raise _unwanted(result)
            column = self.time_column
            if column is None or column not in result.schema.names:
                out.emit(result)
            elif len(result):
                out.emit_element(TimedBatch(result, times_of(result.column(column), column), column))


def _batches(result: Any) -> Iterable[Any]:
    if isinstance(result, pa.RecordBatch):
        return [result]
    if isinstance(result, pa.Table):
        return result.to_batches()  # type: ignore[no-any-return]
    if isinstance(result, str | bytes | dict) or not isinstance(result, Iterable):
        raise _unwanted(result)
    return result


def _unwanted(result: Any) -> TypeError:
    return TypeError(
        f"map_batches: wanted a pyarrow.RecordBatch, a pyarrow.Table or several record batches from the function; "
        f"found {one_of_kind(type(result))}"
    )
