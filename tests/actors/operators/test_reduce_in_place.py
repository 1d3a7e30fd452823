"""A function of `reduce` may change its first argument in place: what was emitted, and what others hold, stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from understudy import (
    Collector,
    KeyedOperator,
    LocalCluster,
    ReducingState,
    StreamEnvironment,
    bounded_out_of_orderness,
    count,
    sliding,
)
from understudy.actors.operators.reduce import KeyedReduce
from understudy.testing import OperatorHarness


@dataclass
class Total:
    n: int


def grow(total: Any, record: Any) -> Any:
    if isinstance(total, Total):
        total.n += record.n
    elif isinstance(total, list):
        total[0] += record[0]
    else:
        total["n"] += record["n"]
    return total


def newer_or_grown(total: Any, record: Any) -> Any:
    """It gives now the one argument, and now the other, changed."""
    return record if record["n"] == 5 else grow(total, record)


@pytest.mark.parametrize("make", [lambda n: {"n": n}, lambda n: [n], Total])
def test_each_result_is_its_own(make: Any) -> None:
    records = [make(1) for _ in range(3)]
    with OperatorHarness(KeyedReduce(grow), key_by=lambda _: 1) as harness:
        harness.process(records)
        assert harness.output() == [make(1), make(2), make(3)]
    assert records == [make(1)] * 3


def test_whichever_argument_it_gives() -> None:
    with OperatorHarness(KeyedReduce(newer_or_grown), key_by=lambda _: 1) as harness:
        harness.process([{"n": n} for n in (1, 2, 5, 2, 2)])
        assert [each["n"] for each in harness.output()] == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("function", [grow, lambda total, record: {"n": total["n"] + record["n"]}])
def test_who_changes_a_result_changes_no_total(function: Any) -> None:
    with OperatorHarness(KeyedReduce(function), key_by=lambda _: 1) as harness:
        found = []
        for _ in range(3):
            harness.process([{"n": 1}])
            (result,) = harness.output()[-1:]
            found.append(result["n"])
            result["n"] = 100
        assert found == [1, 2, 3]


class Sums(KeyedOperator):
    total: ReducingState[Any] = ReducingState(object, grow)

    def process(self, record: Any, out: Collector) -> None:
        self.total.add(record)

    def on_end(self, out: Collector) -> None:
        for _ in self.keys():
            out.collect(self.total.get())


@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_a_reducing_state_changes_no_record(backend: str) -> None:
    records: list[Any] = [{"n": 1}, {"n": 1}, {"n": 1}]
    with OperatorHarness(Sums(), key_by=lambda _: 1, state_backend=backend) as harness:
        harness.process(records)
        harness.end()
        assert harness.output() == [{"n": 3}]
    assert records == [{"n": 1}] * 3


@pytest.mark.processes
@pytest.mark.usefixtures("forked_templates")
@pytest.mark.parametrize("debug", [False, True])
def test_windows_that_overlap_share_no_total(debug: bool) -> None:
    """Each record is the first of one window and a later one of another; each window fires as records come."""
    env = StreamEnvironment()
    records = [{"n": 1, "t": second * 1_000} for second in range(4)]
    timed = env.from_collection(records).assign_timestamps("t", bounded_out_of_orderness(0))
    windows = timed.map(dict).key_by(lambda _: 1).window(sliding(2_000, 1_000))
    windows.trigger(count(1)).reduce(grow).map(lambda total: total["n"]).collect(name="out")
    with LocalCluster(task_managers=1, debug=debug) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert sorted(job.results("out")) == [1, 1, 1, 1, 1, 2, 2, 2]
