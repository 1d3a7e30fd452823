"""What a channel knows of its keys, before their rows are taken in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy.state.columnar.columnar_table import ColumnarTable
from understudy.state.columnar.known_rows import KnownKeys, KnownRows
from understudy.state.columns.numbered_rows import NamedRows, NumberedRows
from understudy.state.kinds.aggregates import Count

BATCHES, KEYS = 40, 5
"""Keys come in so many batches of so many, and all of them wait."""


class Watched(NamedRows):
    """Counts how often it is looked into."""

    looks = 0

    def __init__(self, first: int, rows: pa.RecordBatch) -> None:
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "rows", rows)

    @property
    def records(self) -> pa.RecordBatch:
        Watched.looks += 1
        return self.rows  # type: ignore[attr-defined]


def named(index: int, make: type[NamedRows] = NamedRows) -> NamedRows:
    first = index * KEYS
    return make(first, pa.record_batch({"k": list(range(first, first + KEYS)), "count(*)": [1] * KEYS}))


def numbered(numbers: Any) -> NumberedRows:
    count = numbers.stop - numbers.start if isinstance(numbers, slice) else len(numbers)
    kept = numbers if isinstance(numbers, slice) else np.array(numbers, np.int32)
    return NumberedRows(kept, (np.ones(count, np.int64),), (0,))


def waiting(make: type[NamedRows] = NamedRows) -> tuple[KnownKeys, list[KnownRows]]:
    known = KnownKeys(["k"], {"rows": Count()}, named(0))
    return known, [known.receive(named(index, make)) for index in range(BATCHES)]


@pytest.mark.parametrize("taken", [0, 1, 3, BATCHES])
@pytest.mark.parametrize(
    "numbers",
    [
        slice(0, KEYS),
        slice(KEYS - 1, 3 * KEYS + 1),
        slice(0, BATCHES * KEYS),
        slice(BATCHES * KEYS - 1, BATCHES * KEYS),
        [0],
        [1, KEYS - 1, KEYS, 3 * KEYS, 3 * KEYS + 1, BATCHES * KEYS - 1],
        list(range(0, BATCHES * KEYS, 3)),
    ],
    ids=str,
)
def test_keys_are_found_wherever_they_were_named(numbers: Any, taken: int) -> None:
    """In the table, in one of the batches that wait, or in several."""
    known, rows = waiting()
    table = ColumnarTable.for_partials(["k"], {"rows": Count()}, rows[0].schema)
    table.merge(pa.record_batch({"k": [-1, 3], "count(*)": [1, 1]}))  # others' keys: slots are not numbers
    for each in rows[:taken]:
        table.merge_known(each)
    wanted = list(range(numbers.start, numbers.stop)) if isinstance(numbers, slice) else numbers
    assert known.receive(numbered(numbers)).expanded()["k"].to_pylist() == wanted


def test_only_the_batches_that_have_named_its_keys_are_looked_into_for_a_row() -> None:
    """Where many batches wait, each with new keys, as many come behind them: to look into all for each is a product."""
    known, _ = waiting(Watched)
    stored = [known.receive(numbered(slice(index * KEYS, index * KEYS + 2))) for index in range(BATCHES)]
    Watched.looks = 0
    assert [each.expanded()["k"].to_pylist() for each in stored] == [[k, k + 1] for k in range(0, BATCHES * KEYS, KEYS)]
    assert Watched.looks < 4 * BATCHES
