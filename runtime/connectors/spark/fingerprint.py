"""Fingerprint: a running checksum of the rows of a stream of Arrow batches, whatever the batches' boundaries.

Each column is taken apart into lanes, streams of bytes that only depend on the values: whether each value is there,
the bytes of fixed-width values (zero where null), the lengths of strings and lists, the bytes of strings, and the
lanes of what is nested. A lane's state is its CRC-32. How many lanes there are, and in which order, follows from
the schema alone. Everything is vectorised: no Python per row.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_Lane: TypeAlias = Any
"""An array or an Arrow buffer: contiguous bytes."""


class Fingerprint:
    """Of the rows seen so far. `state` is plain data; a Fingerprint made from it goes on where the other stood."""

    __slots__ = ("_lanes",)

    def __init__(self, state: Sequence[int] = ()) -> None:
        self._lanes = list(state)

    @property
    def state(self) -> list[int]:
        """One CRC-32 per lane; empty before the first row."""
        return list(self._lanes)

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in the rows of `batch`; all batches have one schema."""
        if not batch.num_rows:
            return
        lanes = [lane for column in batch.columns for lane in _lanes(column)]
        if not self._lanes:
            self._lanes = [0] * len(lanes)
        self._lanes = [zlib.crc32(data, crc) for data, crc in zip(lanes, self._lanes, strict=True)]


def _lanes(array: pa.Array) -> Iterator[_Lane]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _lanes(array.storage)
    elif pa.types.is_dictionary(kind):
        yield from _lanes(array.dictionary_decode())
    elif pa.types.is_run_end_encoded(kind):
        yield from _lanes(pc.run_end_decode(array))
    elif pa.types.is_string_view(kind):
        yield from _lanes(array.cast(pa.large_string()))
    elif pa.types.is_binary_view(kind):
        yield from _lanes(array.cast(pa.large_binary()))
    else:
        valid = _validity(array)
        yield valid
        yield from _value_lanes(array, valid)


def _value_lanes(array: pa.Array, valid: np.ndarray[Any, Any]) -> Iterator[_Lane]:
    kind = array.type
    if pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        for child in array.flatten():  # a child is null wherever the struct is
            yield from _lanes(child)
    elif pa.types.is_map(kind):
        yield from _map_lanes(_without_nulls(array))
    elif _is_list(kind):
        present = _without_nulls(array)
        yield _as_int64(pc.list_value_length(present))
        yield from _lanes(present.flatten())
    elif _is_binary(kind):
        yield from _binary_lanes(_without_nulls(array))
    elif pa.types.is_boolean(kind):
        yield from _fixed_width_lane(array.cast(pa.uint8()), valid)
    else:
        yield from _fixed_width_lane(array, valid)


def _validity(array: pa.Array) -> np.ndarray[Any, Any]:
    """A byte per value: 1 where there is one. Bits would depend on where a batch begins."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.uint8)
    return array.is_valid().cast(pa.uint8()).to_numpy()  # type: ignore[no-any-return]


def _fixed_width_lane(array: pa.Array, valid: np.ndarray[Any, Any]) -> Iterator[_Lane]:
    width = array.type.byte_width
    data = array.buffers()[1]
    if data is None:  # no values at all
        yield np.zeros(len(array) * width, dtype=np.uint8)
        return
    data = data.slice(array.offset * width, len(array) * width)
    if array.null_count:
        yield np.frombuffer(data, dtype=np.uint8).reshape(len(array), width) * valid[:, np.newaxis]
    else:
        yield data


def _binary_lanes(array: pa.Array) -> Iterator[_Lane]:
    kind = array.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    _, offset_buffer, data = array.buffers()
    if not len(array) or offset_buffer is None:
        yield np.zeros(0, dtype=np.int64)
        yield np.zeros(0, dtype=np.uint8)
        return
    offsets = np.frombuffer(offset_buffer, dtype=np.int64 if wide else np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    yield np.diff(offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    yield data.slice(first, last - first) if last > first else np.zeros(0, dtype=np.uint8)


def _map_lanes(array: pa.MapArray) -> Iterator[_Lane]:
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    yield np.diff(offsets)
    yield from _lanes(array.keys.slice(first, last - first))
    yield from _lanes(array.items.slice(first, last - first))


def _without_nulls(array: pa.Array) -> pa.Array:
    """A null string or list may still have bytes under it; they do not count."""
    return array.drop_null() if array.null_count else array


def _as_int64(lengths: pa.Array) -> np.ndarray[Any, Any]:
    return lengths.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )
