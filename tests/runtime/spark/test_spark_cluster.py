"""SparkCluster on a real Spark session, `local[2]`."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from understudy import (
    Count,
    FileSink,
    InvalidSetting,
    JobCanceled,
    JobFailed,
    KeyedOperator,
    SparkCluster,
    StateDoesNotFit,
    StreamEnvironment,
    Sum,
    ValueState,
)
from understudy.messages import CheckpointCompleted, FirstBatchProcessed, JobStatus, RestartJob, TaskManagerChanged
from understudy.runtime.api.restart import fixed_delay
from understudy.runtime.clusters import spark_slot_watch, spark_slots
from understudy.runtime.clusters.job_handle import JobHandle
from understudy.runtime.clusters.spark_cluster import DAEMON, DAEMON_SETTING, preload_workers
from understudy.runtime.clusters.spark_launcher import SparkLauncher
from understudy.runtime.clusters.task_manager_process import TaskManagerLaunch

from ..clusters import jobs, slots
from ..clusters.jobs import Gate, eventually, hold

pytestmark = [pytest.mark.spark, pytest.mark.every_run]

ROWS = 60_000
WAIT_S = 180
"""How long a job may take; nothing here asserts that something is fast, and a JVM that is cold and starved is slow."""


@pytest.fixture(scope="module", autouse=True)
def _travels_whole() -> None:
    """Spark workers cannot import test modules, so what is defined here is pickled by value."""
    for module in (sys.modules[__name__], jobs):
        cloudpickle.register_pickle_by_value(module)


class CountPerKey(KeyedOperator):
    """Emits how often each key has come so far: as a multiset, the same whatever the order."""

    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect((self.key, self.seen.value()))


class Killer:
    """Kills TaskManager `index` with SIGKILL, once: after the n-th checkpoint that is complete since subtask `index` of
    some vertex has had records. Then it opens the gate that keeps the job from its end.
    """

    def __init__(self, job: JobHandle, index: int = 0, after: int = 2, gate: Gate | None = None) -> None:
        self.killed = threading.Event()
        self._gate = gate
        self._pids: dict[int, int] = {}
        self._index, self._left = index, after
        self._has_records = False
        job.on_event(self._on_event)

    def _on_event(self, event: Any) -> None:
        if isinstance(event, TaskManagerChanged) and event.registered:
            self._pids[event.index] = event.pid
        if isinstance(event, FirstBatchProcessed) and event.subtask_index == self._index:
            self._has_records = True
        if isinstance(event, CheckpointCompleted) and self._has_records and not self.killed.is_set():
            self._left -= 1
            if self._left == 0:
                os.kill(self._pids[self._index], signal.SIGKILL)
                self.killed.set()
                if self._gate is not None:
                    self._gate.open()


def numbers(spark: Any, rows: int = ROWS) -> Any:
    return spark.range(0, rows, 1, 4).selectExpr("id", "id % 7 AS seventh")


def test_a_dataframe_job_is_exact_through_a_kill(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment(checkpoint_interval_ms=200, restart_strategy=fixed_delay(5, 0))
    source = env.from_dataframe(numbers(spark), records_per_second=ROWS / 4)
    source.key_by("seventh").process(CountPerKey, name="count").collect(name="counts")
    sums = source.key_by("seventh").aggregate(rows=Count(), total=Sum("id"))
    sums.sink_to(FileSink(str(tmp_path / "sums")), name="s")
    hold(env, gate := Gate(tmp_path))
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env, name="numbers")
        killer = Killer(job, gate=gate)
        details = job.wait(timeout=WAIT_S)
    assert killer.killed.is_set()
    assert details.restarts == 1, details.failures
    per_key = {key: len(range(key, ROWS, 7)) for key in range(7)}
    assert sorted(job.results("counts")) == sorted((key, n + 1) for key, rows in per_key.items() for n in range(rows))
    found = {row["seventh"]: (row["rows"], row["total"]) for row in job.to_dataframe("s", spark).collect()}
    assert found == {key: (rows, sum(range(key, ROWS, 7))) for key, rows in per_key.items()}


def test_an_outlet_is_followed_through_a_kill(spark: Any, tmp_path: Path) -> None:
    env = StreamEnvironment(checkpoint_interval_ms=200, restart_strategy=fixed_delay(5, 0))
    source = env.from_dataframe(numbers(spark), records_per_second=ROWS / 4)
    source.map(lambda row: row.id).to_outlet("ids")
    hold(env, gate := Gate(tmp_path))
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env)
        killer = Killer(job, gate=gate)
        found: list[int] = []
        cursor: str | None = None
        while batches := list(islice(job.outlet("ids", after=cursor), 2)):
            found += [record for batch in batches for record in batch]
            cursor = batches[-1].cursor
        details = job.wait(timeout=WAIT_S)
    assert killer.killed.is_set()
    assert details.restarts == 1, details.failures
    assert sorted(found) == list(range(ROWS))


def test_a_task_manager_that_cannot_reach_the_driver_says_so(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an executor of another machine without `host=`; "its Spark job ended" was all that was said."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}/job-manager"
    launch = SparkCluster._launch

    def astray(cluster: SparkCluster, *given: Any) -> TaskManagerLaunch:
        return replace(launch(cluster, *given), job_manager_address=address)

    monkeypatch.setattr(SparkCluster, "_launch", astray)
    env = StreamEnvironment()
    env.from_collection([1]).collect(name="out")
    with SparkCluster(spark, task_managers=1) as cluster:
        job = cluster.submit(env)
        said = rf"it could not connect to the JobManager at {address}: .*another machine, give SparkCluster host="
        with pytest.raises(JobFailed, match=said):
            job.wait(timeout=2 * WAIT_S)


@pytest.mark.parametrize("reads", [True, False], ids=["with a DataFrame", "without"])
def test_a_kill_costs_the_task_manager_that_was_killed_and_no_other(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    """Spark aborts all jobs over the RDD of a failed stage, unless that stage's job is cancelled in time."""
    monkeypatch.setattr(SparkLauncher, "kill", lambda *_: None)
    env = StreamEnvironment(checkpoint_interval_ms=200, restart_strategy=fixed_delay(5, 0))
    if reads:
        source = env.from_dataframe(numbers(spark, 20_000), records_per_second=5_000).map(lambda row: row.id)
    else:
        source = env.generate(lambda index: index, 20_000, records_per_second=5_000)
    source.key_by(lambda number: number % 7).process(CountPerKey, name="count").collect(name="counts")
    hold(env, gate := Gate(tmp_path))
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env)
        changes: list[TaskManagerChanged] = []
        job.on_event(lambda event: changes.append(event) if isinstance(event, TaskManagerChanged) else None)
        killer = Killer(job, gate=gate)
        details = job.wait(timeout=WAIT_S)
    assert killer.killed.is_set()
    assert details.restarts == 1, details.failures
    assert [change.index for change in changes if not change.registered] == [0]
    assert len({change.pid for change in changes if change.index == 1}) == 1


