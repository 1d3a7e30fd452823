"""The columnar table against a model of plain dicts, over random batches with nulls, snapshots and rescales."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    OperatorSubtaskState,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state import (
    CorruptState,
    InvalidKey,
    SnapshotTarget,
    StateIncompatible,
    StateNotStorable,
    ValueState,
    WrongColumn,
)
from understudy.state.checkpoints.assignment import assign_state
from understudy.state.columnar import columnar_table
from understudy.state.columnar.columnar_backend import ColumnarBackend
from understudy.state.columnar.columnar_table import ColumnarTable
from understudy.state.handle_bytes import inline_handle, verified
from understudy.state.keys.key_groups import KeyGroupRange, key_group, key_group_range, key_groups_of
from understudy.state.keys.key_index import KeyIndex
from understudy.state.kinds.aggregates import Aggregate, Avg, Count, Max, Min, Sum

pytestmark = pytest.mark.every_run

MAXIMUM = 16
SCHEMA = pa.schema(
    {"name": pa.string(), "day": pa.int32(), "n": pa.int64(), "x": pa.float32(), "at": pa.timestamp("ms")}
)
AGGREGATES: dict[str, Aggregate] = {
    "rows": Count(),
    "known": Count("n"),
    "total": Sum("n"),
    "least": Min("n"),
    "mean": Avg("n"),
    "sum_x": Sum("x"),
    "top_x": Max("x"),
    "first": Min("at"),
    "last": Max("at"),
}
TARGET = SnapshotTarget(
    None, JobId("job"), CheckpointId(1), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt")
)

ROW = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["", "a", "b", "ü"]),
        "day": st.integers(-2, 2),
        "n": st.none() | st.integers(-(2**40), 2**40),
        "x": st.none() | st.integers(-4, 4).map(float),
        "at": st.none() | st.datetimes(datetime(1900, 1, 1)).map(lambda value: value.replace(microsecond=0)),
    }
)
BATCHES = st.lists(st.lists(ROW, min_size=1), min_size=1, max_size=4)
KEYS = st.sampled_from([("name",), ("day",), ("name", "day"), ("day", "name", "day2")])


def columnar(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    return batch.append_column("day2", batch["day"])


def modelled(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key.removesuffix("2")] for key in keys)].append(row)
    return {key: _model(members) for key, members in groups.items()}


def _model(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    n, x, at = ([row[column] for row in rows if row[column] is not None] for column in ("n", "x", "at"))
    ordered = (min(at), max(at)) if at else (None, None)
    numbers = (sum(n), min(n), sum(n) / len(n)) if n else (None, None, None)
    return (len(rows), len(n), *numbers, *((sum(x), max(x)) if x else (None, None)), *ordered)


def plain(batch: pa.RecordBatch, keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in batch.to_pylist()]
    found = {row[:keys]: row[keys:] for row in rows}
    assert len(found) == len(rows), "a key came twice"
    return found


def backend(keys: tuple[str, ...], parallelism: int = 1, index: int = 0, **aggregates: Aggregate) -> ColumnarBackend:
    return ColumnarBackend(keys, aggregates or AGGREGATES, key_group_range(MAXIMUM, parallelism, index), MAXIMUM)


def read(handle: Any) -> bytes:
    return verified(handle.data, handle)


def snapshot(state: ColumnarBackend) -> KeyedStateHandle | None:
    return state.snapshot(CheckpointId(1))(TARGET)


def rescaled(states: list[ColumnarBackend], keys: tuple[str, ...], parallelism: int) -> list[ColumnarBackend]:
    """Snapshot all subtasks, deal the handles out as a restart does, and restore."""
    operator = OperatorId("aggregate")
    taken = {}
    for index, state in enumerate(states):
        handle = snapshot(state)
        taken[SubtaskIndex(index)] = SubtaskState({operator: OperatorSubtaskState((handle,) if handle else ())})
    restored = []
    for index, share in enumerate(assign_state(taken, len(states), parallelism, MAXIMUM)):
        restored.append(backend(keys, parallelism, index))
        if share is not None:
            restored[-1].restore(share.operators[operator].keyed, read)
    return restored


def feed(states: list[ColumnarBackend], keys: tuple[str, ...], batch: pa.RecordBatch) -> None:
    groups = key_groups_of([batch[key] for key in keys], MAXIMUM)
    for index, state in enumerate(states):
        own = key_group_range(MAXIMUM, len(states), index)
        share = batch.filter(pa.array([group in own.groups for group in groups.tolist()]))
        if share.num_rows:
            state.table_for(share.schema).update(share)


@given(BATCHES, KEYS)
@settings(deadline=None)
def test_results_are_those_of_a_dict(batches: list[list[dict[str, Any]]], keys: tuple[str, ...]) -> None:
    table = ColumnarTable.for_input(keys, AGGREGATES, columnar([]).schema)
    seen: list[dict[str, Any]] = []
    for rows in batches:
        changed = table.distinct(table.update(columnar(rows)))
        seen += rows
        everything = modelled(seen, keys)
        assert plain(table.results(changed), len(keys)) == {key: everything[key] for key in modelled(rows, keys)}
    assert plain(table.results(table.all_slots()), len(keys)) == everything
    assert table.results(table.all_slots()).schema == table.result_schema


@given(BATCHES, KEYS, st.lists(st.integers(1, 3), min_size=1, max_size=3))
@settings(deadline=None)
def test_state_survives_snapshots_and_rescales(
    batches: list[list[dict[str, Any]]], keys: tuple[str, ...], parallelisms: list[int]
) -> None:
    states = [backend(keys)]
    for rows, parallelism in zip(batches, parallelisms * len(batches), strict=False):
        feed(states, keys, columnar(rows))
        states = rescaled(states, keys, parallelism)
    tables = [state.table for state in states if state.table is not None]
    found = [plain(table.results(table.all_slots()), len(keys)) for table in tables]
    expected = modelled([row for rows in batches for row in rows], keys)
    assert {key: value for part in found for key, value in part.items()} == expected
    assert sum(map(len, found)) == len(expected) == sum(state.entry_count() for state in states)
    assert sorted(key for state in states for key in state.keys()) == sorted(  # noqa: SIM118 - a method of the backend
        expected if len(keys) > 1 else (key for (key,) in expected)
    )


@given(BATCHES, KEYS)
@settings(deadline=None)
def test_two_phases_are_one(batches: list[list[dict[str, Any]]], keys: tuple[str, ...]) -> None:
    local = ColumnarTable.for_input(keys, AGGREGATES, columnar([]).schema)
    merged = ColumnarTable.for_partials(keys, AGGREGATES, local.partial_schema)
    for rows in batches:
        local.accumulate([local.readable(columnar(rows)), local.readable(columnar(rows[:1]))])
        local.accumulate([local.readable(columnar(rows))])
        for partials in local.take_partials():
            merged.merge(partials)
    expected = modelled([row for rows in batches for row in (*rows, *rows[:1], *rows)], keys)
    assert plain(merged.results(merged.all_slots()), len(keys)) == expected
    assert list(local.take_partials()) == []
    assert merged.result_schema == local.result_schema


def test_partials_that_go_in_several_batches_are_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a batch ends, and nothing is left for the next time."""
    monkeypatch.setattr(columnar_table, "_PARTIALS_AT_A_TIME", 4)
    table = ColumnarTable.for_input(["k"], {"rows": Count()}, pa.schema({"k": pa.int64()}))
    for keys in (range(10), range(0, 20, 2), range(8)):
        table.accumulate([pa.record_batch({"k": pa.array(keys)})])
        taken = [each["k"].to_pylist() for each in table.take_partials()]
        assert [key for batch in taken for key in batch] == list(keys)
        assert len(taken) == -(-len(keys) // 4)


@pytest.mark.parametrize("nulls_first", [False, True])
def test_a_column_whose_nulls_come_late_is_counted_right(nulls_first: bool) -> None:
    """Its count is the count of rows until the first null, in rows and in partials, and across a snapshot."""
    full, some = [_row("a", 1), _row("b", 2)], [_row("a", 3), {**_row("a", 0), "n": None}]
    state, local, fed = backend(("name",)), ColumnarTable.for_input(["name"], AGGREGATES, columnar(full).schema), []
    for rows in (some, full) if nulls_first else (full, some):
        feed([state], ("name",), columnar(rows))
        local.accumulate([local.readable(columnar(rows))])
        for partials in local.take_partials():
            state.table_for(partials.schema, partials=True).merge(partials)
        fed += [*rows, *rows]
        for table in (state.table, rescaled([state], ("name",), 1)[0].table):
            assert table is not None
            assert plain(table.results(table.all_slots()), 1) == modelled(fed, ("name",))


def test_what_comes_after_a_snapshot_does_not_show_in_it() -> None:
    state = backend(("name",), rows=Count(), total=Sum("n"))
    feed([state], ("name",), columnar([_row("a", 1), _row("b", 2)]))
    write = state.snapshot(CheckpointId(1))
    for name in "abcdefghijkl" * 200:
        feed([state], ("name",), columnar([_row(name, 5)]))
    state.close()
    handle = write(TARGET)
    restored = backend(("name",), rows=Count(), total=Sum("n"))
    assert handle is not None
    restored.restore([handle], read)
    assert restored.table is not None
    assert plain(restored.table.results(restored.table.all_slots()), 1) == {("a",): (1, 1), ("b",): (1, 2)}


def _row(name: str, n: int) -> dict[str, Any]:
    return {"name": name, "day": 0, "n": n, "x": None, "at": None}


def test_a_state_of_more_keys_than_are_merged_at_a_time_comes_back() -> None:
    ids = np.arange(300_000)
    state = backend(("day",), rows=Count(), total=Sum("n"))
    batch = pa.RecordBatch.from_pydict({"day": ids, "n": ids * 3})
    state.table_for(batch.schema).update(batch)
    handle, restored = snapshot(state), backend(("day",), rows=Count(), total=Sum("n"))
    assert handle is not None
    restored.restore([handle], read)
    assert restored.table is not None
    found = pa.Table.from_batches([restored.table.results(restored.table.all_slots())]).sort_by("day")
    assert np.array_equal(found["day"].to_numpy(), ids)
    assert np.array_equal(found["rows"].to_numpy(), np.ones(len(ids)))
    assert np.array_equal(found["total"].to_numpy(), ids * 3)


def test_a_snapshot_of_nothing_is_no_handle() -> None:
    assert snapshot(backend(("name",))) is None


def test_a_snapshot_says_which_key_groups_it_holds() -> None:
    state = backend(("day",))
    feed([state], ("day",), columnar([_row("a", 1)]))
    handle = snapshot(state)
    assert handle is not None
    assert (handle.backend, handle.first_key_group, handle.last_key_group) == ("columnar", 0, MAXIMUM - 1)
    assert set(handle.offsets) == {-1, key_group(0, MAXIMUM)}


KEY_VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [1, -1, 0],
    pa.uint64(): [0, 2**64 - 1],
    pa.bool_(): [True, False],
    pa.float32(): [0.5, -1.0],
    pa.date32(): [date(1970, 1, 1), date(1900, 5, 5)],
    pa.timestamp("us", "UTC"): [0, -1],
    pa.duration("s"): [1, 2],
    pa.time32("s"): [1, 2],
    pa.binary(): [b"", b"\0"],
    pa.large_string(): ["", "x"],
    pa.decimal128(9, 2): [Decimal("1.50"), Decimal("-2.00")],
}


