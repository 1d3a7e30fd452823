"""Which records are late does not depend on batches, over columns as little as per record."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from understudy import Count, StreamEnvironment, bounded_out_of_orderness, tumbling
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