def test_a_savepoint_is_restored_with_the_same_partitions_and_another_parallelism_behind_them(
    spark: Any, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)

    def build(parallelism: int, rate: float | None, partitions: int = 2) -> StreamEnvironment:
        env = StreamEnvironment(parallelism=parallelism, checkpoint_interval_ms=200)
        source = env.from_dataframe(numbers(spark), name="rows", parallelism=partitions, records_per_second=rate)
        source.key_by("seventh").process(CountPerKey, name="count").collect(name="counts")
        hold(env, gate)
        return env

    with SparkCluster(spark, task_managers=2, slots_per_task_manager=2) as cluster:
        first = cluster.submit(build(2, ROWS / 6))
        three_checkpoints = threading.Semaphore(0)
        first.on_event(lambda event: three_checkpoints.release() if isinstance(event, CheckpointCompleted) else None)
        assert all(three_checkpoints.acquire(timeout=WAIT_S) for _ in range(3))
        path = first.cancel_with_savepoint().result(timeout=WAIT_S)
        with pytest.raises(JobCanceled):
            first.wait(timeout=WAIT_S)
        gate.open()
        with pytest.raises(
            StateDoesNotFit, match="'rows' reads a DataFrame, which was in 2 partitions and would be in 1"
        ):
            cluster.submit(build(3, None, partitions=1), from_savepoint=path)
        second = cluster.submit(build(3, None), from_savepoint=path)
        second.wait(timeout=WAIT_S)
        found = first.results("counts") + second.results("counts")
    per_key = {key: len(range(key, ROWS, 7)) for key in range(7)}
    assert sorted(found) == sorted((key, n + 1) for key, rows in per_key.items() for n in range(rows))
    assert len(second.results("counts")) < ROWS


