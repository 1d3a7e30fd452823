"""Thrift's compact protocol: what is read is written again byte by byte, and skipped to the same place."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.runtime.connectors.thrift_compact import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Elements,
    Field,
    MalformedThrift,
    Struct,
    read_struct,
    skip_struct,
    write_struct,
)

INTS = st.integers(-(2**63), 2**63 - 1)
PLAIN = {
    I32: INTS,
    I64: INTS,
    BYTE: st.integers(0, 255),
    BINARY: st.binary(max_size=40),
    DOUBLE: st.binary(min_size=8, max_size=8),
}


def lists(structs: Any) -> Any:
    kinds: dict[int, Any] = {**PLAIN, TRUE: st.booleans(), STRUCT: structs}
    return st.sampled_from(sorted(kinds)).flatmap(
        lambda kind: st.lists(kinds[kind], max_size=20).map(lambda values: Elements(kind, values))
    )


def structs_of(structs: Any) -> Any:
    fields = st.one_of(
        st.booleans().map(lambda value: Field(TRUE if value else FALSE, value)),
        *(values.map(lambda value, kind=kind: Field(kind, value)) for kind, values in PLAIN.items()),
        structs.map(lambda value: Field(STRUCT, value)),
        lists(structs).map(lambda value: Field(LIST, value)),
    )
    return st.dictionaries(st.integers(1, 2**15 - 1), fields, max_size=6)


STRUCTS = st.recursive(st.just({}), structs_of, max_leaves=8)


@given(struct=STRUCTS, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_what_was_written_is_read_again(struct: Struct, before: bytes, after: bytes) -> None:
    written = write_struct(struct)
    data, end = before + written + after, len(before) + len(written)
    assert read_struct(data, len(before)) == (struct, end)
    assert skip_struct(data, len(before)) == end


def test_the_footer_of_a_parquet_file_is_written_again_byte_by_byte() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", None], "c": [[1], []]}), file, write_page_index=True)
    data = file.getvalue()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    struct, end = read_struct(footer)
    assert end == len(footer)
    assert write_struct(struct) == footer


@given(struct=STRUCTS, data=st.data())
def test_bytes_that_end_too_soon_are_malformed(struct: Struct, data: st.DataObject) -> None:
    written = write_struct(struct)
    cut = data.draw(st.integers(0, len(written) - 1))
    with pytest.raises(MalformedThrift):
        read_struct(written[:cut])
    with pytest.raises(MalformedThrift):
        skip_struct(written[:cut], 0)


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_struct_or_malformed(data: bytes) -> None:
    for read in (read_struct, skip_struct):
        try:
            read(data, 0)
        except MalformedThrift:
            continue


def test_a_struct_nested_without_end_is_malformed() -> None:
    with pytest.raises(MalformedThrift, match="deep"):
        read_struct(b"\x1c" * 5_000)
    with pytest.raises(MalformedThrift, match="deep"):
        skip_struct(b"\x1c" * 5_000, 0)
