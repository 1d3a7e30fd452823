"""Batches in files: what is packed is unpacked, and anything else is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import MalformedMessage, UnsupportedValue, row_type
from understudy.state import pack_batch, unpack_batch

Pair = row_type(("left", "right"))

scalars = st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary() | st.booleans()
record_lists = (
    st.lists(scalars, min_size=1)
    | st.lists(st.tuples(scalars, scalars), min_size=1)
    | st.lists(st.tuples(scalars, scalars).map(Pair._make), min_size=1)
    | st.lists(st.dictionaries(st.text(), scalars), min_size=1)
)


@given(record_lists)
def test_records_come_back_with_their_types(records: list[Any]) -> None:
    found = unpack_batch(pack_batch(records))
    assert found == records
    assert list(map(type, found)) == list(map(type, records))


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
