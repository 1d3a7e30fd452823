"""RowStore and KeyedRows: rows of any type are found by key, and are the same after a snapshot, for any key groups."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, SubtaskIndex, VertexId
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.columnar.keyed_rows import KeyedRows
from understudy.state.columnar.row_columns import row_column
from understudy.state.columnar.row_store import RowStore
from understudy.state.columnar.rows_format import KeptRows
from understudy.state.errors import CorruptState, StateIncompatible
from understudy.state.keys.key_groups import KeyGroupRange
from understudy.state.storage import CheckpointStorage, handle_reader

from ...examples import examples

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [1, None, -3],
    pa.uint64(): [2**64 - 1, 0, None],
    pa.float32(): [1.5, None, -0.0],
    pa.bool_(): [True, None, False],
    pa.date32(): [dt.date(2020, 1, 2), None],
    pa.timestamp("us", "UTC"): [dt.datetime(2020, 1, 2, tzinfo=dt.UTC), None],
    pa.time64("us"): [dt.time(1, 2, 3), None],
    pa.decimal128(20, 3): [Decimal("1.234"), None, Decimal("-7.000")],
    pa.decimal256(40, 3): [Decimal("1.234"), None],
    pa.string(): ["", None, "é", "text"],
    pa.large_string(): ["a", None],
    pa.binary(): [b"\xff", None, b""],
    pa.binary(3): [b"abc", None],
    pa.list_(pa.int64()): [[1, 2], None, []],
    pa.struct([("x", pa.int32()), ("y", pa.string())]): [{"x": 1, "y": "b"}, None],
    pa.dictionary(pa.int8(), pa.string()): ["a", None, "b", "a"],
    pa.null(): [None],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
@examples(30)
def test_a_column_gives_back_what_was_added(kind: pa.DataType, data: st.DataObject) -> None:
    column, held = row_column(kind), []
    for several in data.draw(st.lists(st.lists(st.sampled_from(VALUES[kind]), max_size=5), max_size=6)):
        padded = pa.array([VALUES[kind][0], *several], kind)
        column.append(padded.slice(1))  # a slice: what is read begins later than its memory
        held += several
    view = column.view()
    column.append(pa.array(VALUES[kind], kind))
    rows = data.draw(st.lists(st.integers(-1, len(held) - 1), max_size=8))
    found = view.take(np.array(rows, np.int64))
    assert found.to_pylist() == [None if row < 0 else held[row] for row in rows]
    found.validate(full=True)


Script = list[tuple[str, list[tuple[int, int]]]]
scripts = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "drop", "compact", "ask", "clear"]),
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99)), max_size=12),
    ),
    max_size=10,
)
SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])


@given(script=scripts, asked=st.lists(st.integers(0, 6), max_size=8), pieces=st.integers(1, 5))
@examples(150)
def test_the_rows_of_keys_are_found(script: Script, asked: list[int], pieces: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("understudy.state.columnar.row_store.PAIRS_AT_A_TIME", pieces)
        patch.setattr("understudy.state.columnar.row_store._FOLLOWED", 2)
        store, held = RowStore(SCHEMA), []
        for what, several in script:
            if what == "add":
                keys, values = [key for key, _ in several], [value for _, value in several]
                batch = pa.RecordBatch.from_pydict({"key": keys, "value": values}, SCHEMA)
                store.append(batch, np.array(keys, np.int64), np.array(values, np.int64))
                held += several
            elif what == "drop":
                rows = store.live_rows()[: len(several)]
                store.drop(rows)
                held = held[len(rows) :]
            elif what == "clear":
                store.clear()
                held = []
            elif what == "compact":
                store.compact()
            else:
                check_found(store, held, [key for key, _ in several])
        for _ in range(3):  # of a store that does not change rows are found in another way
            check_found(store, held, asked)


def check_found(store: RowStore, held: list[tuple[int, int]], asked: list[int]) -> None:
    found: list[tuple[int, int, int]] = []
    for positions, rows in store.pairs(np.array(asked, np.int64)):
        batch = store.reader().take(rows)
        found += zip(positions.tolist(), batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)
    wanted = [(place, key, value) for place, key in enumerate(asked) for other, value in held if other == key]
    assert Counter(found) == Counter(wanted)


def test_many_rows_of_one_key_are_found_quickly_enough_to_be_found_at_all() -> None:
    store, rows = RowStore(SCHEMA), 300_000
    batch = pa.RecordBatch.from_arrays([pa.array(np.zeros(rows, np.int64)), pa.array(np.arange(rows))], schema=SCHEMA)
    store.append(batch, np.zeros(rows, np.int64), np.zeros(rows, np.int64))
    ((_, found),) = store.pairs(np.array([0]))
    assert sorted(found.tolist()) == list(range(rows))


def found_again(store: RowStore, slot: int) -> list[int]:
    """Rows of a store that does not change are sorted by slot when long chains are looked for again."""
    return [store.rows_of(np.array([slot])).tolist() for _ in range(3)][-1]


def test_rows_in_the_order_of_slots_are_put_in_order_again_when_slots_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.state.columnar.row_store._FOLLOWED", 2)
    store = RowStore(SCHEMA)
    batch = pa.RecordBatch.from_pydict({"key": [7] * 3 + [8] * 5, "value": range(8)}, SCHEMA)
    store.append(batch, np.array([0] * 3 + [1] * 5), np.arange(8))
    assert found_again(store, 0) == [0, 1, 2]
    store.relabel(np.array([1, 0]))
    assert found_again(store, 0) == [3, 4, 5, 6, 7]
    assert found_again(store, 1) == [0, 1, 2]


LEFT = KeptRows(("key",), SCHEMA)
RIGHT = KeptRows(("id",), pa.schema([("name", pa.string()), ("id", pa.int32())]))
GROUPS = 16


def keyed(first: int = 0, last: int = GROUPS - 1, sides: tuple[KeptRows, ...] = (LEFT, RIGHT)) -> KeyedRows:
    return KeyedRows(sides, KeyGroupRange(first, last), GROUPS)


def added(backend: KeyedRows, side: int, batch: pa.RecordBatch, mark: int = 0) -> None:
    slots = backend.slots_of(side, batch)
    backend.stores[side].append(batch, slots, np.arange(len(batch)), mark)


def filled() -> KeyedRows:
    backend = keyed()
    added(backend, 0, pa.RecordBatch.from_pydict({"key": [1, 2, 1, 7], "value": [10, 20, 11, None]}, LEFT.schema), 5)
    added(backend, 1, pa.RecordBatch.from_pydict({"name": ["a", None], "id": [2, 9]}, RIGHT.schema))
    return backend


def read(backend: KeyedRows) -> list[Any]:
    found: list[Any] = []
    for side, store in enumerate(backend.stores):
        rows = store.live_rows()
        records = store.reader().take(rows).to_pylist()
        kept = zip(records, store.times[rows].tolist(), store.marks[rows].tolist(), strict=True)
        found += [(side, *record.values(), time, mark) for record, time, mark in kept]
    return sorted(found, key=str)


def stored(backend: KeyedRows) -> tuple[Any, Any]:
    storage = CheckpointStorage(f"memory://rows-{uuid4().hex}")
    target = SnapshotTarget(
        storage, JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a")
    )
    return backend.snapshot(CheckpointId(1))(target), handle_reader(storage)


@given(cut=st.integers(0, GROUPS - 2))
@settings(deadline=None)
def test_a_snapshot_is_dealt_out_by_key_group_and_put_together_again(cut: int) -> None:
    handle, reading = stored(filled())
    parts, handles = [], []
    for first, last in ((0, cut), (cut + 1, GROUPS - 1)):
        share = cut_handle(handle, range(first, last + 1))
        part = keyed(first, last)
        part.restore([share] if share is not None else [], reading)
        parts.append(part)
        handles.append(stored(part))
    assert sorted((row for part in parts for row in read(part)), key=str) == read(filled())
    whole = keyed()
    for written, each in handles:
        other = keyed()
        if written is not None:
            other.restore([written], each)
            assert set(other.keys()) <= {1, 2, 7, 9}
    whole.restore([handle], reading)
    assert read(whole) == read(filled())
    assert whole.entry_count() == 6


def test_what_changes_after_a_snapshot_does_not_show_in_it() -> None:
    backend = filled()
    write = backend.snapshot(CheckpointId(1))
    wanted = read(backend)
    backend.stores[0].marks[:] = 8  # in the memory that the snapshot was taken of, before it grows
    added(backend, 0, pa.RecordBatch.from_pydict({"key": [3] * 5000, "value": [1] * 5000}, LEFT.schema))
    backend.stores[0].marks[:] = 9
    backend.stores[0].drop(np.array([0, 1]))
    backend.stores[0].compact()
    backend.stores[0].relabel(np.arange(10)[::-1].copy())
    storage = CheckpointStorage(f"memory://rows-{uuid4().hex}")
    handle = write(
        SnapshotTarget(storage, JobId("j"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a"))
    )
    after = keyed()
    after.restore([handle] if handle else [], handle_reader(storage))
    assert read(after) == wanted


def test_a_side_with_few_dropped_rows_is_found_when_another_one_is_tidied_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all keys are given up, so the others get new slots on both sides."""
    monkeypatch.setattr("understudy.state.columnar.row_store._FOLLOWED", 2)
    monkeypatch.setattr("understudy.state.columnar.keyed_rows._FEWEST_ROWS", 4)
    backend = keyed(sides=(LEFT, LEFT))
    added(backend, 0, pa.RecordBatch.from_pydict({"key": range(10), "value": range(10)}, SCHEMA))
    added(backend, 1, pa.RecordBatch.from_pydict({"key": [0] + [9] * 6, "value": range(7)}, SCHEMA))
    backend.stores[0].drop(np.arange(10))
    backend.stores[1].drop(np.array([0]))
    backend.tidy()
    (slot,) = backend.slots_of(1, pa.RecordBatch.from_pydict({"key": [9], "value": [0]}, SCHEMA)).tolist()
    rows = found_again(backend.stores[1], slot)
    assert backend.stores[1].reader().take(np.array(rows)).column("value").to_pylist() == [1, 2, 3, 4, 5, 6]


def test_rows_of_other_columns_or_keys_are_refused() -> None:
    handle, reading = stored(filled())
    other = KeptRows(("key",), pa.schema([("key", pa.int64()), ("value", pa.string())]))
    with pytest.raises(StateIncompatible, match="types of input 1"):
        keyed(sides=(other, RIGHT)).restore([handle], reading)
    with pytest.raises(StateIncompatible, match="keys of input 1"):
        keyed(sides=(KeptRows(("value",), SCHEMA), RIGHT)).restore([handle], reading)
    with pytest.raises(StateIncompatible, match="rows of 1 streams"):
        keyed(sides=(LEFT,)).restore([handle], reading)


def test_a_damaged_snapshot_is_refused() -> None:
    handle, reading = stored(filled())
    with pytest.raises(CorruptState, match="a snapshot of rows by key"):
        keyed().restore([handle], lambda each: reading(each)[:-7])
