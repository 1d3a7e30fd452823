"""LookupJoin: each row of a stream with the row of a table that has its key now.

The table is fixed and travels with the program, or comes as a second stream that every subtask gets whole: a row that
comes takes the place of the one before with its key. What a row of the stream finds depends on what has come by then;
for the version that was valid at a time see temporal_join. Every snapshot has the whole table of each subtask; a
subtask is restored with that of one of them. Flink: the broadcast state pattern; a lookup join of SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from ...messages import CheckpointId
from ...state.columnar.row_store import RowReader
from ...state.columnar.rows_format import KeptRows
from ...state.kinds.descriptors import OperatorListState
from ..flow.records import conform
from ..operators.collector import Collector
from ..operators.operator import Operator, Takes
from .joined_columns import JoinedColumns
from .lookup_table import LookupTable
from .rows_operator import known

log = logging.getLogger(__name__)


class FixedLookupJoin(Operator):
    """With a table that does not change."""

    takes: ClassVar[Takes] = "columns"

    _columns: JoinedColumns
    _kept: tuple[KeptRows, KeptRows]

    def __init__(
        self,
        keys: Sequence[str],
        table_keys: Sequence[str],
        how: Literal["inner", "left"],
        suffix: str,
        table: pa.RecordBatch | None = None,
    ) -> None:
        self._keys, self._table_keys = tuple(keys), tuple(table_keys)
        self._how, self._suffix = how, suffix
        self._fixed = table

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (stream,) = inputs
        assert self._fixed is not None, "a fixed table"
        return self._join(stream, self._fixed.schema)

    def open(self) -> None:
        self._table = LookupTable(self._kept[1])
        if self._fixed is not None:
            self._table.put(conform(self._fixed, self._kept[1].schema))

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        batch = conform(batch, self._kept[0].schema)
        rows = self._table.find([batch.column(name) for name in self._keys])
        times = self.timestamps
        places = np.arange(len(batch))
        if self._how == "inner":
            places = np.flatnonzero(rows >= 0)
        if not len(places):
            return
        joined = self._columns.batch(RowReader.of(batch), places, self._table.reader(), rows[places])
        out.emit(joined, None if times is None else times[places])

    def _join(self, stream: pa.Schema | None, table: pa.Schema | None) -> pa.Schema:
        self._kept = (
            KeptRows(self._keys, known(stream, "the columns of the stream")),
            KeptRows(self._table_keys, known(table, "the columns of the table")),
        )
        self._columns = JoinedColumns(*self._kept, self._how, self._suffix, is_changelog=False)
        return self._columns.schema


class LookupJoin(FixedLookupJoin):
    """With a table that comes as the second input, broadcast."""

    inputs: ClassVar[int] = 2

    _rows: OperatorListState[bytes] = OperatorListState(bytes, mode="broadcast", name="table")
    """One item: all rows, as an Arrow stream."""

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        stream, table = inputs
        return self._join(stream, table)

    def open(self) -> None:
        super().open()
        self._is_stored = False
        self._without_table = 0
        for stored in self._rows.get():
            with pa.ipc.open_stream(stored) as reader:
                for batch in reader:
                    self._table.put(conform(batch, self._kept[1].schema))

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        if not len(self._table):
            self._without_table += len(batch)
        super().process_batch(batch, out)

    def process_batch_2(self, batch: pa.RecordBatch, out: Collector) -> None:
        if not len(self._table):
            self._tell_of_records_before()
        self._table.put(conform(batch, self._kept[1].schema))
        self._is_stored = False

    def on_end(self, out: Collector) -> None:
        self._tell_of_records_before()

    def _tell_of_records_before(self) -> None:
        """Once, when the first row comes, or none has: all these found nothing, which looks like a wrong key."""
        if self._without_table:
            log.warning(
                "operator %r: %d records came before the table had a row, and so found none: two streams have no order "
                "between them. Give a table that does not change as a pyarrow.Table, which is there from the first "
                "record, and one with versions by time to temporal_join: docs/joins.md",
                self.context.name,
                self._without_table,
            )
            self._without_table = 0

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        if self._is_stored:
            return
        sink = pa.BufferOutputStream()
        rows = self._table.rows()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
        self._rows.update([sink.getvalue().to_pybytes()])
        self._is_stored = True
