"""FrameSources: streams of what is a table in the user's process already. A part of the StreamEnvironment."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from ...messages.known_names import known_arguments
from ..connectors import TableSource, table_of
from .beginnings import Beginnings
from .checks import rate
from .stream import DataStream


class TableOptions(TypedDict, total=False):
    """What the methods here take beside the table. They mean the same as those of `from_collection`."""

    records_per_second: float | None
    name: str | None
    parallelism: int | None


class FrameSources(Beginnings):
    """Base of the StreamEnvironment.

    The table travels with the program, so this is for what fits into memory, in each TaskManager. One subtask reads it,
    in the order of its rows, unless `parallelism` says otherwise: then blocks of rows are dealt out. A record is a Row:
    `row["delay"]`, `row.delay`, `row[3]`, `row.asdict()`.
    """

    @known_arguments(first=1, also=TableOptions.__annotations__)
    def from_arrow(self, table: Any, **options: Unpack[TableOptions]) -> DataStream:
        """Read an Arrow table: a `pa.Table`, a RecordBatch or a list of them, or anything with `__arrow_c_stream__`,
        such as a DuckDB relation. Of dictionary columns the values are read.

        `records_per_second` is the rate of all subtasks together.

        Raises UnreadableInput for what is no table, and for columns without a name of their own.
        """
        return self._from_table(table_of(table, "from_arrow"), **options)

    @known_arguments(first=1, also=TableOptions.__annotations__)
    def from_pandas(self, frame: Any, **options: Unpack[TableOptions]) -> DataStream:
        """Read a pandas DataFrame without its index, of which `frame.reset_index()` makes columns. NaN and NaT are
        null; a category is its value; a column of objects has the one type of all its values.

        `records_per_second` is the rate of all subtasks together. Raises UnreadableInput as `from_arrow`.
        """
        return self._from_table(table_of(frame, "from_pandas"), **options)

    @known_arguments(first=1, also=TableOptions.__annotations__)
    def from_polars(self, frame: Any, **options: Unpack[TableOptions]) -> DataStream:
        """Read a Polars DataFrame; of a LazyFrame what its `collect()` gives.

        `records_per_second` is the rate of all subtasks together. Raises UnreadableInput as `from_arrow`.
        """
        return self._from_table(table_of(frame, "from_polars"), **options)

    def _from_table(
        self,
        table: Any,
        records_per_second: float | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> DataStream:
        source = TableSource(table, records_per_second=rate(records_per_second), **self._batching())
        return self._start(source, name, parallelism, leads=True)
