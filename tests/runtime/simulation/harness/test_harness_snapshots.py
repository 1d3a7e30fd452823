"""OperatorHarness: snapshots, restores at another parallelism, and sinks whose output waits for them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy import Collector, Count, FileSink, KeyedOperator, Sum, ValueState
from understudy.actors.operators.aggregate import ColumnarAggregate
from understudy.runtime.connectors import CollectSink, read_collected
from understudy.runtime.simulation.harness.harness import HarnessMisused, HarnessSnapshot, OperatorHarness
from understudy.runtime.simulation.harness.survival import assert_survives_restore
from understudy.state import StateIncompatible

from .harness_operators import LETTERS, Buffering, EveryKind, Join, RunningTotal

BACKENDS = ("memory", "filesystem", "rocksdb")


@pytest.mark.parametrize("backend", BACKENDS)
class TestCheckpoints:
    def test_state_is_as_it_was_at_the_barrier(self, backend: str) -> None:
        with OperatorHarness(RunningTotal, key_by=0, state_backend=backend) as harness:
            harness.process([("a", 1), ("b", 2)])
            write = harness.begin_snapshot()
            harness.process([("a", 10)])
            snapshot = write()
            harness.crash()
        assert snapshot.checkpoint_id == 1
        assert snapshot.size_bytes > 0
        assert bool(snapshot.files) == (backend != "memory")
        kept: HarnessSnapshot = pickle.loads(pickle.dumps(snapshot))
        with harness.restored(kept) as after:
            after.process([("a", 1), ("b", 1)])
            assert after.output() == [("a", 2), ("b", 3)]

    def test_every_kind_of_state_survives(self, backend: str) -> None:
        assert_survives_restore(EveryKind, LETTERS, key_by=0, state_backend=backend)
        assert_survives_restore(RunningTotal, LETTERS, key_by=0, state_backend=backend)
        assert_survives_restore(Buffering, [[1], [2, 3], [4, 5], [6, 7]], state_backend=backend)
        said = (1, [{"name": "a", "says": "x"}])
        assert_survives_restore(Join, [[("a", 1)], said, [("a", 2)]], key_by=0, key_by_2="name", state_backend=backend)

    def test_rescaled_to_two_and_back_to_one(self, backend: str) -> None:
        keys = [f"key {number}" for number in range(20)]
        records = [(key, 1) for key in keys]
        with OperatorHarness(RunningTotal, key_by=0, state_backend=backend) as one:
            one.process(records)
            whole = one.snapshot()
        two = [one.restored(whole, parallelism=2, subtask_index=index) for index in range(2)]
        for half in two:
            half.process(half.share_of(records))
        assert sorted(two[0].output() + two[1].output()) == sorted((key, 2) for key in keys)
        assert 0 < len(two[0].output()) < 20
        halves = [half.snapshot() for half in two]
        for half in two:
            half.close()
        with two[0].restored(halves, parallelism=1) as again:
            again.process(records)
            assert sorted(again.output()) == sorted((key, 3) for key in keys)

    def test_a_columnar_aggregate_survives(self, backend: str) -> None:
        batches = [
            pa.RecordBatch.from_pydict({"airport": [key, "JFK"], "miles": [number, 10]})
            for number, key in enumerate(("LGA", "JFK", "EWR"))
        ]
        operator = ColumnarAggregate(["airport"], {"flights": Count(), "miles": Sum("miles")})
        assert_survives_restore(operator, batches, state_backend=backend)
        ending = ColumnarAggregate(["airport"], {"flights": Count(), "miles": Sum("miles")}, "end")
        assert_survives_restore(ending, batches, state_backend=backend, ordered=False)

    def test_newer_code_restores_an_older_ones_snapshot(self, backend: str) -> None:
        class RunningTotal2(KeyedOperator):
            total = ValueState(int, default=0)
            last = ValueState(int, default=-1)

            def process(self, record: Any, out: Collector) -> None:
                out.collect((self.total.value(), self.last.value()))

        class TotalOfText(KeyedOperator):
            total = ValueState(str, default="")

            def process(self, record: Any, out: Collector) -> None:
                pass

        with OperatorHarness(RunningTotal, key_by=0, state_backend=backend) as harness:
            harness.process([("a", 5)])
            snapshot = harness.snapshot()
        with OperatorHarness(RunningTotal2, key_by=0, state_backend=backend, restore_from=snapshot) as newer:
            newer.process([("a", 1)])
            assert newer.output() == [(5, -1)]
            assert newer.operator.context.attempt_number == 1
        with pytest.raises(StateIncompatible, match="total"):
            OperatorHarness(TotalOfText, key_by=0, state_backend=backend, restore_from=snapshot)


class TestSinks:
    def test_a_file_appears_only_when_its_checkpoint_is_complete(self, tmp_path: Path) -> None:
        with OperatorHarness(FileSink(str(tmp_path))) as harness:
            harness.process([{"n": 1}])
            snapshot = harness.snapshot()
            assert visible(tmp_path) == []
            harness.complete(snapshot)
            assert visible(tmp_path) == [1]

    def test_a_crash_after_the_snapshot_loses_nothing_and_repeats_nothing(self, tmp_path: Path) -> None:
        with OperatorHarness(FileSink(str(tmp_path))) as harness:
            harness.process([{"n": 1}])
            snapshot = harness.snapshot()
            harness.process([{"n": 2}])
            harness.crash()
        assert visible(tmp_path) == []
        with harness.restored(snapshot) as after:
            assert visible(tmp_path) == [1]
            after.process([{"n": 2}])
            after.complete(after.snapshot())
            assert visible(tmp_path) == [1, 2]

    def test_a_job_that_goes_back_takes_its_files_back(self, tmp_path: Path) -> None:
        with OperatorHarness(CollectSink(str(tmp_path))) as harness:
            harness.process([1])
            first = harness.snapshot()
            harness.complete(first)
            harness.process([2])
            harness.complete(harness.snapshot())
            assert read_collected(str(tmp_path)) == [1, 2]
            harness.crash()
        with harness.restored(first):
            assert read_collected(str(tmp_path)) == [1]

    def test_a_sink_is_not_compared_by_an_output_of_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(HarnessMisused, match="nothing to compare"):
            assert_survives_restore(CollectSink(str(tmp_path)), [[1]])


def visible(directory: Path) -> list[int]:
    """The numbers in the files that a reader sees."""
    files = [path for path in directory.glob("*.parquet") if not path.name.startswith(".")]
    return sorted(row["n"] for path in files for row in pq.read_table(path).to_pylist())
