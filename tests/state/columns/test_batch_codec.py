"""Batches in files: what is packed is unpacked, and anything else is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import DictRow, MalformedMessage, UnsupportedValue, pack_plain, row_type
from understudy.state import pack_batch, unpack_batch
from understudy.state.columns.batch_codec import BatchFormat

Pair = row_type(("left", "right"))

scalars = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary() | st.booleans()
record_lists = (
    st.lists(scalars, min_size=1)
    | st.lists(st.tuples(scalars, scalars), min_size=1)
    | st.lists(st.tuples(scalars, scalars).map(Pair._make), min_size=1)
    | st.lists(st.dictionaries(st.text(), scalars), min_size=1)
    | st.lists(st.dictionaries(st.text(), scalars).map(DictRow), min_size=1)
    | st.lists(st.fixed_dictionaries({"left": scalars, "right": scalars}), min_size=1)
    | st.lists(st.fixed_dictionaries({"left": scalars, "right": scalars}).map(DictRow), min_size=1)
    | st.lists(st.permutations(["a", "b"]).map(lambda names: dict.fromkeys(names, 0)), min_size=1)
)


@given(record_lists)
def test_records_come_back_with_their_types(records: list[Any]) -> None:
    found = unpack_batch(pack_batch(records))
    assert found == records
    assert list(map(type, found)) == list(map(type, records))
    assert repr(found) == repr(records)  # the order of a dict's items too


@pytest.mark.parametrize(
    ("records", "format"),
    [
        ([{"a": 1, "b": 2}, {"a": 3, "b": 4}], BatchFormat.DICTS),
        ([DictRow(a=1), DictRow(a=2)], BatchFormat.DICT_ROWS),
        ([{"a": 1}, {"b": 2}], BatchFormat.RECORDS),
        ([{"a": 1, "b": 2}, {"b": 3, "a": 4}], BatchFormat.RECORDS),
        ([{}, {}], BatchFormat.RECORDS),
        ([{1: "a"}], BatchFormat.RECORDS),
        ([DictRow(a=1), DictRow(b=2)], BatchFormat.MIXED_DICT_ROWS),
        ([DictRow(a=1), {"a": 2}], BatchFormat.RECORDS),
    ],
    ids=repr,
)
def test_dicts_of_the_same_names_are_written_as_columns(records: list[Any], format: BatchFormat) -> None:
    data = pack_batch(records)
    assert data[0] == format
    assert list(map(type, unpack_batch(data))) == list(map(type, records))


@pytest.mark.parametrize("format", [BatchFormat.DICTS, BatchFormat.DICT_ROWS, BatchFormat.MIXED_DICT_ROWS])
@pytest.mark.parametrize(
    "content",
    [
        [],
        [[], []],
        [["a"], [[]]],
        [["a"], [[1], [2]]],
        [["a", "b"], [[1], [2, 3]]],
        [["a", "b"], [[1, 2], [3]]],
        [["a", "a"], [[1], [2]]],
        [[1], [[1]]],
        [["a"], ["x"]],
        [["a", "b"], [[1], 2]],
        {"a": 1},
        [1],
    ],
    ids=repr,
)
def test_columns_that_make_no_dicts_are_malformed(format: BatchFormat, content: Any) -> None:
    with pytest.raises(MalformedMessage):
        unpack_batch(bytes([format]) + pack_plain(content))


@given(st.lists(st.none() | st.text(), min_size=1), st.integers(0, 20))
def test_any_slice_of_an_arrow_batch_comes_back(texts: list[str | None], start: int) -> None:
    batch = pa.record_batch({"t": pa.array(texts, pa.string())})
    part = batch.slice(min(start, len(texts) - 1))
    assert unpack_batch(pack_batch(part)).equals(part)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x15", b"\x14 no stream", b"\x15\x90", b"\xff\x90"])
def test_anything_else_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        unpack_batch(data)


def test_a_record_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnsupportedValue, match="object"):
        pack_batch([object()])
