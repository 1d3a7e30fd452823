"""What the log advises of late records: only what the operator that had them has."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import Collector, Count, KeyedOperator, StreamEnvironment, monotonous, tumbling
from understudy.runtime.api.stream import DataStream
from understudy.testing import SimulatedCluster

NOON = 1_700_000_000_000
BOUND = "Let watermarks wait for longer (the bound in assign_timestamps)"


class CountsItsOwn(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        self.late_records += int(self.timestamp <= self.watermark)


@pytest.mark.parametrize(
    ("end", "advice"),
    [
        (lambda a, b: a.interval_join(b(), 0, 700_000), f"{BOUND}, or read them with `.late` and `.late_right`; the"),
        (lambda a, b: a.window_join(b(), tumbling(minutes=1)), f"{BOUND}, or read them with `.late`"),
        (lambda a, b: a.temporal_join(b()), f"{BOUND}, or read them with `.late`; the"),
        (lambda a, b: a.deduplicate(minutes=1), f"{BOUND}, or read them with `.late`; the"),
        (
            lambda a, b: a.co_group(b(), tumbling(minutes=1), lambda key, window, left, right, out: None),
            f"{BOUND}, or read them with `.late`; the",
        ),
        (
            lambda a, b: a.window(tumbling(minutes=1)).aggregate(n=Count()),
            f"{BOUND}, keep windows open for longer (.allowed_lateness), or read them with `.late`; the",
        ),
        (
            lambda a, b: a.window(tumbling(minutes=1)).reduce(lambda one, other: one),
            f"{BOUND}, keep windows open for longer (.allowed_lateness), or read them with `.late`; the",
        ),
        (lambda a, b: a.process(CountsItsOwn), f"{BOUND}; the metrics count them"),
    ],
)
@pytest.mark.parametrize("of_columns", [False, True])
def test_late_records_are_advised_of_what_their_operator_has(
    end: Callable[[Any, Any], DataStream], advice: str, of_columns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment(parallelism=1, batch_rows=1, buffer_timeout_ms=0)
    schema = pa.schema([("id", pa.int64()), ("at", pa.int64())])

    def stream(name: str, *times: int) -> DataStream:
        rows = [{"id": 1, "at": NOON + at} for at in times]
        given = env.from_collection(rows, name=name)
        if of_columns:
            given = given.map_batches(lambda batch: batch, schema=schema)
        return given.assign_timestamps("at", monotonous()).key_by("id")  # type: ignore[return-value]

    end(stream("left", 0, 600_000, 0), lambda: stream("right", *[600_000] * 9)).collect(name="out")
    with caplog.at_level(logging.WARNING), SimulatedCluster(2) as cluster:
        cluster.submit(env).wait(60)
    (said,) = (each for each in caplog.messages if "late records" in each)
    assert advice in said
