"""Over columns and record by record the same comes out, or the same error: NaN keys, sums beyond 64 bits, null keys."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from understudy import Avg, Count, JobFailed, StreamEnvironment, Sum, bounded_out_of_orderness, tumbling
from understudy.testing import SimulatedCluster

SCHEMA = pa.schema({"k": pa.float64(), "n": pa.int64(), "at": pa.int64()})

BOTH_WAYS = pytest.mark.parametrize("columnar", [True, False])


def windows_of(rows: list[dict[str, Any]], columnar: bool, **aggregates: Any) -> list[Any]:
    env = StreamEnvironment(parallelism=2, batch_rows=2, buffer_timeout_ms=0)
    stream = env.from_collection(rows)
    if columnar:
        stream = stream.map_batches(lambda batch: batch, schema=SCHEMA)
    timed = stream.assign_timestamps("at", bounded_out_of_orderness(10))
    timed.key_by("k").window(tumbling(100)).aggregate(**aggregates).map(tuple).collect(name="windows")
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(env)
        job.wait()
        return list(job.results("windows"))


def rows(*numbers: int, key: float | None = 1.0) -> list[dict[str, Any]]:
    return [{"k": key, "n": number, "at": at} for at, number in enumerate(numbers)]


@BOTH_WAYS
def test_all_nans_are_one_key(columnar: bool) -> None:
    nans = [{"k": float("nan"), "n": n, "at": 10 * n} for n in range(5)]
    ((key, _, _, number, total),) = windows_of(nans, columnar, number=Count(), total=Sum("n"))
    assert math.isnan(key)
    assert (number, total) == (5, 10)


@BOTH_WAYS
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_beyond_64_bits_is_an_error(columnar: bool, sign: int) -> None:
    half = 2**62 * sign
    beyond = 2 * half if sign > 0 else 2 * half - 1
    with pytest.raises(JobFailed) as failed:
        windows_of(rows(half, half, min(sign, 0)), columnar, total=Avg("n"))
    assert "sum(n): the sum of a key would be" in str(failed.value), failed.value
    assert "64 bits" in str(failed.value)
    assert str(abs(beyond))[:15] in str(failed.value)


@BOTH_WAYS
def test_a_sum_that_just_fits_is_right(columnar: bool) -> None:
    assert windows_of(rows(2**62, -1, 2**62), columnar, total=Sum("n")) == [(1.0, 0, 100, 2**63 - 1)]
    assert windows_of(rows(-(2**62), -(2**62)), columnar, total=Sum("n")) == [(1.0, 0, 100, -(2**63))]


@BOTH_WAYS
def test_a_key_that_is_null_is_the_same_error(columnar: bool) -> None:
    with pytest.raises(JobFailed, match=r"key column 'k' is None at record 0 of the batch.*; every record"):
        windows_of(rows(1, key=None), columnar, total=Sum("n"))
