"""A compiled operator in simulated failures: exactly once, and one seed is one history, whatever compiling takes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from understudy import KeyedOperator, StreamEnvironment, ValueState, bounded_out_of_orderness
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.timers import KeyedTimer
from understudy.testing import assert_exactly_once

pytest.importorskip("numba")

KEYS, COUNT = 5, 60
HISTORIES = 4


class Numbering(KeyedOperator):
    """Numbers the records of each key, from 1, and forgets every key after its seventh."""

    compiled = True
    seen = ValueState(tuple, default=(0, 0))
    open_since = ValueState(int, default=-1)

    def process(self, record: Any, out: Collector) -> None:
        number, turn = self.seen.value()
        if number == 7:
            self.seen.clear()
            self.open_since.clear()
            number, turn = 0, turn + 1
        if self.open_since.value() < 0:
            self.open_since.update(number)
        number += 1
        self.seen.update((number, turn))
        out.collect((self.key, number + self.open_since.value(), turn))


def rows(start: int, count: int) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.record_batch({"key": [f"key {each % KEYS}" for each in numbers], "number": pa.array(numbers, pa.int64())})


def build(*, incremental: bool = False) -> StreamEnvironment:
    env = StreamEnvironment(
        parallelism=2, checkpoint_interval_ms=1_000, batch_rows=4, incremental_checkpoints=incremental
    )
    source = env.generate(rows, COUNT, name="rows")
    source.key_by("key").process(Numbering, name="count").collect(name="out")
    return env


def expected() -> list[tuple[str, int, int]]:
    each = [(number % 7 + 1, number // 7) for number in range(COUNT // KEYS)]
    return [(f"key {key}", number, turn) for key in range(KEYS) for number, turn in each]


def test_output_is_exact_with_incremental_checkpoints() -> None:
    survived = assert_exactly_once(partial(build, incremental=True), expected=expected(), histories=HISTORIES)
    assert survived.recoveries > 0


def test_output_is_exact_in_histories_of_faults_and_the_same_seeds_are_the_same_histories() -> None:
    survived = assert_exactly_once(build, expected=expected(), histories=HISTORIES)
    assert survived.recoveries > 0
    assert assert_exactly_once(build, expected=expected(), histories=HISTORIES) == survived


class Spans(KeyedOperator):
    """Numbers the spans of 10 ms in which a key has records, and says in each when the next one is."""

    compiled = True
    number = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.timers.at_event_time(self.timestamp - self.timestamp % 10 + 9)

    def on_timer(self, timer: KeyedTimer, out: Collector) -> None:
        number = self.number.value() + 1
        self.number.update(number)
        out.collect((self.key, number, timer.time_ms))


def build_timed() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000, batch_rows=4, incremental_checkpoints=True)
    timed = env.generate(rows, COUNT, name="rows").assign_timestamps("number", bounded_out_of_orderness(8))
    timed.key_by("key").process(Spans, name="spans").collect(name="out")
    return env


def expected_spans() -> list[tuple[str, int, int]]:
    ends = {(number % KEYS, number - number % 10 + 9) for number in range(COUNT)}
    return [
        (f"key {key}", number, end)
        for key in range(KEYS)
        for number, end in enumerate(sorted(end for each, end in ends if each == key), 1)
    ]


def test_each_timer_fires_once_in_histories_of_faults() -> None:
    survived = assert_exactly_once(build_timed, expected=expected_spans(), histories=2 * HISTORIES)
    assert survived.recoveries > 0
