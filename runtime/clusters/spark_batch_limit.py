"""How Spark cuts a DataFrame's rows into Arrow batches: by rows and by bytes.

From version 4.1 on Spark adds a batch's bytes up after each row, which is a third of all its work for rows of few
columns. Where a batch of the most rows cannot come near the limit, nothing depends on that sum.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..api.schemas import dataframe_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED = str(2**31 - 1)
"""With this Spark does not measure."""


@contextlib.contextmanager
def unmeasured_batches(dataframe: DataFrame) -> Iterator[None]:
    """What is planned meanwhile does without a limit of bytes per batch, if that changes no batch."""
    session: Any = dataframe.sparkSession
    limit = _limit(session)
    if limit is None or not _is_far_below(dataframe_schema(dataframe), session, limit):
        yield
        return
    session.conf.set(MOST_BYTES, UNLIMITED)
    try:
        yield
    finally:
        session.conf.set(MOST_BYTES, limit)


def row_bits(schema: pa.Schema) -> int | None:
    """What a row takes in Arrow's layout, with one bit per column for nulls; None when it depends on the values."""
    try:
        return sum(int(kind.bit_width) + 1 for kind in schema.types)
    except ValueError:  # raised by the types of no fixed width
        return None


def _limit(session: Any) -> str | None:
    """As it is written in the session's configuration; None where Spark knows no such limit."""
    from pyspark.errors import PySparkException

    try:
        return str(session.conf.get(MOST_BYTES))
    except PySparkException:
        return None


def _is_far_below(schema: pa.Schema, session: Any, limit: str) -> bool:
    """Half of the limit at most, as buffers are rounded up. No more rows than 0 means any number of rows."""
    bits, most_rows = row_bits(schema), int(session.conf.get(MOST_ROWS))
    if bits is None or most_rows <= 0:
        return False
    most_bytes = int(session._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(limit))
    return most_rows * bits / 8 <= most_bytes / 2
