"""A state as a Spark DataFrame: each partition is a range of key groups, and is read by the executor that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self

import pyarrow as pa

from ..connectors.errors import require
from ..connectors.spark.this_python import use_this_python


class Table(Protocol):
    """As much of a StateTable as is needed here."""

    again: Callable[[], Self]

    @property
    def shares(self) -> list[int]: ...
    @property
    def only_key(self) -> tuple[Any, ...]: ...
    def arrow_schema(self) -> pa.Schema: ...
    def groups(self, first: int, last: int) -> Self: ...
    def key(self, key: Any) -> Self: ...
    def conformed(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]: ...


_SHARES_AT_ONCE = 4
"""Partitions for each of Spark's cores, so that none waits long for the last one."""


def frame_of(table: Table, spark: Any) -> Any:
    """Raises MissingExtra without Spark."""
    require("pyspark", extra="spark", wanted_by="StateTable.to_spark")
    from pyspark.sql.pandas.types import from_arrow_schema

    use_this_python(spark)
    schema = table.arrow_schema()
    shares = table.shares
    slices = max(1, min(len(shares), spark.sparkContext.defaultParallelism * _SHARES_AT_ONCE))
    numbers = spark.createDataFrame([(share,) for share in shares] or [(-1,)], "share int").repartition(slices, "share")
    return numbers.mapInArrow(_reader(table, schema), from_arrow_schema(schema))


def _reader(table: Table, schema: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What runs on the executors: it opens the savepoint there."""
    again, key = table.again, table.only_key

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole = again()
        for batch in numbers:
            for share in batch.column(0).to_pylist():
                own = whole.groups(share, share)
                yield from (own.key(key[0]) if key else own).conformed(schema)

    return read