@pytest.mark.parametrize("kind", KEY_VALUES, ids=str)
def test_keys_of_every_type_come_back(kind: pa.DataType) -> None:
    column = pa.array(KEY_VALUES[kind] * 2, kind)
    for columns in ([column], [column, column]):
        index = KeyIndex([kind] * len(columns))
        slots = index.slots_of(columns)
        assert len(index) == len(KEY_VALUES[kind])
        assert index.keys(slots) == columns
        assert index.slots_of(columns).tolist() == slots.tolist()


def test_floats_that_are_equal_are_one_key_and_so_are_all_nans() -> None:
    index = KeyIndex([pa.float64()])
    assert len(set(index.slots_of([pa.array([0.0, -0.0, float("nan"), -float("nan")])]).tolist())) == 2


def test_dictionary_columns_are_keys_and_values_like_any_other() -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), pa.array(["a", "unused", "b"]))
    values = pa.array([1, 2, 3]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([keys, values], ["name", "n"])
    table = ColumnarTable.for_input(["name"], {"total": Sum("n")}, batch.schema)
    table.update(batch)
    assert plain(table.results(table.all_slots()), 1) == {("a",): (4,), ("b",): (2,)}
    assert table.result_schema.field("name").type == pa.string()


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=5))
@settings(deadline=None)
def test_a_key_keeps_its_slot(batches: list[list[int]]) -> None:
    index = KeyIndex([pa.int64()])
    known: dict[int, int] = {}
    for words in batches:
        for word, slot in zip(words, index.slots_of([pa.array(words, pa.int64())]).tolist(), strict=True):
            assert known.setdefault(word, slot) == slot
    assert sorted(known.values()) == list(range(len(index)))


