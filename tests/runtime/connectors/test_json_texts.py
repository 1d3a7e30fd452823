"""`json_texts` of columns is what `json_text` gives row by row."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.flow.map_columns import with_dicts
from understudy.runtime.connectors.json_texts import json_text, json_texts, text_bytes

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
    pa.large_string(): st.text('aä"\\\n\t\x00\x1f\x7f\u2028😀'),
    pa.binary(): st.binary(max_size=5),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    pa.duration("ms"): st.integers(-(10**9), 10**9).map(lambda ms: timedelta(milliseconds=ms)),
    pa.decimal128(10, 2): st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=3),
    pa.struct([("a", pa.string())]): st.fixed_dictionaries({"a": st.text('ab"')}),
    pa.map_(pa.date32(), pa.int64()): st.dictionaries(st.dates(), st.integers(0, 9), max_size=3),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["one", 'tw"o']),
}
NAMES = ("plain", "with space", 'qu"ote', "ümlaut", "%s", "back\\slash")


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    rows = draw(st.integers(0, 6))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    columns = []
    for _ in names:
        kind, values = draw(st.sampled_from(list(VALUES.items())))
        may_be_null = values | st.none() if draw(st.booleans()) else values
        columns.append(pa.array(draw(st.lists(may_be_null, min_size=rows, max_size=rows)), kind))
    batch = pa.RecordBatch.from_arrays(columns, names) if names else pa.record_batch({"gone": [1] * rows}).select([])
    first = draw(st.integers(0, rows))
    return batch.slice(first, draw(st.integers(0, rows - first)))


@given(batches(), st.sampled_from(["", "\n"]))
def test_columns_give_the_same_texts_as_rows(batch: pa.RecordBatch, end: str) -> None:
    wanted = [json_text(row) + end for row in with_dicts(batch)]
    texts = json_texts(batch, end)
    assert texts.to_pylist() == wanted
    assert text_bytes(texts) == "".join(wanted).encode()


@pytest.mark.parametrize("wide", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 1e22, 5e-324, 0.1])
def test_a_float_has_the_same_text_in_columns_and_in_rows(number: float, wide: pa.DataType) -> None:
    """Python and JSON write NaN and infinity each in its own way."""
    batch = pa.record_batch({"x": pa.array([1.5, number], wide)})
    assert json_texts(batch).to_pylist() == [json_text(row) for row in batch.to_pylist()]


@given(batches())
def test_the_bytes_of_a_slice_are_those_of_its_texts(batch: pa.RecordBatch) -> None:
    texts = json_texts(batch)
    for first in range(len(texts) + 1):
        assert text_bytes(texts.slice(first, 2)) == "".join(texts.to_pylist()[first : first + 2]).encode()


def test_values_that_json_cannot_hold_are_refused() -> None:
    with pytest.raises(TypeError, match="a object cannot be written as JSON"):
        json_text({"value": object()})


def test_a_date_in_columns_and_in_rows() -> None:
    batch = pa.record_batch({"day": [date(2026, 11, 27)]})
    assert json_texts(batch).to_pylist() == ['{"day": "2026-11-27"}']


def test_a_key_that_json_cannot_have_is_a_text() -> None:
    assert json_text({"m": {date(2024, 1, 2): [{b"\0": 1}], None: 2, 3: Decimal("1.5")}}) == (
        '{"m": {"2024-01-02": [{"AA==": 1}], "null": 2, "3": "1.5"}}'
    )
