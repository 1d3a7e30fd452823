"""The function of stateful-function for Spark's transformWithState, and the digest of what it has written."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.digest import digest


def processor() -> Any:
    """An instance; the class is made here because its base is not there in other environments."""
    stateful: Any = importlib.import_module("pyspark.sql.streaming.stateful_processor")
    row: Any = importlib.import_module("pyspark.sql").Row

    class Running(stateful.StatefulProcessor):  # type: ignore[misc]
        """Each record's number within its key, its difference from the one before, and the greatest so far."""

        def init(self, handle: Any) -> None:
            self.seen = handle.getValueState("seen", "count BIGINT, last BIGINT, maximum BIGINT")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            count, last, maximum = self.seen.get() or (0, 0, None)
            for _, value in rows:
                count += 1
                if maximum is None or value > maximum:
                    maximum = value
                yield row(key=key[0], count=count, change=value - last, maximum=maximum)
                last = value
            self.seen.update((count, last, maximum))

        def close(self) -> None: ...

    return Running()


def result_type() -> Any:
    types: Any = importlib.import_module("pyspark.sql.types")
    return types.StructType(
        [types.StructField(name, types.LongType()) for name in ("key", "count", "change", "maximum")]
    )


def digest_of_output(folder: Path) -> dict[str, Any]:
    """Of the Parquet files that the query wrote."""
    table = pq.read_table(folder)
    columns = (table[name].to_numpy() for name in ("key", "count", "change", "maximum"))
    return {"outputs": table.num_rows, "digest": f"{digest(*columns):016x}"}
