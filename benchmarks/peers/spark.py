"""Spark Structured Streaming, local[2]: keyed-aggregate as a grouped query, stateful-function with transformWithState.

The micro-batches are sized so that each takes about a second, and each is a checkpoint. A smaller query of the same
kind warms the session up before. The time runs from the first micro-batch's start to the query's end.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.side import Order, answer, received_order, write_totals

from . import spark_function

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(order: Order) -> None:
    spark = _session(order)
    warm_up = Path(order.options["warm_up"])
    if order.workload == "keyed-aggregate":
        _aggregate(spark, warm_up, order.out / "warm-up", order)
        seconds = _aggregate(spark, order.data.parquet, order.out / "measured", order)
        _write_totals(spark, order)
        more = {}
    else:
        _function(spark, warm_up, order.out / "warm-up", order)
        seconds = _function(spark, order.data.parquet, order.out / "measured", order)
        more = spark_function.digest_of_output(order.out / "measured" / "output")
    answer(seconds, ["pyspark"], **more)
    spark.stop()


def _session(order: Order) -> Any:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    sql: Any = importlib.import_module("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2]").appName("benchmark")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(order.out / "spark"),
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        **({"spark.sql.streaming.stateStore.providerClass": ROCKSDB} if order.workload != "keyed-aggregate" else {}),
        **order.options.get("conf", {}),
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _rows(spark: Any, folder: Path, files: int) -> Any:
    stream = spark.readStream.schema("key BIGINT, value BIGINT").option("maxFilesPerTrigger", files)
    return stream.parquet(str(folder))


def _aggregate(spark: Any, folder: Path, out: Path, order: Order) -> float:
    functions: Any = importlib.import_module("pyspark.sql.functions")
    rows = _rows(spark, folder, order.options["files_per_trigger"])
    totals = rows.groupBy("key").agg(functions.count("*").alias("count"), functions.sum("value").alias("sum"))
    writer = totals.writeStream.format("noop").outputMode("update")
    return _timed(writer.option("checkpointLocation", str(out / "checkpoint")))


def _write_totals(spark: Any, order: Order) -> None:
    """From the state that the last checkpoint holds."""
    state = spark.read.format("statestore").load(str(order.out / "measured" / "checkpoint"))
    found = state.selectExpr("key.key AS key", "value.count AS count", "value.sum AS sum").toPandas()
    write_totals(order, found["key"], found["count"], found["sum"])


def _function(spark: Any, folder: Path, out: Path, order: Order) -> float:
    rows = _rows(spark, folder, order.options["files_per_trigger"])
    results = rows.groupBy("key").transformWithState(
        statefulProcessor=spark_function.processor(),
        outputStructType=spark_function.result_type(),
        outputMode="Update",
        timeMode="None",
    )
    writer = results.writeStream.format("parquet").option("path", str(out / "output")).outputMode("append")
    return _timed(writer.option("checkpointLocation", str(out / "checkpoint")))


def _timed(writer: Any) -> float:
    """Seconds from the start of the first micro-batch to the end."""
    query = writer.trigger(availableNow=True).start()
    while not query.recentProgress and query.isActive:
        time.sleep(0.005)
    query.awaitTermination()
    ended = time.time()
    first = query.recentProgress[0]
    datetime: Any = importlib.import_module("datetime").datetime
    return ended - float(datetime.fromisoformat(first["timestamp"].replace("Z", "+00:00")).timestamp())


if __name__ == "__main__":
    run(received_order())
