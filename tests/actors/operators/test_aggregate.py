"""ColumnarAggregate and LocalAggregate as operators; the arithmetic is tested in tests/state/test_columnar_table.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.operators.aggregate import Avg, ColumnarAggregate, Count, LocalAggregate, Max, Sum
from understudy.actors.operators.operator import Collector
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from understudy.state import SnapshotTarget, StateIncompatible

Opened = Callable[..., Any]
Run = Callable[..., list[Any]]

FLIGHTS = pa.RecordBatch.from_pydict(
    {"origin": ["JFK", "EWR", "JFK"], "miles": [100, 200, 50], "delay": [1.5, None, 3]}
)
SPECS: dict[str, Any] = {"flights": Count(), "total": Sum("miles"), "mean": Avg("miles"), "worst": Max("delay")}
JFK = {"origin": "JFK", "flights": 2, "total": 150, "mean": 75.0, "worst": 3.0}
EWR = {"origin": "EWR", "flights": 1, "total": 200, "mean": 200.0, "worst": None}
TARGET = SnapshotTarget(None, JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a"))


def rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def by_origin(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: str(row["origin"]))


def ended(operator: ColumnarAggregate) -> list[dict[str, Any]]:
    out = Collector()
    operator.on_end(out)
    return by_origin(rows(out.drain()))


def test_updates_are_the_changed_keys_of_each_batch(opened: Opened, run: Run) -> None:
    operator = opened(ColumnarAggregate(["origin"], SPECS, emit="updates"))
    first, second = run(operator, FLIGHTS, FLIGHTS.slice(0, 1))
    assert by_origin(first.to_pylist()) == [EWR, JFK]
    assert second.to_pylist() == [JFK | {"flights": 3, "total": 250, "mean": 250 / 3}]
    assert ended(operator) == []


def test_at_the_end_each_key_comes_once(opened: Opened, run: Run) -> None:
    operator = opened(ColumnarAggregate(["origin"], SPECS, emit="end"))
    assert run(operator, FLIGHTS.slice(0, 2), FLIGHTS.slice(2)) == []
    assert ended(operator) == [EWR, JFK]


def test_an_end_without_any_input_emits_nothing(opened: Opened) -> None:
    assert ended(opened(ColumnarAggregate(["origin"], SPECS, emit="end"))) == []


@pytest.mark.parametrize("known", [True, False])
def test_a_restored_operator_goes_on(opened: Opened, run: Run, known: bool) -> None:
    operator = ColumnarAggregate(["origin"], SPECS, emit="end")
    if known:
        operator.output_schema(FLIGHTS.schema)
    before = opened(operator)
    run(before, FLIGHTS.slice(0, 1))
    handle = before.keyed_state.snapshot(CheckpointId(1))(TARGET)
    after = opened(operator, handles=[handle])
    run(after, FLIGHTS.slice(1))
    assert ended(after) == [EWR, JFK]


def test_restored_state_of_other_types_is_refused_at_open(opened: Opened, run: Run) -> None:
    before = opened(ColumnarAggregate(["origin"], {"total": Sum("miles")}))
    run(before, FLIGHTS)
    handle = before.keyed_state.snapshot(CheckpointId(1))(TARGET)
    changed = ColumnarAggregate(["origin"], {"total": Sum("miles")})
    changed.output_schema(pa.schema({"origin": pa.string(), "miles": pa.float64()}))
    with pytest.raises(StateIncompatible, match="double"):
        opened(changed, handles=[handle])


def test_two_phases_give_what_one_gives(opened: Opened, run: Run) -> None:
    local = opened(LocalAggregate(["origin"], SPECS))
    merging = opened(ColumnarAggregate(["origin"], SPECS, emit="end", partials=True))
    partials = run(local, FLIGHTS.slice(0, 2), FLIGHTS, FLIGHTS.slice(2))
    assert [len(batch) for batch in partials] == [2, 2, 1]
    run(merging, *partials)
    whole = opened(ColumnarAggregate(["origin"], SPECS, emit="end"))
    run(whole, FLIGHTS, FLIGHTS)
    assert ended(merging) == ended(whole)


def test_schemas_are_known_before_the_job_runs(opened: Opened, run: Run) -> None:
    whole = ColumnarAggregate(["origin"], SPECS)
    schema = whole.output_schema(FLIGHTS.schema)
    assert schema is not None
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "origin": pa.string(),
        "flights": pa.int64(),
        "total": pa.int64(),
        "mean": pa.float64(),
        "worst": pa.float64(),
    }
    assert run(opened(whole), FLIGHTS)[0].schema == schema
    local = LocalAggregate(["origin"], SPECS)
    partial_schema = local.output_schema(FLIGHTS.schema)
    assert run(opened(local), FLIGHTS)[0].schema == partial_schema
    assert ColumnarAggregate(["origin"], SPECS, partials=True).output_schema(partial_schema) == schema
    assert ColumnarAggregate(["origin"], SPECS).output_schema(None) is None


@pytest.mark.parametrize(
    ("keys", "specs", "emit", "error"),
    [
        ([], SPECS, "end", "at least one key column"),
        (["origin"], {}, "end", "and one aggregate"),
        (["origin"], SPECS, "never", "wanted 'updates' or 'end', found 'never'"),
        (["origin"], {"flights": max}, "end", "flights: wanted an aggregate such as"),
        (["origin"], {"origin": Count()}, "end", "'origin' is a key column already"),
    ],
)
def test_what_cannot_be_is_refused_at_once(keys: Any, specs: Any, emit: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        ColumnarAggregate(keys, specs, emit)


def test_columns_are_checked_when_the_schema_is_known() -> None:
    with pytest.raises(
        ValueError, match=r"Sum\('seats'\): there is no such column, or not once; there are origin, miles"
    ):
        ColumnarAggregate(["origin"], {"seats": Sum("seats")}).output_schema(FLIGHTS.schema)
