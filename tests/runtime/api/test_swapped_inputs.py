"""A job that goes on with the two inputs of an operator the other way round: submit says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy import Collector, DataStream, KeyedOperator, ListState, LocalCluster, StreamEnvironment, ValueState


class Both(KeyedOperator):
    inputs = 2
    left = ListState(object)
    right = ValueState(object)

    def process(self, record: Any, out: Collector) -> None:
        self.left.add(record)

    def process_2(self, record: Any, out: Collector) -> None:
        self.right.update(record)
        out.collect(record)


def keep(record: Any) -> bool:
    return True


def joined(left: DataStream, right: DataStream) -> DataStream:
    return left.key_by("id").join(right.key_by("id"), name="both")


def connected(left: DataStream, right: DataStream) -> DataStream:
    return left.key_by("id").connect(right.key_by("id")).process(Both, name="both")


def program(folder: Path, how: Any, *, swapped: bool, between: bool = False, order: bool = False) -> StreamEnvironment:
    """`between`: with an operator more before one side; `order`: sources are made in the other order."""
    env = StreamEnvironment(parallelism=1, checkpoint_dir=str(folder), checkpoint_interval_ms=100)

    def source(name: str) -> DataStream:
        return env.generate(lambda index: {"id": index % 3}, records_per_second=100, name=name)

    if order:
        prices, orders = source("prices"), source("orders")
    else:
        orders, prices = source("orders"), source("prices")
    if between:
        orders = orders.filter(keep, name="kept").rebalance()
    both = how(prices, orders) if swapped else how(orders, prices)
    both.collect(name="out")
    return env


def notes(folder: Path, how: Any, **now: bool) -> list[str]:
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(program(folder, how, swapped=False), "job")
        job.ready().result(timeout=60)
        while not job.results("out"):
            job.trigger_checkpoint().result(timeout=60)
        path = job.stop_with_savepoint(folder / "savepoints").result(timeout=60)
        after = cluster.submit(program(folder, how, **now), "job", from_savepoint=path)  # type: ignore[arg-type]
        found = list(after.submitted.restore_notes)
        after.cancel()
    return [each for each in found if "input" in each]


@pytest.mark.parametrize("how", [joined, connected])
@pytest.mark.parametrize("between", [False, True])
def test_inputs_that_have_changed_sides_are_named(how: Any, between: bool, tmp_path: Path) -> None:
    (note,) = notes(tmp_path, how, swapped=True, between=between)
    assert note.startswith(
        "operator 'both': its left input has 'prices', and its right one 'orders'; in the savepoint it is the other "
        "way round"
    )


@pytest.mark.parametrize("how", [joined, connected])
@pytest.mark.parametrize("now", [{}, {"between": True}, {"order": True}], ids=["the same", "one more", "other order"])
def test_inputs_that_are_on_their_sides_are_not(how: Any, now: dict[str, bool], tmp_path: Path) -> None:
    assert notes(tmp_path, how, swapped=False, **now) == []
