"""A job of windows commits the same under faults, restores and rescales as without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    Count,
    Max,
    StreamEnvironment,
    any_of,
    bounded_out_of_orderness,
    count,
    event_time,
    session,
    sliding,
    tumbling,
)
from understudy.testing import assert_exactly_once


def numbers(key: Any, window: Any, records: Sequence[Any], out: Any) -> None:
    out.collect((key, tuple(window), sorted(record[2] for record in records)))


def windows_of_all_kinds() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    records = [("abcde"[n * 7 % 5], n * 137 - n % 7 * 200, n) for n in range(200)]
    timed = env.from_collection(records).assign_timestamps(lambda record: record[1], bounded_out_of_orderness(1500))
    keyed = timed.key_by(0)
    keyed.window(session(ms=900)).allowed_lateness(ms=300).retracting().process(numbers).collect(name="sessions")
    early = keyed.window(sliding(2000, 500)).trigger(any_of(event_time(), count(2))).discarding()
    early.process(numbers).collect(name="early")
    keyed.window(tumbling(seconds=3)).aggregate(n=Count(), most=Max("_3")).collect(name="rows")
    return env


COLUMNS = pa.schema({"key": pa.string(), "at": pa.int64(), "n": pa.int64()})


def whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def windows_of_columns() -> StreamEnvironment:
    """In two phases, in one because late records are wanted, and sessions."""
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    records = [{"key": "abcde"[n * 7 % 5], "at": n * 137 - n % 7 * 200, "n": n} for n in range(200)]
    rows = env.from_collection(records, records_per_second=40).map_batches(whole, schema=COLUMNS)
    keyed = rows.assign_timestamps("at", bounded_out_of_orderness(500)).key_by("key")
    totals = {"n": Count(), "most": Max("n")}
    keyed.window(sliding(2000, 500)).allowed_lateness(ms=300).aggregate(**totals).collect(name="sliding")
    tumbled = keyed.window(tumbling(seconds=3)).aggregate(**totals)
    tumbled.collect(name="tumbling")
    tumbled.late.collect(name="late")
    keyed.window(session(ms=900)).aggregate(**totals).collect(name="sessions")
    return env


@pytest.mark.slow
def test_windows_of_columns_survive_faults_and_rescales() -> None:
    survived = assert_exactly_once(windows_of_columns, histories=6)
    assert "survived 6 histories" in str(survived)


@pytest.mark.slow
def test_windows_survive_faults_and_rescales() -> None:
    survived = assert_exactly_once(windows_of_all_kinds, histories=6)
    assert "survived 6 histories" in str(survived)
