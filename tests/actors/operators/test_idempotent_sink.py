"""IdempotentSink: what it upserts when, and what happens when that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from understudy import IdempotentSink, OutsideUnavailable
from understudy.actors.errors import UserCodeError
from understudy.testing import OperatorHarness


class Table:
    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}
        self.batches: list[Any] = []
        self.failures = 0


TABLES: dict[str, Table] = {}


class IntoTable(IdempotentSink):
    def __init__(self, key: Any = 0, most_rows: int = 4) -> None:
        self.key = key
        self.most_rows = most_rows

    def upsert(self, batch: Any) -> None:
        table = TABLES["it"]
        if table.failures:
            table.failures -= 1
            raise ConnectionError("the table is away")
        table.batches.append(batch)
        rows = [tuple(row.values()) for row in batch.to_pylist()] if isinstance(batch, pa.RecordBatch) else batch
        table.rows.update((row[0], row) for row in rows)


@pytest.fixture
def table() -> Iterator[Table]:
    TABLES["it"] = Table()
    yield TABLES["it"]
    del TABLES["it"]


def test_it_waits_for_enough_rows(table: Table) -> None:
    with OperatorHarness(IntoTable()) as running:
        running.process([("a", 1), ("b", 1)])
        assert table.batches == []
        running.process([("a", 2), ("c", 1)])
        assert table.batches == [[("b", 1), ("a", 2), ("c", 1)]], "the last of each key, in their order"


def test_all_is_there_before_the_snapshot(table: Table) -> None:
    with OperatorHarness(IntoTable()) as running:
        running.process([("a", 1)])
        running.snapshot()
        assert table.rows == {"a": ("a", 1)}


def test_nothing_waits_when_no_input_comes(table: Table) -> None:
    with OperatorHarness(IntoTable()) as running:
        running.process([("a", 1)])
        assert running.operator.on_idle([]) == 0
        assert table.rows == {"a": ("a", 1)}
        assert running.operator.on_idle([]) is None


def test_columns_are_put_together_and_only_the_last_of_each_key_is_kept(table: Table) -> None:
    with OperatorHarness(IntoTable(key="k")) as running:
        running.process(pa.RecordBatch.from_pydict({"k": [1, 2], "v": [1, 1]}))
        running.process(pa.RecordBatch.from_pydict({"k": [1, 3], "v": [2, 1]}))
        (batch,) = table.batches
        assert batch.to_pydict() == {"k": [2, 1, 3], "v": [1, 2, 1]}


def test_without_a_key_all_are_upserted_in_their_order(table: Table) -> None:
    with OperatorHarness(IntoTable(key=None)) as running:
        running.process([("a", 1), ("a", 2)])
        running.snapshot()
        assert table.batches == [[("a", 1), ("a", 2)]]


def test_lists_and_columns_stay_in_order(table: Table) -> None:
    with OperatorHarness(IntoTable(most_rows=100)) as running:
        running.process([("a", 1)])
        running.process(pa.RecordBatch.from_pydict({"k": ["a"], "v": [2]}))
        running.process([("b", 1)])
        running.snapshot()
        assert [type(batch) for batch in table.batches] == [list, pa.RecordBatch, list]
        assert table.rows == {"a": ("a", 2), "b": ("b", 1)}


def test_what_fails_is_tried_again_and_nothing_taken_meanwhile(table: Table) -> None:
    with OperatorHarness(IntoTable()) as running:
        table.failures = 1
        running.process([(number, 1) for number in range(4)])
        assert running.operator._wants_no_input
        assert running.operator.on_idle([]) == pytest.approx(100)
        running.advance(100)
        assert running.operator.on_idle([]) is None
        assert not running.operator._wants_no_input
        assert len(table.rows) == 4


def test_a_barrier_decides_after_three_tries(table: Table) -> None:
    with OperatorHarness(IntoTable()) as running:
        table.failures = 2
        running.process([("a", 1)])
        running.snapshot()
        assert table.rows == {"a": ("a", 1)}
    running = OperatorHarness(IntoTable())
    table.failures = 3
    running.process([("a", 2)])
    with pytest.raises(UserCodeError) as caught:
        running.snapshot()
    assert isinstance(caught.value.__cause__, OutsideUnavailable)


def test_it_is_patient_no_longer_than_it_says(table: Table) -> None:
    running = OperatorHarness(IntoTable())
    table.failures = 100
    running.process([(number, 1) for number in range(4)])
    with pytest.raises(UserCodeError) as caught:
        running.advance(61_000)
    assert re.search(r"has failed \d+ times in 60\.\d s", str(caught.value.__cause__))
    assert "the table is away" in str(caught.value.__cause__)
