"""The rows that Spark gives a Python function, with the certainty that they are all.

Where Spark fails as it computes a partition it ends the stream of its rows in order, as if there were no more, and then
hangs up. Of a function of Spark's own it throws the result away; a TaskManager would commit it. After rows that are all
Spark sends a word more (PythonRunner.Writer.close: END_OF_STREAM), which PySpark's worker reads when the function has
ended: whoever looks whether it is there knows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader
from types import FrameType

import pyarrow as pa

from ..connectors.errors import PartitionFailed


def whole(batches: Iterator[pa.RecordBatch], pipe: BufferedReader | None) -> Iterator[pa.RecordBatch]:
    """The same batches. Raises PartitionFailed at their end when Spark has hung up. `pipe`: what they come through."""
    yield from batches
    if pipe is not None and not pipe.peek(1):
        raise PartitionFailed("Spark failed as it computed the rows of this partition: it has not given all of them")


def pipe_of_worker() -> BufferedReader | None:
    """What this PySpark worker reads from, found among the local variables of its `main`; None outside of one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "main" and isinstance(found := frame.f_locals.get("infile"), BufferedReader):
            return found
        frame = frame.f_back
    return None
