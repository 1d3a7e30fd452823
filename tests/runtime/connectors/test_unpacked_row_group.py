"""Reading a row group whose pages were decompressed first gives what Arrow reads from the file itself."""

from __future__ import annotations

import io
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.runtime.connectors.file_readers import READ_FORMATS, FileSplit, ReadOptions
from understudy.runtime.connectors.unpacked_row_group import unpacked_row_group

pytest.importorskip("cramjam")

ROWS = 3_000
LAYOUTS: dict[str, dict[str, Any]] = {
    "as pyarrow does": {},
    "pages of version 2": {"data_page_version": "2.0"},
    "small pages, no dictionaries": {"data_page_size": 512, "use_dictionary": False},
    "small pages of version 2": {"data_page_size": 512, "data_page_version": "2.0"},
    "with checksums": {"write_page_checksum": True},
    "with checksums, version 2": {"write_page_checksum": True, "data_page_version": "2.0"},
    "with a page index": {"write_page_index": True},
    "without statistics": {"write_statistics": False},
    "byte stream split": {"use_dictionary": False, "column_encoding": {"number": "BYTE_STREAM_SPLIT"}},
    "delta": {"use_dictionary": False, "column_encoding": {"key": "DELTA_BINARY_PACKED"}},
    "one column uncompressed": {"compression": {"key": "NONE", "number": "SNAPPY", "text": "NONE", "day": "NONE"}},
}


def table_of(rows: int) -> pa.Table:
    made = random.Random(7)
    return pa.table(
        {
            "key": pa.array([made.randrange(100) for _ in range(rows)]),
            "number": pa.array([made.random() for _ in range(rows)]),
            "text": pa.array([None if made.random() < 0.2 else f"t{made.randrange(10**6)}" for _ in range(rows)]),
            "list": pa.array([[made.randrange(9)] * made.randrange(3) for _ in range(rows)]),
            "struct": pa.array([{"a": made.randrange(9), "b": None} for _ in range(rows)]),
            "money": pa.array([Decimal(made.randrange(10**4)) / 100 for _ in range(rows)]),
            "day": pa.array([made.randrange(10**4) for _ in range(rows)], pa.int32()).cast(pa.date32()),
            "nothing": pa.nulls(rows),
        }
    )


def stored(table: pa.Table, **layout: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=ROWS // 2, **layout)
    return file.getvalue()


def read_unpacked(data: bytes, group: int, columns: list[str]) -> pa.Table:
    unpacked = unpacked_row_group(io.BytesIO(data), group, columns)
    assert unpacked is not None, "it can be unpacked"
    return pq.ParquetFile(pa.BufferReader(unpacked)).read_row_group(0, columns=columns)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_an_unpacked_row_group_reads_as_the_file_does(layout: dict[str, Any]) -> None:
    data = stored(table_of(ROWS), **layout)
    file = pq.ParquetFile(io.BytesIO(data))
    for group in range(file.num_row_groups):
        assert read_unpacked(data, group, file.schema_arrow.names).equals(file.read_row_group(group))


@pytest.mark.parametrize("columns", [["number"], ["struct", "list"], ["nothing", "text"]])
def test_only_the_wanted_columns_are_unpacked(columns: list[str]) -> None:
    data = stored(table_of(ROWS))
    expected = pq.ParquetFile(io.BytesIO(data)).read_row_group(1, columns=columns)
    assert read_unpacked(data, 1, columns).equals(expected)
    whole = unpacked_row_group(io.BytesIO(data), 1, table_of(0).schema.names)
    part = unpacked_row_group(io.BytesIO(data), 1, columns)
    assert part is not None
    assert whole is not None
    assert part.size < whole.size


def test_rows_that_wait_in_batches_outlive_the_memory_that_pages_are_read_to() -> None:
    first, second = stored(table_of(ROWS)), stored(table_of(ROWS // 3))
    kept = read_unpacked(first, 0, ["text", "number"])
    read_unpacked(second, 0, ["text", "number"])
    assert kept.equals(pq.ParquetFile(io.BytesIO(first)).read_row_group(0, columns=["text", "number"]))


@pytest.mark.parametrize("codec", ["NONE", "ZSTD", "GZIP"])
def test_what_is_not_snappy_is_left_to_arrow(codec: str) -> None:
    data = stored(table_of(ROWS), compression=codec)
    assert unpacked_row_group(io.BytesIO(data), 0, ["key", "text"]) is None


def test_a_mixture_with_another_codec_is_left_to_arrow() -> None:
    data = stored(table_of(ROWS), compression={"key": "ZSTD", "number": "SNAPPY"})
    assert unpacked_row_group(io.BytesIO(data), 0, ["key", "number"]) is None


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 8, b"n\n1\n2\n3\n4\n5\n", b"\xff" * 64 + b"PAR1"])
def test_what_is_no_parquet_file_is_left_to_arrow(data: bytes) -> None:
    assert unpacked_row_group(io.BytesIO(data), 0, ["key"]) is None


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("seed", range(8))
def test_damage_raises_nothing_but_what_arrow_says(seed: int, version: str) -> None:
    made = random.Random(seed)
    data = bytearray(stored(table_of(300).select(["key", "text"]), data_page_version=version, data_page_size=256))
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(made.randrange(1, 4)):
            damaged[made.randrange(len(damaged))] = made.randrange(256)
        unpacked_row_group(io.BytesIO(bytes(damaged)), 0, ["key", "text"])
        unpacked_row_group(io.BytesIO(bytes(damaged[: made.randrange(len(damaged))])), 0, ["key", "text"])


def read_in_batches_of(batch_rows: int, data: bytes, group: int, folder: Path) -> pa.Table:
    path = folder / "rows.parquet"
    path.write_bytes(data)
    schema = pq.read_schema(path).remove_metadata()
    split = FileSplit(str(path), group, pq.read_metadata(path).row_group(group).num_rows)
    with path.open("rb") as file:
        batches = list(READ_FORMATS["parquet"].batches(file, split, ReadOptions(schema, batch_rows, ("",))))
    return pa.Table.from_batches(batches, schema)


@pytest.mark.parametrize("rows", [0, ROWS])
def test_batches_are_the_same_whether_large_or_small(rows: int, tmp_path: Path) -> None:
    data, last = stored(table_of(rows)), 1 if rows else 0
    large, small = (read_in_batches_of(size, data, last, tmp_path) for size in (1 << 18, 100))
    assert large.equals(small)
    assert large.num_rows == rows // 2