def test_a_job_is_restarted_from_a_savepoint_as_by_the_page(spark: Any, tmp_path: Path) -> None:
    """Its DataFrame is planned once more, in the driver that has it."""
    env = StreamEnvironment(checkpoint_interval_ms=200, checkpoint_dir=str(tmp_path / "checkpoints"))
    source = env.from_dataframe(numbers(spark, 20_000), name="rows", records_per_second=5_000)
    source.key_by("seventh").process(CountPerKey, name="count").collect(name="counts")
    hold(env, gate := Gate(tmp_path))
    with SparkCluster(spark, task_managers=2) as cluster:
        first = cluster.submit(env)
        checkpoint = threading.Semaphore(0)
        first.on_event(lambda event: checkpoint.release() if isinstance(event, CheckpointCompleted) else None)
        assert checkpoint.acquire(timeout=WAIT_S)
        path = first.stop_with_savepoint().result(timeout=WAIT_S)
        first.wait(timeout=WAIT_S)
        gate.open()
        begun = cluster.ask_job_manager(RestartJob(first.job_id, path), WAIT_S * 1000).result(timeout=WAIT_S)
        second = cluster.handles[-1]
        assert second.job_id == begun.job_id
        second.wait(timeout=WAIT_S)
        found = second.results("counts")
    per_key = {key: len(range(key, 20_000, 7)) for key in range(7)}
    assert sorted(found) == sorted((key, n + 1) for key, rows in per_key.items() for n in range(rows))


def test_two_dataframes_divide_the_task_managers(spark: Any) -> None:
    env = StreamEnvironment()
    left = env.from_dataframe(spark.range(100), name="left")
    right = env.from_dataframe(spark.range(100, 200), name="right")
    left.union(right).map(lambda row: row.id).collect(name="ids")
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert sorted(job.results("ids")) == list(range(200))


def test_a_job_without_a_dataframe_runs_on_spark_too_and_the_session_stays_usable(spark: Any) -> None:
    with SparkCluster(spark, task_managers=1) as cluster:
        for _ in range(2):
            env = StreamEnvironment()
            env.from_collection(range(50)).map(lambda n: n + 1).collect(name="all")
            job = cluster.submit(env)
            job.wait(timeout=WAIT_S)
            assert sorted(job.results("all")) == list(range(1, 51))
    assert spark.range(10).count() == 10


def test_workers_are_forked_with_everything_imported(spark: Any) -> None:
    with SparkCluster(spark):
        loaded = spark.sparkContext.parallelize([0], 1).map(lambda _: sorted(sys.modules)).collect()[0]
    assert {"pandas", "pyarrow", "understudy.actors.tasks.task", "understudy.runtime.transport"} <= set(loaded)


def test_fewer_spark_slots_than_task_managers_are_refused_before_a_job_waits_for_them(spark: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"there are 2 \(master local\[2\]\).*task_managers=2"):
        SparkCluster(spark, task_managers=3).start()


def test_too_few_free_spark_slots_fail_with_how_many_are_needed_and_came(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time for slots is over when one TaskManager has registered, and it is known why the other one waits."""
    taken, given_back, looks = threading.Event(), threading.Event(), list[str]()

    def shortage(*args: Any) -> spark_slots.Shortage | None:
        short = spark_slots.shortage(*args)
        looks.append("" if short is None else short.why)
        return short

    monkeypatch.setattr(spark_slot_watch, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(spark_slot_watch, "shortage", shortage)

    def hold() -> None:
        with SparkCluster(spark, task_managers=1) as cluster:
            job = cluster.submit(endless())
            job.ready().result(timeout=WAIT_S)
            taken.set()
            given_back.wait(timeout=WAIT_S)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert taken.wait(timeout=WAIT_S)
        env = StreamEnvironment()
        env.from_collection(range(5), parallelism=2).print()
        with SparkCluster(spark, task_managers=2, slot_timeout_ms=slots.LONG_MS) as cluster:
            job = cluster.submit(env)
            slots.registered(cluster, job, 1)
            found = "2 of 2 slots are taken, 1 of them not by this job"
            eventually(lambda: sum(found in why for why in looks) > 1, "why the other one waits")
            slots.give_up(cluster, job)
            with pytest.raises(JobFailed, match=f"needs 2 slots, 1 are offered.*{found}"):
                job.wait(timeout=WAIT_S)
    finally:
        given_back.set()
        holder.join()


def test_spark_jobs_that_somebody_else_cancels_are_told_as_that(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As PySpark's handler of Ctrl-C does. It said that Understudy had cancelled it, because it was lost."""
    env = StreamEnvironment(checkpoint_interval_ms=100, restart_strategy=fixed_delay(5, 0))
    env.generate(lambda index: index, 10_000, records_per_second=2_000).collect(name="out")
    hold(env, gate := Gate(tmp_path))
    with SparkCluster(spark, task_managers=1) as cluster:
        job = cluster.submit(env)
        job.ready().result(timeout=WAIT_S)
        spark.sparkContext.cancelAllJobs()
        eventually(lambda: job.details().restarts == 1, "the loss of the cancelled TaskManager")
        gate.open()
        assert job.wait(timeout=WAIT_S).restarts == 1
        assert sorted(job.results("out")) == list(range(10_000))
    assert "was cancelled, and not by Understudy: Ctrl-C in a program with a SparkSession does it" in caplog.text
    assert "Understudy cancelled" not in caplog.text


def endless() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1)
    env.generate(lambda index: index, records_per_second=10).print()
    return env


