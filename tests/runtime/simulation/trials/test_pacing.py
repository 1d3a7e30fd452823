"""Pacing: where the batches of slowed sources end, and how long a job lasts by that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import Collector, KeyedOperator, Operator, StreamEnvironment, ValueState
from understudy.testing import KillProcess, TransactionalLog, assert_exactly_once


def _env() -> StreamEnvironment:
    return StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)


class Pairs(KeyedOperator):
    """Keeps the first of three records for the second: in an attribute."""

    held = -1

    def process(self, record: int, out: Collector) -> None:
        if record % 3 == 0:
            self.held = record
        elif record % 3 == 1:
            out.collect((self.held, record))
            self.held = -1


class PairsInState(KeyedOperator):
    held = ValueState(int, default=-1)

    def process(self, record: int, out: Collector) -> None:
        if record % 3 == 0:
            self.held.update(record)
        elif record % 3 == 1:
            out.collect((self.held.value(), record))


def _pairs(operator: type[KeyedOperator]) -> StreamEnvironment:
    """90 records, which an even source divides into batches of three."""
    env = _env()
    env.from_collection(range(90)).key_by(lambda number: 0).process(operator).collect(name="pairs")
    return env


def test_what_is_wrong_between_two_records_of_a_batch_is_found() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(lambda: _pairs(Pairs), histories=100)
    assert "attribute 'held' of Pairs is not declared as state" in str(caught.value)
    assert_exactly_once(lambda: _pairs(PairsInState), histories=10)


class Sizes(Operator):
    """Tells the outside how large each batch is."""

    def process_batch(self, batch: Any, out: Collector) -> None:
        TransactionalLog("sizes").write([len(batch)])
        out.emit(batch)


class SizesAlone(Operator):
    def process_batch(self, batch: Any, out: Collector) -> None:
        out.collect(len(batch))


def _columns(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": range(start, start + count)})


_SOURCES: list[Callable[[StreamEnvironment], Any]] = [
    lambda env: env.from_collection(range(120)),
    lambda env: env.generate(lambda index: index, count=120),
    lambda env: env.generate(_columns, count=120),
]


@pytest.mark.parametrize("source", _SOURCES, ids=["collection", "generated", "columns"])
def test_batches_end_elsewhere_in_each_history_and_again_after_a_failure(source: Callable[..., Any]) -> None:
    seen: list[tuple[int, ...]] = []

    def build() -> StreamEnvironment:
        env = _env()
        source(env).process(Sizes).collect(name="out")
        return env

    def sizes() -> list[int]:
        seen.append(tuple(TransactionalLog("sizes").committed()))
        return []

    survived = assert_exactly_once(
        build, faults=[KillProcess(3_300, 0)], histories=4, outside={"sizes": sizes}, task_managers=1
    )
    assert survived.recoveries == 4
    assert 5 <= survived.checkpoints / 4 <= 20  # as many as at the even pace, about
    histories = seen[-4:]
    assert len(set(histories)) == 4
    assert all(len(set(each)) > 1 for each in histories)


def test_batches_of_a_job_that_depends_on_them_stay_even() -> None:
    def build() -> StreamEnvironment:
        env = _env()
        env.from_collection(range(120)).process(SizesAlone).collect(name="sizes")
        return env

    survived = assert_exactly_once(build, histories=2)
    assert survived.in_batches
