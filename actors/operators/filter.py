"""Filter: keeps the records for which a condition holds. Flink: StreamFilter.

The condition is a function of a record, or a `pyarrow.compute` expression of the columns: `pc.field("delay") > 3`. What
comes as an Arrow batch stays one. A null condition is not true, as in SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...messages.shown import columns_shown, place_of_function
from ..flow.elements import Batch, TimedBatch, Times
from ..flow.records import batch_of
from ..unrun import UNRUN, refuse
from .collector import Collector
from .operator import Takes
from .record_function import RecordFunction

log = logging.getLogger(__name__)

_CHECKED = 10_000
"""The number of records whose result is looked at per attempt: a look costs as much as a short condition."""
_MANY = 1_000
"""After this many results, or at the end of the data, if each was None, a warning says that no record is kept."""
_SMALL = 16
"""And of those of a batch that is no larger, as other things cost more there."""


class Filter(RecordFunction):
    """The records, in order, for which the condition is true."""

    takes: ClassVar[Takes] = "any"

    _only_none: bool = True
    """Each result of this attempt was None, and that was not said."""

    def __init__(self, condition: Callable[[Any], Any] | pc.Expression) -> None:
        self._expression = condition if isinstance(condition, pc.Expression) else None
        super().__init__(condition)

    def process_batch(self, batch: Batch, out: Collector) -> None:
        self._process(batch, out)
        if self._only_none and self._taken >= _MANY:
            self._say_that_nothing_is_kept()

    def on_end(self, out: Collector) -> None:
        if self._only_none and self._taken:
            self._say_that_nothing_is_kept()

    def _say_that_nothing_is_kept(self) -> None:
        self._only_none = False
        log.warning(
            "filter %r%s returned None for each of its first %d records, so none was kept: is a `return` missing? If "
            "that is what you want, return False, as bool(...) does",
            *(self.context.name, place_of_function(self._function), self._taken),
        )

    def _process(self, batch: Batch, out: Collector) -> None:
        if self.timestamps is not None:
            self._process_timed(batch, self.timestamps, out)
        elif self._expression is not None:
            columns = batch if isinstance(batch, pa.RecordBatch) else batch_of(batch)
            for part in _filtered(pa.Table.from_batches([columns]), self._expression).to_batches():
                out.emit(part)
        elif isinstance(batch, pa.RecordBatch):
            out.emit(batch.filter(pa.array(self._over(batch, self._test), pa.bool_())))
        else:
            is_checked = self._taken < _CHECKED or len(batch) <= _SMALL
            keep = self._keep_checked if is_checked else self._keep
            out.emit(self._over(batch, self._keep_watched if self._only_none else keep))

    def _process_timed(self, batch: Batch, times: Times, out: Collector) -> None:
        """The same where each record has an event time, which stays with it."""
        if self._expression is not None:
            columns = batch if isinstance(batch, pa.RecordBatch) else batch_of(batch)
            table = pa.Table.from_batches([columns]).append_column("", pa.array(np.arange(len(columns))))
            for part in _filtered(table, self._expression).to_batches():
                last = part.num_columns - 1
                self._emit_kept(part.remove_column(last), part.column(last).to_numpy(), times, out)
            return
        kept = np.array(self._over(batch, self._test), np.bool_)
        if not kept.any():
            return
        if isinstance(batch, pa.RecordBatch):
            records: Batch = batch.filter(pa.array(kept))
        else:
            records = [record for record, is_kept in zip(batch, kept.tolist(), strict=True) if is_kept]
        self._emit_kept(records, np.flatnonzero(kept), times, out)

    def _emit_kept(self, records: Batch, rows: npt.NDArray[np.intp], times: Times, out: Collector) -> None:
        """`rows`: the numbers that the records had in the batch."""
        marks = None if self.split_watermarks is None else self.split_watermarks[rows]
        out.emit_element(TimedBatch(records, times[rows], self.time_column, marks))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (schema,) = inputs
        if schema is not None and self._expression is not None:
            try:
                _filtered(schema.empty_table(), self._expression)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                reason = " ".join(str(error).split())
                raise ValueError(f"{self._expression}: {reason}; the stream has {columns_shown(schema)}") from error
        return schema

    def _test(self, records: Iterator[Any]) -> list[bool]:
        condition = self._function
        if self._only_none:
            return [_checked(self._watched(condition(record))) for record in records]
        return [_checked(condition(record)) for record in records]

    def _keep_watched(self, records: Iterator[Any]) -> list[Any]:
        condition = self._function
        return [record for record in records if _checked(self._watched(condition(record)))]

    def _watched(self, kept: Any) -> Any:
        if kept is not None:
            self._only_none = False
        return kept

    def _keep_checked(self, records: Iterator[Any]) -> list[Any]:
        condition = self._function
        return [record for record in records if _checked(condition(record))]

    def _keep(self, records: Iterator[Any]) -> list[Any]:
        condition = self._function
        return [record for record in records if condition(record)]


def _checked(kept: Any) -> bool:
    """Whether it counts as true. A coroutine would, too, whatever its own result is."""
    if UNRUN[type(kept)]:
        refuse("the condition of filter", kept, "return True or False")
    return bool(kept)


def _filtered(table: pa.Table, expression: pc.Expression) -> pa.Table:
    """On this thread alone, which keeps the rows in order."""
    import pyarrow.acero as acero  # it brings pandas along, if that is installed: half a second that few jobs need

    plan = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("filter", acero.FilterNodeOptions(expression)),
    ]
    return acero.Declaration.from_sequence(plan).to_table(use_threads=False)