def test_a_shuffle_is_computed_once(spark: Any) -> None:
    shuffled = spark.sparkContext.accumulator(0)

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            shuffled.add(len(batch))
            yield batch

    env = StreamEnvironment()
    with SparkCluster(spark, task_managers=2) as cluster:
        by_key = spark.range(0, 100, 1, 2).mapInArrow(counted, "id long").repartition(3, "id")
        env.from_dataframe(by_key.where("id % 10 = 0")).map(lambda row: row.id).collect(name="ids")
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert sorted(job.results("ids")) == list(range(0, 100, 10))
    assert shuffled.value == 100


@pytest.mark.parametrize("rows", ["id < 0", "false"], ids=["found out as it runs", "known before"])
def test_a_dataframe_without_rows_is_a_source_that_ends(spark: Any, rows: str) -> None:
    nothing = spark.range(100).where(rows).groupBy("id").count()
    env = StreamEnvironment()
    some = numbers(spark, 10).selectExpr("id", "id AS count")
    env.from_dataframe(nothing).union(env.from_dataframe(some)).collect(name="all")
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert len(job.results("all")) == 10


def test_columns_may_have_any_names(spark: Any) -> None:
    names = ["a.b", "the day", "ti`ck", "Day", "day", "ö"]
    env = StreamEnvironment()
    rows = env.from_dataframe(spark.range(1, 2).selectExpr(*["id"] * 6).toDF(*names))
    rows.map(lambda row: row.asdict()).collect(name="all")
    with SparkCluster(spark) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert job.results("all") == [dict.fromkeys(names, 1)]


def test_two_columns_of_one_name_are_refused_by_their_name(spark: Any) -> None:
    left = spark.range(10).alias("left")
    with pytest.raises(InvalidSetting, match="two columns have the name 'id'"):
        StreamEnvironment().from_dataframe(left.join(spark.range(10).alias("right"), F.expr("left.id = right.id")))


def test_a_type_that_arrow_has_not_is_refused_with_its_column(spark: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"column 'age'.*YearMonthIntervalType"):
        StreamEnvironment().from_dataframe(spark.sql("SELECT 1 AS id, INTERVAL '1' YEAR AS age"))


@pytest.mark.parametrize("column", ["{}", "array({})", "named_struct('a', map('b', {}))"])
def test_a_variant_is_refused_with_its_column_as_its_bytes_say_nothing(column: str, spark: Any) -> None:
    frame = spark.sql(f"""SELECT 1 AS id, {column.format("parse_json('[1]')")} AS said""")
    with pytest.raises(InvalidSetting, match=r"column 'said'.*Variant.*to_json\('said'\)"):
        StreamEnvironment().from_dataframe(frame)
    StreamEnvironment().from_dataframe(frame.withColumn("said", F.to_json("said")))


def test_what_is_no_session_is_refused(spark: Any) -> None:
    for wrong in ("local[2]", None, spark.sparkContext):
        with pytest.raises(InvalidSetting, match="wanted a classic SparkSession"):
            SparkCluster(wrong)  # type: ignore[arg-type]


