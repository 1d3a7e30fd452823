"""keyed-aggregate from a Spark DataFrame: ours on a SparkCluster, and its limit, the DataFrame drained.

Both have the same session on local[2]; both drain a small DataFrame first, so that the JVM has run that code before.
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
from understudy.runtime.cli.spark_session import spark_session

from . import job, keyed_aggregate

ARROW_ROWS = 50_000
PACKAGES = (*job.PACKAGES, "pyspark")


def run(order: Order) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with spark_session("local[2]", order.out) as spark:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))
        _drain(spark, Path(order.options["warm_up"]))
        if order.options["drain"]:
            begun = time.monotonic()
            _drain(spark, order.data.parquet)
            answer(time.monotonic() - begun, ("pyspark", "pyarrow"))
        else:
            _aggregate(spark, order)


def _aggregate(spark: Any, order: Order) -> None:
    with SparkCluster(spark, job.TASK_MANAGERS) as cluster:
        env = job.environment(order.out, order.options)
        keyed_aggregate.build(env.from_dataframe(spark.read.parquet(str(order.data.parquet))), order)
        timed = job.timed(cluster, env, order.workload)
    keyed_aggregate.finish(order, timed)


def _drain(spark: Any, folder: Path) -> None:
    """Every row crosses from Spark to Python, in two tasks as ours, and none comes back."""
    rows = spark.read.parquet(str(folder)).coalesce(job.TASK_MANAGERS)
    assert rows.mapInArrow(_nothing, rows.schema).count() == 0


def _nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.slice(0, 0) for batch in batches)


if __name__ == "__main__":
    run(received_order())
