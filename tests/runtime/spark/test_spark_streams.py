"""Streaming DataFrames as sources: with the real Spark, from files and by rate, on both kinds of cluster."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from understudy import JobFailed, KeyedOperator, LocalCluster, SparkCluster, StreamEnvironment, ValueState
from understudy.actors.errors import NotRestartable
from understudy.messages import RestartJob
from understudy.runtime.api.errors import InvalidProgram, InvalidSetting, OperatorCheckFailed
from understudy.runtime.api.restart import fixed_delay

from ..clusters.jobs import eventually
from .test_spark_cluster import Killer

pytestmark = pytest.mark.spark

WAIT_S = 120
ROWS_A_FILE, FILES = 50, 12


@pytest.fixture(scope="module", autouse=True)
def _travels_whole() -> None:
    """Spark workers cannot import test modules, so what is defined here is pickled by value."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def put(inbox: Path, number: int) -> None:
    rows = range(number * ROWS_A_FILE, (number + 1) * ROWS_A_FILE)
    hidden = inbox / f".{number}.json"
    hidden.write_text("".join(json.dumps({"id": row, "key": row % 7}) + "\n" for row in rows))
    os.utime(hidden, (number + 1.7e9, number + 1.7e9))  # Spark takes files in the order of their times
    hidden.rename(inbox / f"{number:03}.json")


def files_of(spark: Any, inbox: Path, per_batch: int = 1) -> Any:
    stream = spark.readStream.schema("id long, key long").option("maxFilesPerTrigger", per_batch)
    return stream.json(str(inbox))


def no_query_runs(spark: Any) -> None:
    eventually(lambda: not spark.streams.active, lambda: f"the end of {spark.streams.active}")