def test_workers_get_no_daemon_that_the_interpreter_of_older_dataframes_does_not_find(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" -S "$@"\n')  # type: ignore[attr-defined]
    bare.chmod(0o755)
    settings = spark.sparkContext._jsc.sc().conf()
    before = settings.get(DAEMON_SETTING, "")
    try:
        settings.remove(DAEMON_SETTING)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
        preload_workers(spark)
        assert not settings.contains(DAEMON_SETTING)
        monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        preload_workers(spark)
        assert settings.get(DAEMON_SETTING) == DAEMON
    finally:
        settings.set(DAEMON_SETTING, before) if before else settings.remove(DAEMON_SETTING)


def test_a_partition_that_spark_computes_differently_is_refused(spark: Any, tmp_path: Path) -> None:
    def shaken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": [int.from_bytes(os.urandom(4), "big") for _ in range(len(batch))]})

    env = StreamEnvironment(checkpoint_interval_ms=200, restart_strategy=fixed_delay(1, 0))
    with SparkCluster(spark, task_managers=2) as cluster:
        # A Python function of Spark keeps the interpreter that was set when it was made: this one, since the start.
        frame = numbers(spark).select("id").mapInArrow(shaken, "id long")  # more rows than it will come to
        source = env.from_dataframe(frame, name="shaken", records_per_second=5_000)
        source.map(lambda row: row.id).collect(name="ids")
        hold(env, gate := Gate(tmp_path))
        job = cluster.submit(env)
        Killer(job, gate=gate)
        with pytest.raises(JobFailed, match="NonDeterministicSource"):
            job.wait(timeout=WAIT_S)


def test_a_dataframe_that_cannot_be_computed_ends_the_job_with_what_spark_says(spark: Any) -> None:
    """The first batch comes, and then the stream of rows ends as if there were no more."""
    env = StreamEnvironment(checkpoint_interval_ms=60_000, restart_strategy=fixed_delay(100, 0))
    rows = spark.range(0, 20_000, 1, 1).selectExpr("id", "1 / (id - 15000) AS inverse")
    env.from_dataframe(rows).map(lambda row: row.id).collect(name="all")
    with SparkCluster(spark) as cluster:
        job = cluster.submit(env)
        with pytest.raises(JobFailed, match=r"failed 5 times.*Spark cannot compute the DataFrame: \[DIVIDE_BY_ZERO\]"):
            job.wait(timeout=WAIT_S)


def test_a_failing_function_is_told_with_its_place_and_traceback(spark: Any) -> None:
    def divide(row: Any) -> float:
        return 1 / (row.id - 500)

    env = StreamEnvironment()
    env.from_dataframe(spark.range(0, 1000, 1, 2)).map(divide, name="divide").collect(name="all")
    with SparkCluster(spark, task_managers=2) as cluster:
        job = cluster.submit(env, name="reciprocals")
        with pytest.raises(JobFailed) as failed:
            job.wait(timeout=WAIT_S)
    told = str(failed.value)
    for part in ("reciprocals", "'divide'", "subtask 1", "attempt 0", "record 0", "ZeroDivisionError", "row.id - 500"):
        assert part in told, told
    assert job.status is JobStatus.FAILED


def test_what_user_code_prints_and_logs_is_with_the_user_by_the_end_of_the_job(
    spark: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def talk(row: Any) -> int:
        print("seen", row.id)
        if row.id % 1000 == 0:
            print("oh", row.id, file=sys.stderr)
            logging.getLogger("myapp").warning("at %d", row.id)
            logging.getLogger("myapp").info("never")
        return int(row.id)

    env = StreamEnvironment()
    env.from_dataframe(numbers(spark, 10_000), read_files=False, parallelism=2).map(talk, name="talk").print("out ")
    with SparkCluster(spark, task_managers=2) as cluster:
        cluster.submit(env, name="talkative").wait(timeout=WAIT_S)
        printed = capsys.readouterr()
        records: list[Any] = [record for record in caplog.records if record.name == "myapp"]
    lines = printed.out.splitlines()
    assert sorted(line for line in lines if "seen" in line) == sorted(f"seen {number}" for number in range(10_000))
    assert len([line for line in lines if "> out " in line]) == 10_000
    assert sorted(printed.err.splitlines()) == sorted(f"oh {number}" for number in range(0, 10_000, 1000))
    assert sorted(record.getMessage() for record in records) == sorted(f"at {n}" for n in range(0, 10_000, 1000))
    assert {(record.operator, record.job_name) for record in records} == {("talk", "talkative")}
    assert {record.subtask for record in records} == {0, 1}
