"""A Committer commits for all its writers, once per checkpoint, on a simulated cluster and by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from understudy import CommittableWriter, Committer, StreamEnvironment
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness, SimulatedCluster

from .ledger_store import LEDGERS, Ledger


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    LEDGERS["it"] = Ledger()
    yield LEDGERS["it"]
    del LEDGERS["it"]


class Writer(CommittableWriter):
    def open(self) -> None:
        self.rows: list[Any] = []

    def write(self, batch: Any) -> None:
        self.rows += batch

    def finish(self) -> Sequence[Any]:
        rows, self.rows = self.rows, []
        return [rows] if rows else []


class IntoLedger(Committer):
    def commit(self, committables: list[Any], marker: Any) -> None:
        LEDGERS["it"].act(committables, marker)

    def last_marker(self, writer: str) -> int | None:
        return LEDGERS["it"].read(writer)


class Merging(IntoLedger):
    def merge(self, committables: list[Any]) -> list[Any]:
        return [[row for rows in committables for row in rows]]


def test_committables_leave_before_the_barrier_and_at_the_end(ledger: Ledger) -> None:
    with OperatorHarness(Writer()) as writer:
        writer.process([1])
        writer.process([2])
        assert writer.output() == []
        writer.snapshot()
        assert writer.take_output() == [[1, 2]]
        writer.snapshot()
        assert writer.take_output() == []
        writer.process([3])
        writer.end()
        assert writer.take_output() == [[3]]


def test_all_are_committed_in_one_act(ledger: Ledger) -> None:
    with OperatorHarness(IntoLedger()) as committer:
        committer.process([[1], [2]])
        committer.process([[3]])
        committer.complete(committer.snapshot())
    assert ledger.rows == [[1], [2], [3]]
    assert len(ledger.acts) == 1


def test_small_ones_may_be_merged_before_anybody_sees_them(ledger: Ledger) -> None:
    with OperatorHarness(Merging()) as committer:
        committer.process([[1], [2]])
        committer.process([[3]])
        first = committer.snapshot()
        committer.crash()
        with committer.restored(first):
            assert ledger.rows == [[1, 2, 3]]


def test_two_committers_are_refused(ledger: Ledger) -> None:
    with pytest.raises(UserCodeError) as caught:
        OperatorHarness(IntoLedger(), parallelism=2)
    assert "wanted parallelism 1" in str(caught.value.__cause__)


def test_a_job_with_three_writers_makes_one_act_per_checkpoint(ledger: Ledger) -> None:
    """In this process, in virtual time."""
    env = StreamEnvironment(parallelism=3, checkpoint_interval_ms=1_000)
    numbers = env.generate(lambda index: index, count=400, records_per_second=100)
    numbers.process(Writer()).sink_to(IntoLedger(), parallelism=1)
    with SimulatedCluster(1, slots_per_task_manager=3) as cluster:
        assert cluster.submit(env).wait().restarts == 0
    assert sorted(row for rows in ledger.rows for row in rows) == list(range(400))
    assert len(ledger.acts) > 1
    assert len(ledger.markers) == 1
    assert len(ledger.rows) > len(ledger.acts), "of several writers each"