class Counting(KeyedOperator):
    seen = ValueState(int, default=0)

    def process(self, row: Any, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect((row.id, self.key, self.seen.value()))


def counted(env: StreamEnvironment, dataframe: Any, **options: Any) -> None:
    rows = env.from_spark_stream(dataframe, name="rows", **options)
    rows.key_by("key").process(Counting, name="count").collect(name="counted")


def exact(found: list[Any], rows: int) -> None:
    assert sorted(row for row, _, _ in found) == list(range(rows))
    assert sorted((key, count) for _, key, count in found) == sorted((row % 7, row // 7 + 1) for row in range(rows))


def test_what_there_is_is_read_once_and_in_order_and_the_stream_ends(spark: Any, inbox: Path) -> None:
    for number in range(FILES):
        put(inbox, number)
    env = StreamEnvironment(checkpoint_interval_ms=100)
    env.from_spark_stream(files_of(spark, inbox), available_now=True).map(lambda row: row.id).collect(name="ids")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        found = job.results("ids")
    assert found == list(range(FILES * ROWS_A_FILE))
    no_query_runs(spark)


def test_exact_through_the_kill_of_a_task_manager(spark: Any, inbox: Path, tmp_path: Path) -> None:
    env = StreamEnvironment(checkpoint_interval_ms=100, restart_strategy=fixed_delay(5, 0))
    counted(env, files_of(spark, inbox), spool_dir=str(tmp_path / "spool"), batches_ahead=2)
    with LocalCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        killer = Killer(job)
        for number in range(FILES):
            put(inbox, number)
            time.sleep(0.2)
        eventually(lambda: killer.killed.is_set(), lambda: "a kill")
        eventually(lambda: len(job.results("counted")) >= FILES * ROWS_A_FILE, lambda: f"{len(job.results('counted'))}")
        exact(job.results("counted"), FILES * ROWS_A_FILE)
        eventually(lambda: len(list((tmp_path / "spool" / "batches").iterdir())) <= 1, lambda: "removed batches")
        job.stop().result()
        job.wait(timeout=WAIT_S)
        no_query_runs(spark)


def test_on_a_spark_cluster(spark: Any, inbox: Path) -> None:
    for number in range(3):
        put(inbox, number)
    env = StreamEnvironment(checkpoint_interval_ms=100)
    counted(env, files_of(spark, inbox), available_now=True)
    with SparkCluster(spark, task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        exact(job.results("counted"), 3 * ROWS_A_FILE)


def test_a_job_that_goes_on_from_a_savepoint_goes_on_with_the_query(spark: Any, inbox: Path, tmp_path: Path) -> None:
    def job_of(cluster: LocalCluster, from_savepoint: str | None) -> Any:
        env = StreamEnvironment(checkpoint_interval_ms=100, checkpoint_dir=str(tmp_path / "checkpoints"))
        counted(env, files_of(spark, inbox))
        return cluster.submit(env, "rows", from_savepoint=from_savepoint)

    found: list[Any] = []
    savepoint = None
    with LocalCluster(task_managers=1) as cluster:
        for number in range(3):
            job = job_of(cluster, savepoint)
            put(inbox, number)
            eventually(has(job, ROWS_A_FILE), lambda: "the rows of a file")
            savepoint = job.stop_with_savepoint().result()
            job.wait(timeout=WAIT_S)
            found += job.results("counted")
        exact(found, 3 * ROWS_A_FILE)
        with pytest.raises(NotRestartable, match="reads a query of Spark, which its program has started"):
            cluster.ask_job_manager(RestartJob(job.job_id, savepoint)).result()
        with pytest.raises(JobFailed, match="a new job needs batch 0, and a later checkpoint"):
            job_of(cluster, None).wait(timeout=WAIT_S)


def has(job: Any, rows: int) -> Callable[[], bool]:
    return lambda: len(job.results("counted")) >= rows


TYPED = (
    "id",
    "timestamp_millis(1700000000000 + id) AS at",
    "DATE'1500-03-01' AS day",
    "CAST(id AS DECIMAL(12, 2)) AS money",
    "array(id, key) AS both",
    "named_struct('a', id, 'b', CAST(key AS STRING)) AS nested",
    "CASE WHEN id > 3 THEN CAST(id AS SMALLINT) END AS small",
)


def test_types_come_as_spark_has_them(spark: Any, inbox: Path) -> None:
    put(inbox, 0)
    typed = files_of(spark, inbox).selectExpr(*TYPED)
    env = StreamEnvironment()
    env.from_spark_stream(typed, available_now=True).collect(name="rows")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        found = job.to_arrow("rows")
    batch = spark.read.schema("id long, key long").json(str(inbox)).selectExpr(*TYPED)
    assert found.to_pylist() == batch.toArrow().to_pylist()


def test_a_query_that_fails_fails_the_job_and_says_why(spark: Any, inbox: Path, tmp_path: Path) -> None:
    put(inbox, 0)
    broken = files_of(spark, inbox).selectExpr("id", "raise_error('no such luck') AS oh")
    env = StreamEnvironment(checkpoint_interval_ms=100)
    env.from_spark_stream(broken, spool_dir=str(tmp_path / "spool")).collect(name="rows")
    with LocalCluster(task_managers=1) as cluster:
        with pytest.raises(JobFailed, match=r"failed once.*its Spark query has failed.*no such luck") as failed:
            cluster.submit(env).wait(timeout=WAIT_S)
        assert "SparkQueryFailed" in str(failed.value)
        mended = StreamEnvironment(checkpoint_interval_ms=100)
        good = files_of(spark, inbox).selectExpr("id", "'good' AS oh")
        mended.from_spark_stream(good, spool_dir=str(tmp_path / "spool"), available_now=True).collect(name="rows")
        job = cluster.submit(mended)
        job.wait(timeout=WAIT_S)
        assert [row.id for row in job.results("rows")] == list(range(ROWS_A_FILE))


def test_the_query_waits_for_a_source_that_is_behind(spark: Any, inbox: Path, tmp_path: Path) -> None:
    for number in range(FILES):
        put(inbox, number)
    env = StreamEnvironment(checkpoint_interval_ms=100)
    slow = env.from_spark_stream(
        files_of(spark, inbox), spool_dir=str(tmp_path / "spool"), batches_ahead=2, records_per_second=ROWS_A_FILE * 2
    )
    slow.map(lambda row: row.id).collect(name="ids")
    most = 0
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        while len(ids := job.results("ids")) < FILES * ROWS_A_FILE:
            written = [int(path.stem) for path in (tmp_path / "spool" / "batches").glob("*.json")]
            most = max(most, max(written, default=0) - len(job.results("ids")) // ROWS_A_FILE)
            time.sleep(0.02)
        job.stop().result()
        job.wait(timeout=WAIT_S)
    assert ids == list(range(FILES * ROWS_A_FILE))
    assert 1 <= most <= 5, "two wait, one is being read, and what a checkpoint covers shows later"


def test_what_cannot_be_a_source_is_refused(spark: Any, inbox: Path, tmp_path: Path) -> None:
    env, stream = StreamEnvironment(), files_of(spark, inbox)
    with pytest.raises(InvalidSetting, match="read it with from_spark_stream"):
        env.from_dataframe(stream)
    with pytest.raises(InvalidSetting, match="wanted a streaming DataFrame"):
        env.from_spark_stream(spark.range(3))
    with pytest.raises(InvalidSetting, match="wanted a PySpark DataFrame"):
        env.from_spark_stream([1])
    with pytest.raises(InvalidSetting, match="two columns have the name 'id'"):
        env.from_spark_stream(stream.selectExpr("id", "key AS ID"))
    with pytest.raises(InvalidSetting, match="s3://bucket/spool"):
        env.from_spark_stream(stream, spool_dir="s3://bucket/spool")
    with pytest.raises(InvalidSetting, match="exclude each other"):
        env.from_spark_stream(stream, available_now=True, trigger_ms=5)
    (tmp_path / "file").write_text("")
    env.from_spark_stream(stream, spool_dir=str(tmp_path / "file" / "spool")).collect(name="rows")
    with LocalCluster() as cluster, pytest.raises(OperatorCheckFailed, match="spool"):
        cluster.submit(env)
    with SparkCluster(spark, task_managers=2) as cluster, pytest.raises(InvalidProgram, match=r"local\[3\] or more"):
        cluster.submit(env)
