"""ColumnarAggregate and LocalAggregate as operators; for the arithmetic see test_columnar_table.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.flow.elements import SlotRows
from understudy.actors.operators.aggregate import Avg, ColumnarAggregate, Count, LocalAggregate, Max, Sum
from understudy.actors.operators.collector import Collector
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from understudy.state import InvalidKey, SnapshotTarget, StateIncompatible, WrongColumn

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
    return by_origin(_ended(operator))


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


def flushed(local: LocalAggregate) -> list[pa.RecordBatch]:
    out = Collector()
    local.before_barrier(CheckpointId(1), out)
    return [each.kept() if isinstance(each, SlotRows) else each for each in out.taken()]


class AtClock:
    """Stands still until it is set."""

    ms = 1000.0

    def now_ms(self) -> float:
        return self.ms


def test_two_phases_give_what_one_gives(opened: Opened, run: Run) -> None:
    local, merging = map(opened, ColumnarAggregate(["origin"], SPECS, emit="end").in_two_phases())
    assert run(local, FLIGHTS.slice(0, 2), FLIGHTS) == []
    first = flushed(local)
    assert run(local, FLIGHTS.slice(2)) == []
    second = flushed(local)
    assert [len(batch) for batch in (*first, *second, *flushed(local))] == [2, 1]
    run(merging, *first, *second)
    whole = opened(ColumnarAggregate(["origin"], SPECS, emit="end"))
    run(whole, FLIGHTS, FLIGHTS)
    assert ended(merging) == ended(whole)


def test_partials_for_updates_wait_a_little_for_more(opened: Opened, run: Run) -> None:
    local = opened(LocalAggregate(["origin"], SPECS, "updates"))
    clock = local.context.clock = AtClock()
    out = Collector()
    assert local.on_idle(out) is None
    assert run(local, FLIGHTS) == []
    assert local.on_idle(out) == local.LINGER_MS
    clock.ms += local.LINGER_MS - 1
    assert local.on_idle(out) == 1
    clock.ms += 1
    assert local.on_idle(out) is None
    assert len(rows(out.drain())) == 2
    assert local.on_idle(out) is None
    assert out.drain() == []


def test_partials_for_updates_go_in_time_while_input_comes(opened: Opened, run: Run) -> None:
    local = opened(LocalAggregate(["origin"], SPECS, "updates"))
    clock = local.context.clock = AtClock()
    assert run(local, FLIGHTS) == []
    clock.ms += local.MOST_LINGER_MS
    assert len(rows(run(local, FLIGHTS))) == 2
    local.MOST_ROWS = 5  # type: ignore[misc]
    assert len(rows(run(local, FLIGHTS, FLIGHTS))) == 2


@pytest.mark.parametrize("emit", ["updates", "end"])
@pytest.mark.usual_sizes
def test_many_keys_are_not_held_back(opened: Opened, run: Run, emit: str) -> None:
    local = opened(LocalAggregate(["n"], {"rows": Count()}, emit))
    local.context.clock = AtClock()
    local.MOST_KEYS, local.ENOUGH_ROWS = 5, 4  # type: ignore[misc]
    batches = [pa.record_batch({"n": list(range(start, start + 4))}) for start in (0, 0, 4, 8)]
    assert [len(batch) for batch in run(local, *batches)] == [8]
    assert [(row["n"], row["count(*)"]) for row in rows(flushed(local))] == [(8, 1), (9, 1), (10, 1), (11, 1)]


@pytest.mark.usual_sizes
def test_partials_go_by_slot_while_their_keys_may_come_again(opened: Opened, run: Run) -> None:
    local = opened(LocalAggregate(["n"], {"rows": Count()}, "end"))
    local.emits_slots = True
    local.MOST_KEYS = 5  # type: ignore[misc]

    def flush_of(*keys: int) -> list[Any]:
        run(local, pa.record_batch({"n": keys}))
        return flushed(local)

    (first,), (second,) = flush_of(1, 2), flush_of(2, 3)
    assert isinstance(first, SlotRows)
    assert isinstance(second, SlotRows)
    assert first.origin is second.origin
    assert rows([second.records()]) == [{"n": 2, "count(*)": 1}, {"n": 3, "count(*)": 1}]
    (last_of_table,) = flush_of(4, 5, 6)
    assert rows([last_of_table]) == [{"n": n, "count(*)": 1} for n in (4, 5, 6)]
    (anew,) = flush_of(6)
    assert isinstance(anew, SlotRows)
    assert anew.origin is not first.origin


@pytest.mark.parametrize("flushes_before", [True, False])
def test_the_only_partials_of_all_are_not_numbered(opened: Opened, run: Run, flushes_before: bool) -> None:
    local = opened(LocalAggregate(["origin"], SPECS, "end"))
    local.emits_slots = True
    run(local, FLIGHTS)
    if flushes_before:
        flushed(local)
        run(local, FLIGHTS)
    out = Collector()
    local.on_end(out)
    assert [isinstance(each, SlotRows) for each in out.drain()] == [flushes_before]


@pytest.mark.usual_sizes
def test_the_last_partials_of_a_table_that_has_named_nothing_are_not_numbered(opened: Opened, run: Run) -> None:
    """Those of the table before it were: it was given up, and with it what the channels know."""
    local = opened(LocalAggregate(["n"], {"rows": Count()}, "end"))
    local.emits_slots = True
    local.MOST_KEYS = 2  # type: ignore[misc]
    run(local, pa.record_batch({"n": [1]}))
    assert [type(each) for each in flushed(local)] == [SlotRows]
    run(local, pa.record_batch({"n": [2, 3]}))
    flushed(local)
    run(local, pa.record_batch({"n": [4]}))
    out = Collector()
    local.on_end(out)
    assert rows(out.drain()) == [{"n": 4, "count(*)": 1}]


def test_a_null_key_is_told_with_its_row(opened: Opened, run: Run) -> None:
    local = opened(LocalAggregate(["origin"], SPECS, "end"))
    run(local, FLIGHTS)
    with pytest.raises(InvalidKey, match="'origin' is None at record 1 of the batch; every record needs a key"):
        run(local, pa.record_batch({"origin": ["JFK", None], "miles": [1, 2], "delay": [1.0, 2.0]}))


def test_local_partials_have_the_types_of_the_declared_columns(opened: Opened, run: Run) -> None:
    local = LocalAggregate(["origin"], SPECS, "end")
    schema = local.output_schema(FLIGHTS.schema)
    found = opened(local)
    run(found, pa.record_batch({"origin": ["JFK"], "miles": [7], "delay": pa.nulls(1)}))
    assert [batch.schema for batch in flushed(found)] == [schema]


def test_keys_may_be_called_as_partials_are(opened: Opened, run: Run) -> None:
    batch = pa.record_batch({"sum(*)": [1, 2, 1], "*": [10, None, 30], "count(*)": [5, 6, 5]})
    specs = {"rows": Count(), "there": Count("*"), "total": Sum("*")}
    local, merging = map(opened, ColumnarAggregate(["sum(*)", "count(*)"], specs, emit="end").in_two_phases())
    run(local, batch)
    run(merging, *flushed(local))
    assert [tuple(row.values()) for row in sorted(_ended(merging), key=str)] == [(1, 5, 2, 2, 40), (2, 6, 1, 0, None)]


def _ended(operator: ColumnarAggregate) -> list[dict[str, Any]]:
    out = Collector()
    operator.on_end(out)
    return rows(out.drain())


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
    local = LocalAggregate(["origin"], SPECS, "end")
    partial_schema = local.output_schema(FLIGHTS.schema)
    arrived = opened(local)
    run(arrived, FLIGHTS)
    assert flushed(arrived)[0].schema == partial_schema
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
        WrongColumn, match=r"Sum\('seats'\): there is no such column, or more than one; there are origin, miles"
    ):
        ColumnarAggregate(["origin"], {"seats": Sum("seats")}).output_schema(FLIGHTS.schema)
