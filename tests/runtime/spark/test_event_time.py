"""Windows by event time over a Spark DataFrame: exact through a kill, and the same rows as Spark's own `window`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from understudy import Count, SparkCluster, StreamEnvironment, Sum, bounded_out_of_orderness, tumbling
from understudy.runtime.api.restart import fixed_delay

from ..clusters import jobs
from ..clusters.jobs import Gate, hold
from .test_spark_cluster import Killer

pytestmark = pytest.mark.spark

ROWS = 40_000
MOST_LATE_MS = 50_000
"""Partitions are read side by side, and within one the times go up and down by less than this."""


@pytest.fixture(scope="module", autouse=True)
def _travels_whole() -> None:
    """Spark workers cannot import test modules, so what is defined here is pickled by value."""
    for module in (sys.modules[__name__], jobs):
        cloudpickle.register_pickle_by_value(module)


def test_windows_over_a_dataframe_are_those_of_spark_through_a_kill(spark: Any, tmp_path: Path) -> None:
    moments = spark.range(0, ROWS, 1, 4).selectExpr(
        "id", "id % 7 AS key", "timestamp_millis(1700000000000 + (id * 7919) % 40000 + id) AS at"
    )
    env = StreamEnvironment(checkpoint_interval_ms=200, restart_strategy=fixed_delay(5, 0))
    (
        env.from_dataframe(moments, records_per_second=ROWS / 4)
        .assign_timestamps("at", bounded_out_of_orderness(MOST_LATE_MS))
        .key_by("key")
        .window(tumbling(seconds=10))
        .aggregate(rows=Count(), total=Sum("id"))
        .collect(name="windows")
    )
    hold(env, gate := Gate(tmp_path))
    expected = (
        moments.groupBy("key", spark_window())
        .agg({"*": "count", "id": "sum"})
        .selectExpr("key", "unix_millis(window.start) AS start", "`count(1)` AS rows", "`sum(id)` AS total")
    )
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env)
        killer = Killer(job, gate=gate)
        job.wait(timeout=180)
        found = job.results("windows")
    assert killer.killed.is_set()
    rows = [(row["key"], in_ms(row["window_start"]), row["rows"], row["total"]) for row in found]
    assert sorted(rows) == sorted(tuple(row) for row in expected.collect())


def spark_window() -> Any:
    from pyspark.sql.functions import window

    return window("at", "10 seconds")


def in_ms(moment: Any) -> int:
    return int(moment if isinstance(moment, int) else moment.timestamp() * 1000)
