"""Which records are late does not depend on batches, over columns as little as per record."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    Count,
    OutputTag,
    StreamEnvironment,
    Sum,
    bounded_out_of_orderness,
    session,
    sliding,
    tumbling,
)
from understudy.testing import SimulatedCluster

SCHEMA = pa.schema({"k": pa.string(), "v": pa.int64(), "at": pa.int64()})


def rows() -> list[dict[str, Any]]:
    chance = random.Random(5)
    return [{"k": chance.choice("ab"), "v": n, "at": n * 10 + chance.randint(-50, 50)} for n in range(120)]


def run(batch_rows: int, columnar: bool, reads_late: bool) -> tuple[list[Any], int]:
    """The windows, and the number of late records."""
    env = StreamEnvironment(parallelism=1, batch_rows=batch_rows, buffer_timeout_ms=0)
    stream = env.from_collection(rows())
    if columnar:
        stream = stream.map_batches(lambda batch: batch, schema=SCHEMA)
    timed = stream.assign_timestamps("at", bounded_out_of_orderness(10))
    counted = timed.key_by("k").window(tumbling(100)).aggregate(n=Count())
    counted.map(lambda row: (row["k"], row["window_start"], row["n"])).collect(name="windows")
    if reads_late:
        counted.late.collect(name="late")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        late = len(job.results("late")) if reads_late else 0
        return sorted((key, int(start), n) for key, start, n in job.results("windows")), late


@pytest.mark.parametrize("reads_late", [True, False])
def test_columns_and_records_have_the_same_windows_however_the_stream_is_cut(reads_late: bool) -> None:
    expected = run(1, False, reads_late)
    assert expected[1] > 5 or not reads_late
    for batch_rows in (1, 7, 1000):
        assert run(batch_rows, True, reads_late) == expected
    assert run(1000, False, reads_late) == expected


def run_windows(assigner: Any, lateness_ms: int, batch_rows: int, columnar: bool, reads_late: bool) -> Any:
    env = StreamEnvironment(parallelism=1, batch_rows=batch_rows, buffer_timeout_ms=0)
    stream = env.from_collection(rows())
    if columnar:
        stream = stream.map_batches(lambda batch: batch, schema=SCHEMA)
    timed = stream.assign_timestamps("at", bounded_out_of_orderness(10))
    counted = timed.key_by("k").window(assigner).allowed_lateness(lateness_ms).aggregate(n=Count(), v=Sum("v"))
    counted.map(tuple).collect(name="windows")
    if reads_late:
        counted.late.map(lambda row: row["v"]).collect(name="late")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        late = sorted(job.results("late")) if reads_late else []
        last = {row[:3]: row[3:] for row in job.results("windows")}  # with lateness: what a window came to
        return last, late


@pytest.mark.filterwarnings("ignore:sliding")
@pytest.mark.parametrize("reads_late", [True, False])
def test_windows_with_gaps_too(reads_late: bool) -> None:
    expected = run_windows(sliding(30, 70), 0, 1, False, reads_late)
    for batch_rows in (1, 7, 1000):
        assert run_windows(sliding(30, 70), 0, batch_rows, True, reads_late) == expected, batch_rows


@pytest.mark.parametrize("lateness_ms", [0, 20])
def test_and_sessions(lateness_ms: int) -> None:
    """Which records are late; whether two sessions that only touch are one depends on when the first has fired."""
    _, late = run_windows(session(35), lateness_ms, 1, False, True)
    assert len(late) > 0
    for batch_rows in (1, 7, 1000):
        by_record, by_columns = (run_windows(session(35), lateness_ms, batch_rows, way, True) for way in (False, True))
        assert by_record[1] == by_columns[1] == late
        assert by_record[0] == by_columns[0] or lateness_ms


def run_join(batch_rows: int, columnar: bool) -> Any:
    env = StreamEnvironment(parallelism=1, batch_rows=batch_rows, buffer_timeout_ms=0)

    def side(name: str) -> Any:
        stream = env.from_collection(rows(), name=name)
        if columnar:
            stream = stream.map_batches(lambda batch: batch, schema=SCHEMA)
        return stream.assign_timestamps("at", bounded_out_of_orderness(10)).key_by("k")

    joined = side("left").window_join(side("right"), tumbling(100))
    joined.map(lambda row: (row["v"], row["v_right"])).collect(name="pairs")
    joined.late.map(lambda row: row["v"]).collect(name="late")
    joined.side_output(OutputTag("late-right")).map(lambda row: row["v"]).collect(name="late right")
    with SimulatedCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        return [sorted(job.results(name)) for name in ("pairs", "late", "late right")]


def test_and_window_joins() -> None:
    expected = run_join(1, True)
    assert len(expected[1]) > 1
    for batch_rows in (7, 1000):
        assert run_join(batch_rows, True) == expected
