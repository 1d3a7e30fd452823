"""Frames and payloads: what is encoded is decoded, and anything else is refused by name."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.actors.flow.elements import CheckpointBarrier, EndOfData, Watermark
from understudy.messages import (
    ChannelId,
    CheckpointId,
    MalformedMessage,
    UnsupportedValue,
    pack_plain,
    register_serializer,
    row_type,
)
from understudy.runtime.transport.frames import HEADER_BYTES, FrameKind, Header, pack_header, unpack_header
from understudy.runtime.transport.payloads import decode_element, encode_element
from understudy.state.columns.numbered_rows import NumberedRows
from understudy.state.columns.timed_batch import TimedBatch

INT64 = st.integers(-(2**63), 2**63 - 1)

headers = st.builds(Header, st.sampled_from(FrameKind), INT64.map(ChannelId), st.integers(0, 2**64 - 1), INT64, INT64)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=5)
row_records = st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=4, unique=True).flatmap(
    lambda names: st.lists(st.tuples(*[values] * len(names)).map(row_type(tuple(names))._make), min_size=1)
)
record_lists = st.lists(values, min_size=1) | st.lists(st.tuples(values, values), min_size=1) | row_records

arrow_columns = st.lists(st.none() | st.text(max_size=5), min_size=1, max_size=20)


def header_of(kind: FrameKind, first: int = 0, second: int = 0) -> Header:
    return Header(kind, ChannelId(1), 0, first, second)


def pack_counts(rows: int, sent: int, columns: int) -> bytes:
    """The head of a payload of rows by number."""
    return struct.pack("<QHHxxxx", rows, sent, columns)


def round_trip(element: Any, **limits: int) -> list[Any]:
    contents = encode_element(element, **limits)
    return [decode_element(header_of(c.kind, c.first, c.second), c.payload) for c in contents]


@given(headers)
def test_a_header_survives_the_wire(header: Header) -> None:
    assert unpack_header(pack_header(header)) == header


@given(st.binary(max_size=2 * HEADER_BYTES) | st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_any_other_header_is_malformed(data: bytes) -> None:
    try:
        header = unpack_header(data)
    except MalformedMessage:
        return
    assert pack_header(header) == data


@given(record_lists)
def test_records_survive_the_wire_with_their_types(records: list[Any]) -> None:
    (received,) = round_trip(records)
    assert received == records
    assert list(map(type, received)) == list(map(type, records))


@given(arrow_columns, st.data())
def test_any_slice_of_a_batch_survives_the_wire(column: list[str | None], data: st.DataObject) -> None:
    whole = pa.record_batch({"s": column, "d": pa.array(column).dictionary_encode(), "l": [[c] for c in column]})
    start = data.draw(st.integers(0, len(column) - 1))
    batch = whole.slice(start, data.draw(st.integers(1, len(column) - start)))
    (received,) = round_trip(batch)
    assert received.equals(batch, check_metadata=True)


@given(st.builds(CheckpointBarrier, INT64.map(CheckpointId), INT64) | st.builds(Watermark, INT64))
def test_control_elements_survive_the_wire(element: Any) -> None:
    assert round_trip(element) == [element]


@pytest.mark.parametrize(
    "batch", [[(n, "x" * 50) for n in range(1000)], pa.record_batch({"n": range(10_000)})], ids=["records", "arrow"]
)
def test_a_batch_too_large_for_one_frame_travels_in_order_in_several(batch: Any) -> None:
    parts = round_trip(batch, max_bytes=10_000)
    assert len(parts) > 1
    if isinstance(batch, list):
        assert [record for part in parts for record in part] == batch
    else:
        assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([batch]))


@pytest.mark.parametrize("batch", [["x" * 1000], pa.record_batch({"s": ["x" * 1000]})], ids=["records", "arrow"])
def test_a_record_too_large_for_a_frame_is_refused(batch: Any) -> None:
    with pytest.raises(UnsupportedValue, match="more than 500 bytes"):
        round_trip(batch, max_bytes=500)


@dataclass
class Page:
    address: str
    text: str


@dataclass
class Thumbnail:
    name: str
    rendered: bytes = bytes(5_000)


class OfThumbnails:
    name = "thumbnails"
    version = 1
    type = Thumbnail

    def serialize(self, value: Thumbnail) -> bytes:
        return value.name.encode()

    def deserialize(self, data: bytes, version: int) -> Thumbnail:
        return Thumbnail(data.decode())


HUGE = "x" * 50_000_000


@pytest.mark.parametrize(
    "batch",
    [
        [HUGE] * 4,
        [("a", HUGE)] * 4,
        [{"text": HUGE}] * 4,
        [{"text": [{"parts": [HUGE]}]}],
        [np.zeros(6_000_000)] * 4,
        [Page("a", HUGE)],
        TimedBatch([HUGE] * 4, np.arange(4)),
        *([small] * 3_001 + [("a", HUGE)] + [small] * 3_000 for small in [("a", "b")]),
    ],
    ids=["text", "tuples", "dicts", "nested", "arrays", "dataclass", "timed", "one-of-many"],
)
def test_what_a_huge_record_costs_before_it_is_refused(batch: Any) -> None:
    """Four of 300 MB took 2.4 GB, and one among 5,000 took 4.7: each half was encoded beside the whole."""
    tracemalloc.start()
    try:
        with pytest.raises(UnsupportedValue, match="one record takes more than 1000 bytes"):
            round_trip(batch, max_bytes=1000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3.2 * len(HUGE), "msgpack grows what it writes into, and gives a copy"


def test_a_record_whose_serializer_leaves_out_what_is_large_is_not_called_huge() -> None:
    register_serializer(OfThumbnails())
    assert round_trip([Thumbnail("a")], max_bytes=1000) == [[Thumbnail("a")]]


@pytest.mark.parametrize(
    "element",
    [[object()], [(1, object())], Watermark(2**63)],
    ids=["an object", "an object in a tuple", "a watermark of 64 bits"],
)
def test_what_cannot_travel_is_refused_where_it_is_sent(element: Any) -> None:
    with pytest.raises(UnsupportedValue):
        round_trip(element)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (FrameKind.OPEN, None),
        (FrameKind.PING, None),
        (FrameKind.ARROW, None),
        (FrameKind.BARRIER, b""),
        (FrameKind.ARROW, b""),
        (FrameKind.RECORDS, b""),
        (FrameKind.RECORDS, pack_plain([])),
        (FrameKind.RECORDS, pack_plain({"a": 1})),
        (FrameKind.TUPLES, pack_plain([])),
        (FrameKind.TUPLES, pack_plain([[], []])),
        (FrameKind.TUPLES, pack_plain([[1], [1, 2]])),
        (FrameKind.TUPLES, pack_plain(["ab", "cd"])),
        (FrameKind.ROWS, pack_plain([["a"], [[1], [2]]])),
        (FrameKind.ROWS, pack_plain([[1], [[1]]])),
        (FrameKind.ROWS, pack_plain([["a"]])),
        (FrameKind.ROWS, pack_plain([["a"], 7])),
        (FrameKind.NAMED, b""),
        (FrameKind.NUMBERED, None),
        (FrameKind.NUMBERED, b""),
        (FrameKind.NUMBERED, bytes(16)),
        (FrameKind.NUMBERED, pack_counts(1, 1, 1) + bytes(8)),
        (FrameKind.NUMBERED, pack_counts(1, 1, 1) + bytes(24)),
        (FrameKind.NUMBERED, pack_counts(1, 1, 1) + b"\1" + bytes(15)),
        (FrameKind.NUMBERED, pack_counts(2**61, 1, 1) + bytes(16)),
    ],
)
def test_a_malformed_payload_is_refused(kind: FrameKind, payload: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        decode_element(header_of(kind), payload)


@given(st.data(), st.integers(1, 20), st.integers(1, 4))
def test_rows_by_number_survive_the_wire(data: st.DataObject, count: int, sent: int) -> None:
    listed = data.draw(st.none() | st.sets(st.integers(0, 2**31 - 1), min_size=count, max_size=count))
    first = data.draw(st.integers(0, 2**40))
    numbers = slice(first, first + count) if listed is None else np.array(sorted(listed), np.int32)
    values = tuple(np.arange(count) - each for each in range(sent))
    places = (*range(sent), *data.draw(st.lists(st.integers(0, sent - 1), max_size=5)))
    (received,) = round_trip(NumberedRows(numbers, values, places))
    assert np.array_equal(received.values, values)
    assert received.places == places
    assert received.numbers == numbers if listed is None else np.array_equal(received.numbers, numbers)


@pytest.mark.parametrize("numbers", [(-1,), (3, 3), (4, 3)])
def test_numbers_that_do_not_ascend_are_malformed(numbers: tuple[int, ...]) -> None:
    rows = NumberedRows(np.array(numbers, np.int32), (np.zeros(len(numbers), np.int64),), (0,))
    with pytest.raises(MalformedMessage, match="ascend"):
        round_trip(rows)


def arrow_payload() -> bytes:
    column = pa.array(["JFK", None, "LGA", "EWR"])
    batch = pa.record_batch({"s": column, "d": column.dictionary_encode(), "n": [1, 2, None, 4]})
    (content,) = encode_element(batch)
    return bytes(memoryview(content.payload))  # type: ignore[arg-type]


ARROW_PAYLOAD = arrow_payload()


@pytest.mark.parametrize("name", [b"dep_delay", b"minutes"])
def test_a_column_name_that_is_no_text_is_malformed(name: bytes) -> None:
    nested = pa.array([{"minutes": 1}], pa.struct([("minutes", pa.int64())]))
    (content,) = encode_element(pa.record_batch({"dep_delay": nested}))
    payload = bytes(memoryview(content.payload)).replace(name, b"\x80" * len(name))  # type: ignore[arg-type]
    with pytest.raises(MalformedMessage):
        decode_element(header_of(FrameKind.ARROW), payload)


@example(damage=[(240, 128)])
@given(damage=st.lists(st.tuples(st.integers(0, len(ARROW_PAYLOAD) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_arrow_payload_is_a_batch_or_malformed_but_never_a_crash(damage: list[tuple[int, int]]) -> None:
    payload = bytearray(ARROW_PAYLOAD)
    for position, value in damage:
        payload[position] = value
    try:
        batch = decode_element(header_of(FrameKind.ARROW), bytes(payload))
    except MalformedMessage:
        return
    assert isinstance(batch, pa.RecordBatch)
    batch.to_pylist()


@given(st.integers(0, len(ARROW_PAYLOAD) - 1))
def test_a_cut_arrow_payload_is_malformed_or_lacks_its_end_mark_only(length: int) -> None:
    try:
        batch = decode_element(header_of(FrameKind.ARROW), ARROW_PAYLOAD[:length])
    except MalformedMessage:
        return
    assert batch == decode_element(header_of(FrameKind.ARROW), ARROW_PAYLOAD)


def test_an_empty_batch_is_malformed() -> None:
    (content,) = encode_element(pa.record_batch({"n": pa.array([], pa.int64())}))
    with pytest.raises(MalformedMessage, match="empty"):
        decode_element(header_of(content.kind), content.payload)


def test_end_of_data_fits_into_its_header() -> None:
    (content,) = encode_element(EndOfData())
    assert content.payload is None
