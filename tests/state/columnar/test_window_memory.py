"""Columnar windows keep nothing of keys that are in no open window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.state.columnar.open_panes import OpenPanes
from understudy.state.columnar.pane_table import PaneTable
from understudy.state.columnar.pane_windows import sliding_panes, tumbling_panes
from understudy.state.columnar.part_columns import ROWS
from understudy.state.columnar.session_table import SessionTable
from understudy.state.columnar.window_rows import WindowRows
from understudy.state.kinds.aggregates import Aggregate, Count, Min, Part

SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64()})
AGGREGATES: dict[str, Aggregate] = {"rows": Count(), "least": Min("value")}
KEYS = 20_000

TABLES: dict[str, Any] = {
    "tumbling": lambda rows: PaneTable(tumbling_panes(100), rows),
    "sliding": lambda rows: PaneTable(sliding_panes(200, 100), rows),
    "session": lambda rows: SessionTable(10, rows),
    "session with lateness": lambda rows: SessionTable(10, rows, 50),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_growing_key_space_takes_no_more_memory_and_loses_nothing(kind: str) -> None:
    table = TABLES[kind](WindowRows.of_input(["key"], AGGREGATES, SCHEMA))
    known, seen = [], []
    for number in range(30):
        keys = np.arange(number * KEYS, (number + 1) * KEYS) * 7_919
        batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys % 1_000)], schema=SCHEMA)
        table.update(batch, np.full(KEYS, number * 100 + 50))
        more = True
        while more:
            results, more = table.fire(number * 100 - 1)
            seen += [result.batch for result in results]
        known.append(table.key_count)
    assert max(known) <= 9 * KEYS, "of thirty times as many keys"
    assert max(known[15:]) <= max(known[:15])
    whole = pa.Table.from_batches(seen).to_pydict()
    assert set(whole["rows"]) == {1}
    assert np.array_equal(np.array(whole["key"]) % 1_000, whole["least"]), "each key still has its own value"
    windows = 2 if kind == "sliding" else 1
    gone = 28 if kind == "sliding" else 29
    assert len(whole["key"]) >= windows * (gone - 1) * KEYS


def test_a_pane_of_many_rows_is_not_followed_by_many_with_room_for_all_keys() -> None:
    """400 rows in 400 windows, after a window of a million rows and half a million keys, took 3 GB and 20 s."""
    panes = OpenPanes(tumbling_panes(100), {ROWS: pa.int64(), Part("min", "value"): pa.int64()})
    panes.opened(0).places_of(np.arange(20 * KEYS) % KEYS, KEYS)
    assert [number for number, _ in panes.take_out(1)] == [0]
    for number in range(1, 101):
        panes.opened(number).places_of(np.array([number]), KEYS)
    arrays = [running.values for pane in panes.all for _, running in pane.parts.own()]
    assert len(list(panes.all)) == 100
    assert sum(map(len, arrays)) < 10 * KEYS
