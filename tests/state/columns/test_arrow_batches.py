"""Long batches, whose columns NumPy looks at first: whatever passes is what Arrow's full validation lets pass."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import MalformedMessage
from understudy.state.columns.arrow_batches import decode_batch, encode_batch

ROWS = 5_000
TEXTS = [f"key-{number % 700}" for number in range(ROWS)]
COLUMNS: dict[str, pa.Array] = {
    "string": pa.array(TEXTS),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "binary": pa.array(TEXTS, pa.binary()),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
}


def payload_of(*names: str) -> bytearray:
    return bytearray(memoryview(encode_batch(pa.record_batch({name: COLUMNS[name] for name in names}))))


def place_of(payload: bytearray, name: str, buffer: int) -> tuple[int, int]:
    """Where a buffer of this column begins and ends in the payload."""
    frozen = pa.py_buffer(bytes(payload))
    batch = decode_batch(frozen)
    found = batch.column(batch.schema.get_field_index(name)).buffers()[buffer]
    begin = found.address - frozen.address
    return begin, begin + found.size


@pytest.mark.parametrize("texts", [TEXTS, ["žluťoučký kůň"] * ROWS, [None, "a"] * ROWS, [""] * ROWS])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())])
def test_text_of_any_kind_arrives(texts: list[str | None], kind: pa.DataType) -> None:
    column = pa.array(texts).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(texts, kind)
    for batch in (pa.record_batch({"c": column}), pa.record_batch({"c": column}).slice(100, 4500)):
        assert decode_batch(encode_batch(batch)).equals(batch)


def test_a_payload_shares_no_memory_with_its_batch() -> None:
    numbers = pa.array(range(ROWS))
    payload = encode_batch(pa.record_batch({"n": numbers}))
    begin = numbers.buffers()[1].address
    assert not payload.address <= begin < payload.address + payload.size


@pytest.mark.parametrize("value", [-1, 2**31 - 1, -(2**31)], ids=["negative", "far out", "most negative"])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", COLUMNS)
def test_an_offset_or_index_out_of_order_is_malformed(name: str, at: float, value: int) -> None:
    payload = payload_of(name)
    width = 8 if name == "large_string" else 4
    begin, _ = place_of(payload, name, 1)
    last = ROWS - 1 if name == "dictionary" else ROWS
    position = begin + int(at * last) * width
    payload[position : position + width] = value.to_bytes(width, "little", signed=True)
    with pytest.raises(MalformedMessage):
        decode_batch(bytes(payload))


def test_text_that_is_no_utf8_is_malformed_and_bytes_may_be_anything() -> None:
    payload = payload_of("string")
    begin, _ = place_of(payload, "string", 2)
    payload[begin + 10] = 0xFF
    with pytest.raises(MalformedMessage):
        decode_batch(bytes(payload))
    payload = payload_of("binary")
    begin, _ = place_of(payload, "binary", 2)
    payload[begin + 10] = 0xFF
    assert decode_batch(bytes(payload)).num_rows == ROWS


ALL = bytes(payload_of(*COLUMNS))


@given(st.lists(st.tuples(st.integers(0, len(ALL) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_whatever_damaged_payload_passes_would_pass_full_validation(damage: list[tuple[int, int]]) -> None:
    payload = bytearray(ALL)
    for position, value in damage:
        payload[position] = value
    try:
        batch = decode_batch(bytes(payload))
    except MalformedMessage:
        return
    batch.validate(full=True)
