"""A job of windows commits the same under faults, restores and rescales as without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


@pytest.mark.slow
def test_windows_survive_faults_and_rescales() -> None:
    survived = assert_exactly_once(windows_of_all_kinds, histories=6)
    assert "survived 6 histories" in str(survived)