def test_an_index_of_many_keys() -> None:
    words = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 50_000)
    index = KeyIndex([pa.int64()])
    for start in range(0, len(words), 7_000):
        index.slots_of([pa.array(words[start : start + 7_000])])
    slots = index.slots_of([pa.array(words)])
    assert len(index) == len(set(words.tolist())) == len(set(slots.tolist()))
    assert index.keys(slots)[0].to_numpy().tolist() == words.tolist()


def test_long_sums_stay_exact() -> None:
    batch = columnar([_row("a", 2**53), _row("a", 1), _row("a", 2**61)])
    table = ColumnarTable.for_input(["name"], {"total": Sum("n")}, batch.schema)
    table.update(batch)
    assert plain(table.results(table.all_slots()), 1) == {("a",): (2**53 + 1 + 2**61,)}


@pytest.mark.parametrize(
    ("values", "least", "greatest"), [([1.0, float("nan"), 3.0], 1.0, 3.0), ([float("nan")], "nan", "nan")]
)
def test_a_nan_counts_only_where_there_is_nothing_else(values: list[float], least: Any, greatest: Any) -> None:
    batch = pa.RecordBatch.from_pydict({"k": [1] * len(values), "x": values})
    table = ColumnarTable.for_input(["k"], {"least": Min("x"), "greatest": Max("x")}, batch.schema)
    table.update(batch)
    ((found, other),) = plain(table.results(table.all_slots()), 1).values()
    assert (str(found), str(other)) == (str(least), str(greatest))


