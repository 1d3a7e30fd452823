"""Lookup joins: each row finds the newest row of its key that has come; every subtask has the whole table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.joins.lookup_join import FixedLookupJoin, LookupJoin
from understudy.runtime.simulation.harness.harness import OperatorHarness

STREAM = pa.schema([("code", pa.string()), ("n", pa.int64())])
TABLE = pa.schema([("id", pa.string()), ("name", pa.string()), ("n", pa.int64())])


def stream(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), STREAM, strict=True)], schema=STREAM
    )


def table(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), TABLE, strict=True)], schema=TABLE
    )


def rows(harness: OperatorHarness) -> list[Any]:
    return [tuple(row) for row in harness.take_output()]


def test_a_row_finds_what_is_there_now_also_after_a_restore() -> None:
    with OperatorHarness(LookupJoin(["code"], ["id"], "left", "_table"), schemas=[STREAM, TABLE]) as harness:
        harness.process(stream(("a", 1)))
        harness.process(table(("a", "Ann", 10), ("b", "Bob", 20), ("a", "Anna", 11)), 1)
        harness.process(stream(("a", 2), ("c", 3), (None, 4)))
        assert rows(harness) == [
            ("a", 1, None, None, None),
            ("a", 2, "a", "Anna", 11),
            ("c", 3, None, None, None),
            (None, 4, None, None, None),
        ]
        harness.process(table(("c", "Cy", 30)), 1)
        snapshot = harness.snapshot()
    for index in range(3):
        with harness.restored([snapshot], parallelism=3, subtask_index=index) as after:
            after.process(table(("b", "Bea", 21)), 1)
            after.process(stream(("a", 5), ("b", 6), ("c", 7)), timestamps=[1, 2, 3])
            assert after.timed_output() == [
                (("a", 5, "a", "Anna", 11), 1),
                (("b", 6, "b", "Bea", 21), 2),
                (("c", 7, "c", "Cy", 30), 3),
            ]


def test_a_row_that_came_between_two_checkpoints_is_in_the_second_and_without_one_the_table_is_too() -> None:
    with OperatorHarness(LookupJoin(["code"], ["id"], "inner", "_table"), schemas=[STREAM, TABLE]) as harness:
        harness.process(table(("a", "Ann", 10)), 1)
        harness.snapshot()
        harness.process(table(("a", "Anna", 11), ("b", "Bob", 20)), 1)
        snapshots = [harness.snapshot(), harness.snapshot()]
    for snapshot in snapshots:
        with harness.restored(snapshot) as after:
            after.process(stream(("a", 1), ("b", 2)))
            assert rows(after) == [("a", 1, "a", "Anna", 11), ("b", 2, "b", "Bob", 20)]


def test_an_inner_join_with_a_fixed_table() -> None:
    fixed = table(("a", "Ann", 10), ("b", "Bob", 20))
    with OperatorHarness(FixedLookupJoin(["code"], ["id"], "inner", "_table", fixed), schemas=[STREAM]) as harness:
        harness.process(stream(("b", 1), ("z", 2), ("b", 3)), timestamps=[5, 6, 7])
        assert harness.timed_output() == [(("b", 1, "b", "Bob", 20), 5), (("b", 3, "b", "Bob", 20), 7)]
        assert harness.operator.output_schema(STREAM).names == ["code", "n", "id", "name", "n_table"]


def test_a_table_that_changes_much_takes_no_more_memory_than_its_rows() -> None:
    with OperatorHarness(LookupJoin(["code"], ["id"], "inner", "_table"), schemas=[STREAM, TABLE]) as harness:
        for version in range(300):
            harness.process(table(*((f"k{key}", "x", version) for key in range(100))), 1)
        assert len(harness.operator._table) == 100
        assert len(harness.operator._table._store) < 20_000
        harness.process(stream(("k7", 1)))
        assert rows(harness) == [("k7", 1, "k7", "x", 299)]


@pytest.mark.parametrize("how", ["inner", "left"])
def test_rows_find_nothing_in_an_empty_table(how: Any) -> None:
    with OperatorHarness(LookupJoin(["code"], ["id"], how, "_table"), schemas=[STREAM, TABLE]) as harness:
        harness.process(stream(("a", 1)))
        assert rows(harness) == ([("a", 1, None, None, None)] if how == "left" else [])


@pytest.mark.parametrize(
    ("how_many", "has_table"), [(2, True), (3, False)], ids=["until the first row", "where there is none at all"]
)
def test_records_that_came_before_the_table_had_a_row_are_told_of(
    how_many: int, has_table: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with OperatorHarness(LookupJoin(["code"], ["id"], "left", "_table"), schemas=[STREAM, TABLE]) as harness:
        harness.process(stream(("a", 1), ("b", 2)))
        if has_table:
            harness.process(table(("a", "Ann", 1)), 1)
        harness.process(stream(("a", 3)))
        harness.end()
    (said,) = [each.getMessage() for each in caplog.records if "came before" in each.getMessage()]
    assert f"{how_many} records came before the table had a row, and so found none" in said
    assert "pyarrow.Table" in said


def test_where_the_table_came_first_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with OperatorHarness(LookupJoin(["code"], ["id"], "left", "_table"), schemas=[STREAM, TABLE]) as harness:
        harness.process(table(("a", "Ann", 1)), 1)
        harness.process(stream(("b", 1)))
        harness.end()
    assert not caplog.records
