"""UnpackedRowGroup: a row group of a Parquet file as a file of its own in memory, its Snappy pages decompressed.

Arrow's reader spends two thirds of its time in Snappy, and the decompressor of `cramjam` takes half as long for the
same pages. So the pages go through that one first; Arrow then reads a file that is not compressed. Nothing is decoded
here: headers are read and written as Thrift structs, values stay bytes. Without `cramjam`, and for whatever else this
does not do, Arrow gets the file as it is.

Numbers of fields are those of `parquet.thrift` of the Apache Parquet format.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from .thrift_compact import (
    FALSE,
    I32,
    I64,
    STRUCT,
    Field,
    MalformedThrift,
    Struct,
    read_int,
    read_struct,
    skip_struct,
    write_int,
    write_struct,
)

cramjam: Any
try:
    import cramjam
except ImportError:  # it is an extra
    cramjam = None

MOST_BYTES = 32 * 1024 * 1024
"""Larger row groups are left to Arrow, which decompresses them page by page: memory, and the time of a step."""
_MOST_FOOTER_BYTES = 64 * 1024
"""A larger footer, of many columns or row groups, takes longer to read in Python than is gained."""

_ALIGNED = 64

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_UNCOMPRESSED, _SNAPPY = 0, 1
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3

# FileMetaData, RowGroup, ColumnChunk
_ROWS, _ROW_GROUPS, _ENCRYPTION = 3, 4, 8
_CHUNKS, _ROWS_OF_GROUP = 1, 3
_FILE_PATH, _COLUMN, _CRYPTO = 1, 3, 8
_INDEXES = (4, 5, 6, 7)
# ColumnMetaData
_PATH, _CODEC = 3, 4
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 6, 7
_DATA_OFFSET, _INDEX_OFFSET, _DICTIONARY_OFFSET = 9, 10, 11
_BLOOM_FILTER = (14, 15)
# PageHeader and DataPageHeaderV2
_PAGE_TYPE, _PAGE_SIZE, _PAGE_COMPRESSED_SIZE, _PAGE_CHECKSUM, _PAGE_V2 = 1, 2, 3, 4, 8
_DEFINITION_BYTES, _REPETITION_BYTES, _IS_COMPRESSED = 5, 6, 7

_NO = Field(FALSE, False)

_NEXT_I32 = 1 << 4 | I32
_PLAIN_HEADERS = ((5 - 3) << 4 | STRUCT, (7 - 3) << 4 | STRUCT)
"""How the header of a data page of version 1, or of a dictionary, goes on after its first three fields."""


@dataclass(frozen=True, slots=True)
class _Page:
    header: bytes
    """As it will be."""
    kind: int
    size: int
    """Decompressed."""
    plain: memoryview
    """Its bytes that are not compressed: levels, in a page of version 2."""
    packed: memoryview
    end: int
    """Of the page as it was, in its chunk."""

    @property
    def total(self) -> int:
        return len(self.header) + self.size


def unpacked_row_group(file: BinaryIO, row_group: int, columns: Collection[str]) -> pa.Buffer | None:
    """A Parquet file with this row group alone, of which only these columns can be read; None if it is to be read from
    the file as it is, also because that is no Parquet file.
    """
    if cramjam is None:
        return None
    try:
        return _unpacked(file, row_group, {name.encode() for name in columns})
    except (MalformedThrift, LookupError, AttributeError, TypeError, ValueError, cramjam.DecompressionError):
        return None  # Arrow says what is wrong


def _unpacked(file: BinaryIO, row_group: int, columns: Collection[bytes]) -> pa.Buffer | None:
    metadata = _read_footer(file)
    if metadata is None or _ENCRYPTION in metadata:
        return None
    groups = metadata[_ROW_GROUPS].value
    group: Struct = groups.values[row_group]
    chunks = [chunk for chunk in group[_CHUNKS].value.values if chunk[_COLUMN].value[_PATH].value.values[0] in columns]
    if not _is_for_us(chunks):
        return None
    pages: list[_Page] = []
    at = len(_MAGIC)
    columns_read = [chunk[_COLUMN].value for chunk in chunks]
    for column, data in zip(columns_read, _read_chunks(file, columns_read), strict=True):
        own = list(_pages(data, column[_CODEC].value == _SNAPPY))
        _relocate(column, own, at)
        at += sum(page.total for page in own)
        pages += own
    for chunk in group[_CHUNKS].value.values:
        for field in _INDEXES:
            chunk.pop(field, None)
    metadata[_ROW_GROUPS] = metadata[_ROW_GROUPS]._replace(value=groups._replace(values=[group]))
    metadata[_ROWS] = group[_ROWS_OF_GROUP]
    return _written(pages, at, write_struct(metadata))


def _read_footer(file: BinaryIO) -> Struct | None:
    size = file.seek(0, 2)
    if size < _TAIL_BYTES:
        return None
    file.seek(size - _TAIL_BYTES)
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > min(_MOST_FOOTER_BYTES, size - _TAIL_BYTES):
        return None
    file.seek(size - _TAIL_BYTES - length)
    return read_struct(file.read(length))[0]


def _is_for_us(chunks: list[Struct]) -> bool:
    """Whether all can be unpacked, and any is worth it."""
    columns = [chunk[_COLUMN].value for chunk in chunks]
    codecs = {column[_CODEC].value for column in columns}
    return (
        _SNAPPY in codecs <= {_SNAPPY, _UNCOMPRESSED}
        and all(
            sum(column[field].value for column in columns) <= MOST_BYTES
            for field in (_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE)
        )
        and not any(_FILE_PATH in chunk or _CRYPTO in chunk for chunk in chunks)
    )


def _read_chunks(file: BinaryIO, columns: Sequence[Struct]) -> Iterator[memoryview]:
    """The bytes of each column chunk, valid until the thread reads the next row group."""
    sizes = [column[_COMPRESSED_SIZE].value for column in columns]
    memory = _kept.of(sum(sizes))
    for column, size in zip(columns, sizes, strict=True):
        start = min(column[field].value for field in (_DATA_OFFSET, _DICTIONARY_OFFSET) if field in column)
        file.seek(start)
        chunk, memory = memory[:size], memory[size:]
        if (found := file.readinto(chunk)) != size:  # type: ignore[attr-defined]  # each file of fsspec's has it
            raise ValueError(f"wanted {size} bytes at {start}, found {found}")
        yield chunk


class _KeptMemory(threading.local):
    """For compressed pages, which nobody needs any longer once they are unpacked, so it is used again. NumPy's, as
    Arrow's allocator would keep more beside it; aligned, as the kernel copies to it more quickly.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def of(self, size: int) -> memoryview:
        if len(self._memory) < size + _ALIGNED:
            self._memory = np.empty(size + size // 8 + _ALIGNED, np.uint8)
        start = -self._memory.ctypes.data % _ALIGNED
        return memoryview(self._memory)[start : start + size]  # type: ignore[arg-type]


_kept = _KeptMemory()


def _pages(data: memoryview, is_packed: bool) -> Iterator[_Page]:
    at = 0
    while at < len(data):
        page = _plain_page(data, at, is_packed) or _any_page(data, at, is_packed)
        at = page.end
        yield page


def _plain_page(data: memoryview, at: int, is_packed: bool) -> _Page | None:
    """What `_any_page` returns, without a look at most of the header, as there are many pages; None for most kinds."""
    numbers = []
    for _ in range(3):
        if data[at] != _NEXT_I32:
            return None
        number, at = read_int(data, at + 1)
        numbers.append(number)
    kind, size, packed_size = numbers
    if data[at] not in _PLAIN_HEADERS:
        return None
    header = bytearray()
    for number in (kind, size, size):
        header.append(_NEXT_I32)
        write_int(header, number)
    begin = skip_struct(data, at)
    header += data[at:begin]
    return _page(bytes(header), kind, size, data, begin, packed_size, 0 if is_packed else packed_size)


def _any_page(data: memoryview, at: int, is_packed: bool) -> _Page:
    header, begin = read_struct(data, at)
    kind, size, packed_size = (header[field].value for field in (_PAGE_TYPE, _PAGE_SIZE, _PAGE_COMPRESSED_SIZE))
    levels = 0
    if kind == _DATA_PAGE_V2:
        version_2: Struct = header[_PAGE_V2].value
        levels = version_2[_DEFINITION_BYTES].value + version_2[_REPETITION_BYTES].value
        is_packed = is_packed and (_IS_COMPRESSED not in version_2 or version_2[_IS_COMPRESSED].value)
        version_2[_IS_COMPRESSED] = _NO
    header.pop(_PAGE_CHECKSUM, None)
    header[_PAGE_COMPRESSED_SIZE] = header[_PAGE_SIZE]
    plain = levels if is_packed else packed_size
    return _page(write_struct(header), kind, size, data, begin, packed_size, plain)


def _page(
    header: bytes, kind: int, size: int, data: memoryview, begin: int, packed_size: int, plain_size: int
) -> _Page:
    """The page whose bytes begin at `begin`."""
    end, middle = begin + packed_size, begin + plain_size
    if not begin <= middle <= end <= len(data) or not plain_size <= size <= MOST_BYTES:
        raise ValueError(f"a page of {packed_size} bytes at {begin} of {len(data)}, {size} when decompressed")
    if kind not in (_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2):
        raise ValueError(f"a page of type {kind}")
    return _Page(header, kind, size, data[begin:middle], data[middle:end], end)


def _relocate(column: Struct, pages: list[_Page], at: int) -> None:
    """Have a column's metadata say that these are its pages, from `at` on."""
    total = sum(page.total for page in pages)
    for field in (_DATA_OFFSET, _INDEX_OFFSET, _DICTIONARY_OFFSET, *_BLOOM_FILTER):
        column.pop(field, None)
    for page in pages:
        column.setdefault(_DICTIONARY_OFFSET if page.kind == _DICTIONARY_PAGE else _DATA_OFFSET, Field(I64, at))
        at += page.total
    column[_CODEC] = column[_CODEC]._replace(value=_UNCOMPRESSED)
    for field in (_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE):
        column[field] = column[field]._replace(value=total)


def _written(pages: list[_Page], end: int, footer: bytes) -> pa.Buffer:
    """The file: pages up to `end`, then the footer."""
    made = pa.allocate_buffer(end + len(footer) + _TAIL_BYTES)
    out = memoryview(made).cast("B")
    out[: len(_MAGIC)] = _MAGIC
    at = len(_MAGIC)
    for page in pages:
        begin = at + len(page.header)
        out[at:begin] = page.header
        values = begin + len(page.plain)
        out[begin:values] = page.plain
        at = begin + page.size
        if at > values and cramjam.snappy.decompress_raw_into(page.packed, out[values:at]) != at - values:
            raise ValueError(f"a page of other than the {page.size} bytes that it should have")
    out[end:] = footer + len(footer).to_bytes(4, "little") + _MAGIC
    return made
