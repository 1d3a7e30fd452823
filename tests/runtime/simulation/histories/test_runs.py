"""Joins, windows and sessions whose checkpoints are increments: exactly once, in histories of faults and rescales."""

from __future__ import annotations

import pyarrow as pa
import pytest

from understudy import Count, Max, StreamEnvironment, bounded_out_of_orderness, session, sliding
from understudy.testing import assert_exactly_once

KEYS, COUNT = 40, 240
LEFT = pa.schema({"key": pa.int64(), "at": pa.int64(), "n": pa.int64()})
RIGHT = pa.schema({"id": pa.int64(), "name": pa.string()})


def rows(start: int, count: int) -> pa.RecordBatch:
    """All keys at first; then a few, again and again."""
    numbers = range(start, start + count)
    keys = [n if n < KEYS else n * 7 % 5 for n in numbers]
    times = [n * 50 - n % 3 * 40 for n in numbers]
    return pa.RecordBatch.from_pydict({"key": keys, "at": times, "n": list(numbers)}, LEFT)


def names(start: int, count: int) -> pa.RecordBatch:
    numbers = range(start, start + count)
    ids = [n if n < KEYS else n % 3 for n in numbers]
    return pa.RecordBatch.from_pydict({"id": ids, "name": [f"name {n}" for n in numbers]}, RIGHT)


def build() -> StreamEnvironment:
    env = StreamEnvironment(
        parallelism=2, checkpoint_interval_ms=300, batch_rows=6, incremental_checkpoints=True, retained_checkpoints=2
    )
    numbered = env.generate(rows, COUNT, name="numbers", records_per_second=60, parallelism=1)
    named = env.generate(names, COUNT // 4, name="names", records_per_second=20, parallelism=1)
    keyed = numbered.key_by("key")
    keyed.join(named.key_by("id")).collect(name="joined")
    timed = numbered.assign_timestamps("at", bounded_out_of_orderness(100)).key_by("key")
    timed.window(sliding(6_000, 2_000)).aggregate(n=Count(), most=Max("n")).collect(name="windows")
    timed.window(session(ms=9_000)).aggregate(n=Count(), most=Max("n")).collect(name="sessions")
    timed.top_n(2, by="n").collect(name="newest")
    return env


@pytest.mark.drawn
def test_joins_windows_and_sessions_are_exact_with_incremental_checkpoints() -> None:
    survived = assert_exactly_once(build, histories=4)
    assert survived.recoveries > 0