@pytest.mark.parametrize(
    ("aggregate", "found"),
    [
        (Sum("name"), "wanted a column of integers or floats, found a column of type string"),
        (Avg("at"), "wanted a column of integers or floats, found a column of type timestamp"),
        (Min("name"), "wanted a column of numbers, booleans, dates or times, found a column of type string"),
        (Sum("miles"), r"Sum\('miles'\): there is no such column, or more than one; there are name, day, n, x, at"),
        (Count("miles"), "there is no such column"),
    ],
)
def test_a_column_that_does_not_fit_is_refused(aggregate: Aggregate, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        ColumnarTable.for_input(["name"], {"result": aggregate}, SCHEMA)


def test_a_missing_key_column_is_refused() -> None:
    with pytest.raises(ValueError, match="no key column 'tail', or more than one; there are name, day"):
        ColumnarTable.for_input(["tail"], {"rows": Count()}, SCHEMA)


def test_a_later_batch_of_another_type_is_cast_or_refused() -> None:
    table = ColumnarTable.for_input(["k"], {"total": Sum("n")}, pa.schema({"k": pa.int64(), "n": pa.int64()}))
    table.update(pa.RecordBatch.from_pydict({"k": pa.array([1], pa.int8()), "n": [2.0]}))
    table.update(pa.RecordBatch.from_pydict({"k": [1], "n": pa.nulls(1)}))
    assert plain(table.results(table.all_slots()), 1) == {(1,): (2,)}
    with pytest.raises(ValueError, match="column 'n': found double, which does not become int64"):
        table.update(pa.RecordBatch.from_pydict({"k": [1], "n": [2.5]}))


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (pa.array([1]), pa.array(["1"])),
        (pa.array(["1"]), pa.array([1])),
        (pa.array(["x"]), pa.array([b"x"])),
        (pa.array([date(2026, 1, 1)]), pa.array([datetime(2026, 1, 1)])),
        (pa.array([0], pa.timestamp("s")), pa.array([0], pa.timestamp("s", "UTC"))),
        (pa.array([0], pa.duration("s")), pa.array([0])),
    ],
    ids=lambda column: str(column.type),
)
def test_a_key_that_another_type_would_make_another_key_is_refused(first: pa.Array, later: pa.Array) -> None:
    """The stream is partitioned by the key as it came, and per record these are two keys."""
    table = ColumnarTable.for_input(["k"], {"rows": Count()}, pa.schema({"k": first.type}))
    table.update(pa.RecordBatch.from_arrays([first], ["k"]))
    with pytest.raises(InvalidKey, match=re.escape(f"key column 'k' is {later.type} now, and was {first.type}: cast")):
        table.update(pa.RecordBatch.from_arrays([later], ["k"]))


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (pa.array([1]), pa.array([1.0])),
        (pa.array([1], pa.int8()), pa.array([True])),
        (pa.array(["x"]), pa.array(["x"], pa.large_string()).dictionary_encode()),
        (pa.array([0], pa.timestamp("s")), pa.array([0], pa.timestamp("us"))),
        (pa.array([0], pa.timestamp("s", "UTC")), pa.array([0], pa.timestamp("s", "Europe/Berlin"))),
        (pa.array([date(2026, 1, 1)]), pa.array([date(2026, 1, 1)], pa.date64())),
        (pa.array([7], pa.time32("s")), pa.array([7_000_000], pa.time64("us"))),
        (pa.array([7], pa.duration("s")), pa.array([7_000], pa.duration("ms"))),
        (pa.array([Decimal("1.5")]), pa.array([Decimal("1.50")])),
        (pa.array([2]), pa.array([Decimal("2.00")], pa.decimal128(22, 2))),
        (pa.array([Decimal("2.5")]), pa.array([2.5])),
    ],
    ids=lambda column: str(column.type),
)
def test_a_key_that_is_the_same_in_another_type_is_that_key(first: pa.Array, later: pa.Array) -> None:
    assert key_groups_of([first], MAXIMUM).tolist() == key_groups_of([later], MAXIMUM).tolist()
    table = ColumnarTable.for_input(["k"], {"rows": Count()}, pa.schema({"k": later.type}))
    for column in (later, later, first):
        table.update(pa.RecordBatch.from_arrays([column], ["k"]))
    assert plain(table.results(table.all_slots()), 1) == {(later[0].as_py(),): (3,)}


