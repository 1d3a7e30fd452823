"""keyed-aggregate from a Spark DataFrame: ours on a SparkCluster, and its limit, the DataFrame drained.

All have the same session on local[2]; all drain a small DataFrame first, so that the JVM has run that code before. A
DataFrame that only scans files we read from the files. `way` is "scan" for that, "filtered" for the same DataFrame
behind a filter that every row passes, which has to come through Spark, and "drain" and "drain-filtered" for the limits.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.side import Order, answer, received_order
from understudy import SparkCluster
from understudy.runtime.clusters.spark_session import spark_session

from . import job, keyed_aggregate

ARROW_ROWS = 50_000
PACKAGES = (*job.PACKAGES, "pyspark")


def run(order: Order) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with spark_session("local[2]", order.out) as spark:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))
        way = order.options["way"]
        is_filtered = way.endswith("filtered")
        _drain(_rows(spark, Path(order.options["warm_up"]), is_filtered))
        rows = _rows(spark, order.data.parquet, is_filtered)
        if way.startswith("drain"):
            begun = time.monotonic()
            _drain(rows)
            answer(time.monotonic() - begun, ("pyspark", "pyarrow"))
        else:
            _aggregate(spark, rows, order)


def _rows(spark: Any, folder: Path, is_filtered: bool) -> Any:
    rows = spark.read.parquet(str(folder))
    return rows.where("value >= 0") if is_filtered else rows


def _aggregate(spark: Any, rows: Any, order: Order) -> None:
    with SparkCluster(spark, job.TASK_MANAGERS) as cluster:
        env = job.environment(order.out, order.options)
        keyed_aggregate.build(env.from_dataframe(rows), order)
        timed = job.timed(cluster, env, order.workload)
    keyed_aggregate.finish(order, timed)


def _drain(rows: Any) -> None:
    """Every row crosses from Spark to Python, in two tasks as ours, and none comes back."""
    rows = rows.coalesce(job.TASK_MANAGERS)
    assert rows.mapInArrow(_nothing, rows.schema).count() == 0


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.slice(0, 0) for batch in batches)


if __name__ == "__main__":
    run(received_order())
