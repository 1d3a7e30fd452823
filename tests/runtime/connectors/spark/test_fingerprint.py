"""Fingerprint: the rows alone decide, not how they came in batches, and every value counts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.messages import pack_plain, unpack_plain
from understudy.runtime.connectors import Fingerprint

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [0, 1, -5]),
    "int8": (pa.int8(), [0, 1, -5]),
    "float": (pa.float64(), [0.0, 1.5, -2.0]),
    "bool": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["", "a", "ab", "b"]),
    "large_binary": (pa.large_binary(), [b"", b"a", b"\0"]),
    "string_view": (pa.string_view(), ["", "a", "a string that is longer than what a view holds inline"]),
    "fixed_binary": (pa.binary(3), [b"\0\0\0", b"abc"]),
    "decimal": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("1.25")]),
    "timestamp": (pa.timestamp("us", "UTC"), [0, 1_700_000_000_000_000]),
    "date": (pa.date32(), [0, 20_000]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", ""]),
    "list": (pa.list_(pa.int32()), [[], [0], [0, 0], [None], [1, 2, 3]]),
    "fixed_list": (pa.list_(pa.int32(), 2), [[0, 0], [1, None]]),
    "map": (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], [("a", None), ("b", 0)]]),
    "struct": (
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
        [{"x": 0, "y": []}, {"x": None, "y": ["a", None]}, {"x": 0, "y": None}],
    ),
}
kinds = pytest.mark.parametrize("kind", KINDS)
few = settings(max_examples=30, deadline=None)


def values(kind: str, min_size: int = 0) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | st.sampled_from(KINDS[kind][1]), min_size=min_size, max_size=12)


def batch_of_values(kind: str, column: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"column": pa.array(column, KINDS[kind][0])})


def fingerprint(*batches: pa.RecordBatch) -> list[int]:
    made = Fingerprint()
    for batch in batches:
        made.update(batch)
    return made.state


@kinds
@few
@given(data=st.data())
def test_batch_boundaries_and_slices_do_not_matter(kind: str, data: st.DataObject) -> None:
    column = data.draw(values(kind))
    whole = batch_of_values(kind, [None, *column, None]).slice(1, len(column))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(column)), max_size=3)))
    edges = list(zip([0, *cuts], [*cuts, len(column)], strict=True))
    expected = fingerprint(batch_of_values(kind, column))
    assert fingerprint(whole) == expected
    assert fingerprint(*(whole.slice(start, end - start) for start, end in edges)) == expected
    assert fingerprint(*(batch_of_values(kind, column[start:end]) for start, end in edges)) == expected


@kinds
@few
@given(data=st.data())
def test_every_other_column_of_values_has_another_fingerprint(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(values(kind)), data.draw(values(kind))
    same = fingerprint(batch_of_values(kind, one)) == fingerprint(batch_of_values(kind, other))
    assert same == (one == other)


@kinds
@few
@given(data=st.data())
def test_values_that_change_place_change_it(kind: str, data: st.DataObject) -> None:
    column = data.draw(values(kind, min_size=1))
    moved = column[1:] + column[:1]
    same = fingerprint(batch_of_values(kind, column)) == fingerprint(batch_of_values(kind, moved))
    assert same == (column == moved)


def test_what_lies_under_a_null_does_not_matter() -> None:
    valid = pa.array([True, False, True])
    dirty = pa.Array.from_buffers(pa.int64(), 3, [valid.buffers()[1], pa.array([1, 99, 3]).buffers()[1]])
    clean = pa.array([1, None, 3])
    assert fingerprint(pa.record_batch({"a": dirty})) == fingerprint(pa.record_batch({"a": clean}))


def test_columns_that_change_places_change_it() -> None:
    a, b = pa.array([1, 2]), pa.array([3, 4])
    assert fingerprint(pa.record_batch({"a": a, "b": b})) != fingerprint(pa.record_batch({"a": b, "b": a}))


def test_it_goes_on_from_its_state_as_a_checkpoint_stores_it() -> None:
    first, second = pa.record_batch({"a": ["x", None]}), pa.record_batch({"a": ["y"]})
    resumed = Fingerprint(unpack_plain(pack_plain(fingerprint(first))))
    resumed.update(second)
    assert resumed.state == fingerprint(first, second)
