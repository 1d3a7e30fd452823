"""Parquet files: which columns get a dictionary, and that rows come back whichever do."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.runtime.connectors.files.file_writers import WRITE_FORMATS

ROWS = 50_000
RANDOM = np.random.default_rng(3)


def written(*batches: pa.RecordBatch, schema: pa.Schema | None = None) -> bytes:
    file = io.BytesIO()
    writer = WRITE_FORMATS["parquet"].open(file, schema or batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return file.getvalue()


def has_dictionary(values: Any) -> bool:
    metadata = pq.read_metadata(io.BytesIO(written(pa.record_batch({"it": pa.array(values)}))))
    return bool(metadata.row_group(0).column(0).has_dictionary_page)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (RANDOM.permutation(ROWS), False),
        (RANDOM.random(ROWS), False),
        ([f"text {number}" for number in range(ROWS)], False),
        (RANDOM.integers(0, 10, ROWS), True),
        (RANDOM.integers(0, ROWS // 4, ROWS), True),
        (np.arange(ROWS) // 10, True),
        (np.arange(ROWS) % 5_000, True),
        ([None, "a"] * (ROWS // 2), True),
        ([1], False),
    ],
    ids=[
        "integers, each once",
        "floats",
        "texts, each once",
        "ten integers",
        "integers that come four times",
        "sorted ones in runs",
        "ones that come round",
        "half of them null",
        "one",
    ],
)
def test_only_columns_that_repeat_get_a_dictionary(values: Any, wanted: bool) -> None:
    assert has_dictionary(values) is wanted


def test_nulls_alone_are_no_trouble() -> None:
    nulls = pa.record_batch({"it": pa.nulls(ROWS, pa.int64())})
    assert pq.read_table(io.BytesIO(written(nulls))).equals(pa.Table.from_batches([nulls]))


def test_each_column_is_looked_at_by_itself() -> None:
    batch = pa.record_batch({"id": RANDOM.permutation(ROWS), "a.b": RANDOM.integers(0, 9, ROWS)})
    data = written(batch)
    columns = [pq.read_metadata(io.BytesIO(data)).row_group(0).column(index) for index in range(2)]
    assert [column.has_dictionary_page for column in columns] == [False, True]
    assert pq.read_table(io.BytesIO(data)).equals(pa.Table.from_batches([batch]))


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 4_097, 20_000])
def test_rows_of_all_kinds_come_back(rows: int) -> None:
    numbers = list(range(rows))
    batch = pa.record_batch(
        {
            "number": pa.array(numbers, pa.int64()),
            "text": pa.array([None if number % 3 else str(number) for number in numbers], pa.string()),
            "category": pa.array(["x"] * rows, pa.string()).dictionary_encode(),
            "list": pa.array([[number] for number in numbers], pa.list_(pa.int64())),
        }
    )
    for chosen in (batch, batch.select(["number", "text"])):
        half = rows // 2
        data = written(chosen.slice(0, half), chosen.slice(half))
        assert pq.read_table(io.BytesIO(data)).equals(pa.Table.from_batches([chosen]))


def test_without_a_batch_there_is_a_file_without_rows() -> None:
    schema = pa.schema([("a", pa.int64())])
    assert pq.read_table(io.BytesIO(written(schema=schema))).equals(schema.empty_table())