def test_a_first_batch_of_nothing_but_nulls() -> None:
    first = pa.RecordBatch.from_pydict({"k": [1], "n": pa.nulls(1)})
    table = ColumnarTable.for_input(["k"], {"total": Sum("n"), "least": Min("n")}, first.schema)
    table.update(first)
    table.update(pa.RecordBatch.from_pydict({"k": [2], "n": [3]}))
    assert plain(table.results(table.all_slots()), 1) == {(1,): (None, None), (2,): (3.0, 3.0)}


def test_a_null_key_names_the_column() -> None:
    table = ColumnarTable.for_input(["k"], {"rows": Count()}, pa.schema({"k": pa.int64()}))
    with pytest.raises(InvalidKey, match="key column 'k' is None at record 1 of the batch; every record"):
        table.update(pa.RecordBatch.from_pydict({"k": [1, None]}))


def _written(keys: tuple[str, ...] = ("name",), **aggregates: Aggregate) -> KeyedStateHandle:
    state = backend(keys, **aggregates)
    feed([state], keys, columnar([_row("a", 1), _row("b", 2)]))
    handle = snapshot(state)
    assert handle is not None
    return handle


@pytest.mark.parametrize(
    ("restored", "names"),
    [
        (backend(("day",), rows=Count()), "keys"),
        (backend(("name",), rows=Count("n")), "aggregates"),
        (ColumnarBackend(["name"], {"rows": Count()}, KeyGroupRange(0, 7), 8), "max_parallelism 8"),
        (ColumnarBackend(["name"], {"rows": Count()}, KeyGroupRange(0, 2 * MAXIMUM - 1), 2 * MAXIMUM), "max_parall"),
    ],
)
def test_a_snapshot_of_another_aggregation_is_refused(restored: ColumnarBackend, names: str) -> None:
    with pytest.raises(StateIncompatible, match=names):
        restored.restore([_written(rows=Count())], read)


def test_a_snapshot_with_other_types_is_refused() -> None:
    restored = backend(("name",), total=Sum("n"))
    restored.restore([_written(total=Sum("n"))], read)
    restored.expect(SCHEMA)
    with pytest.raises(StateIncompatible, match=r"sum\(n\).* is declared as double, but the snapshot holds int64"):
        restored.expect(pa.schema({"name": pa.string(), "n": pa.float64()}))


def test_a_damaged_snapshot_is_corrupt() -> None:
    handle = _written(rows=Count())
    assert handle.handle.data is not None
    damaged = KeyedStateHandle(0, MAXIMUM - 1, handle.offsets, inline_handle(handle.handle.data[:-1]), "columnar")
    with pytest.raises(CorruptState, match="a columnar snapshot"):
        backend(("name",), rows=Count()).restore([damaged], read)


def test_rows_of_foreign_key_groups_cannot_be_stored() -> None:
    state = backend(("day",), parallelism=2, index=0, rows=Count())
    state.table_for(SCHEMA).update(pa.RecordBatch.from_pylist([{"day": day} for day in range(50)], SCHEMA))
    with pytest.raises(StateNotStorable, match="not partitioned by these columns"):
        snapshot(state)


def test_it_has_no_declared_states() -> None:
    with pytest.raises(TypeError, match="no other state"):
        backend(("name",)).state(ValueState(int, 0, name="mine"))


def test_a_key_column_that_comes_run_end_encoded_is_named_with_what_to_do() -> None:
    """As `map_batches` may make it, whose columns are not known when the job is made."""
    schema = pa.schema({"name": pa.run_end_encoded(pa.int32(), pa.string())})
    with pytest.raises(WrongColumn, match=r"key column 'name': a column of type run_end.*: decode it, by .*run_end_de"):
        backend(("name",), rows=Count()).table_for(schema)
