"""Runs in sections: of each key the newest run that has it counts, whatever the key is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from understudy.state.columnar.section_runs import newest_rows

KEYS: Mapping[str, list[Any]] = {
    "int": list(range(9)),
    "text": ["", *"abcdefg"],
    "float": [math.nan, math.inf, *(n / 2 for n in range(5))],
    "decimal": [Decimal(n).scaleb(-1) for n in range(7)],
    "bytes": [b"", b"a", b"ab", b"b"],
    "bool": [False, True],
}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kinds", [*((kind,) for kind in KEYS), ("int", "text"), ("text", "float", "int")])
def test_of_each_key_the_rows_of_the_newest_run_are_left(kinds: tuple[str, ...], seed: int) -> None:
    """A key may have several rows in a run, and a run may be empty."""
    draw = Random(seed)
    keys = [tuple(draw.choice(KEYS[kind]) for kind in kinds) for _ in range(8)]
    runs = [[draw.choice(keys) for _ in range(draw.choice((0, 1, 3, 20)))] for _ in range(draw.randint(1, 5))]
    types = [pa.array(KEYS[kind]).type for kind in kinds]
    names = [f"key {place}" for place in range(len(kinds))]
    batches = [
        pa.RecordBatch.from_arrays(
            [
                *(pa.array([key[place] for key in run], kind) for place, kind in enumerate(types)),
                pa.array(range(len(run)), pa.int64()),
            ],
            names=[*names, "row"],
        )
        for run in runs
    ]
    newest = {str(key): number for number, run in enumerate(runs) for key in run}
    wanted = [[row for row, key in enumerate(run) if newest[str(key)] == number] for number, run in enumerate(runs)]
    assert [batch.column("row").to_pylist() for batch in newest_rows(batches, names)] == wanted


def test_keys_of_two_columns_are_not_taken_for_each_other_however_many_there_are() -> None:
    """More second columns than 16 bits can number."""
    many = 1 << 16
    first = pa.RecordBatch.from_pydict({"one": pa.array([0] * (many + 9)), "other": pa.array(range(many + 9))})
    second = pa.RecordBatch.from_pydict({"one": [1] * 9, "other": list(range(9))})
    assert [batch.num_rows for batch in newest_rows([first, second], ["one", "other"])] == [many + 9, 9]
