"""TableSource: an Arrow table from memory, which travels with the job. Python records do so in a CollectionSource."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from ...actors.operators.source import END, SourceState
from .indexed_source import IndexedSource
from .paced_source import COLUMN_BATCH_ROWS


class TableSource(IndexedSource):
    """Rows are dealt out in blocks: block b goes to subtask b mod p; after a change of parallelism first what others
    left. Its offset is an IndexShare of rows. The table may have grown at its end when it is restored.
    """

    def __init__(
        self, table: pa.Table, *, batch_rows: int | None = None, records_per_second: float | None = None
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        self.table = table.combine_chunks()

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def for_columns(self, names: Sequence[str], batch_rows: int = COLUMN_BATCH_ROWS) -> TableSource:
        """The same source with these columns only, in batches of `batch_rows` rows unless the user chose their size.

        An offset of either means the same to both.
        """
        narrowed = copy.copy(self)
        narrowed.table = self.table.select(names)
        narrowed.batch_rows = self._batch_rows_or(batch_rows)
        return narrowed

    @property
    def _block_rows(self) -> int:
        return self.batch_rows

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END]:
        taken = self._share.take(max_records, self.table.num_rows, adjacent=True)
        if taken is None:
            return END
        parts = self.table.slice(taken.start, len(taken)).to_batches()
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def source_schema(self) -> pa.Schema:
        return self.table.schema
