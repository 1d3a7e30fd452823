"""All events of a model as files: Parquet for us and DuckDB, raw columns for Flink, whose wheel has no Parquet.

Made once and kept. The row groups of a stream are in the order of its events and dealt out in turn, so two readers that
take every second one are close to each other in event time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from .model import SCHEMAS, STREAMS, Model, Stream

LAYOUT = 1
"""Part of the folder's name: data of an older layout is left alone and not used."""
GROUP_ROWS = 65_536
RAW_ROWS = 8_192
READERS = 2
SIDE_KEYS = 10_000


def side_input() -> pa.Table:
    """The table that q13 looks up: a text for each key from 0 to 9,999."""
    return pa.table(
        {"key": np.arange(SIDE_KEYS), "value": [f"side-{key * 7_919 % SIDE_KEYS}" for key in range(SIDE_KEYS)]}
    )


def folder_of(cache: Path, model: Model) -> Path:
    name = "-".join(f"{key}{value}" for key, value in model.to_plain().items())
    return cache / "nexmark" / f"v{LAYOUT}-{name}"


def dataset(cache: Path, model: Model) -> Path:
    """The folder with a Parquet file per stream, `bid.parquet` and so on, made now unless it is there."""
    folder = folder_of(cache, model)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            for stream in STREAMS:
                _write(Path(name) / f"{stream}.parquet", model, stream)
            pq.write_table(side_input(), Path(name) / "side_input.parquet")
            shutil.copytree(name, folder, dirs_exist_ok=True)
    return folder


def batches(model: Model, stream: Stream) -> Iterator[pa.RecordBatch]:
    """All rows of a stream in order."""
    rows = model.rows(stream)
    for start in range(0, rows, GROUP_ROWS):
        yield model.batch(stream, start, min(GROUP_ROWS, rows - start))


def _write(path: Path, model: Model, stream: Stream) -> None:
    with pq.ParquetWriter(path, SCHEMAS[stream]) as writer:
        for batch in batches(model, stream):
            writer.write_batch(batch, row_group_size=GROUP_ROWS)


def raw_columns(folder: Path) -> Path:
    """The same rows for Flink: a folder per stream with a file per reader; the row groups alternate between them.

    A file is blocks of at most 8,192 rows, all numbers little-endian: an int32 with the number of rows, an int32 with
    the number of columns, and for each column an int32 with its size in bytes and then either int64 values (times are
    milliseconds) or, for texts, one int32 more than there are rows, with the offsets of the texts in what follows.
    """
    raw = folder / "raw"
    if not raw.exists():
        with tempfile.TemporaryDirectory(dir=folder) as name:
            for stream in STREAMS:
                _write_raw(folder / f"{stream}.parquet", Path(name) / stream)
            shutil.copytree(name, raw, dirs_exist_ok=True)
    return raw


def _write_raw(source: Path, folder: Path) -> None:
    folder.mkdir()
    parquet = pq.ParquetFile(source)
    files = [(folder / f"reader-{reader}.bin").open("wb") for reader in range(READERS)]
    try:
        for group in range(parquet.num_row_groups):
            for batch in parquet.read_row_group(group).to_batches(max_chunksize=RAW_ROWS):
                files[group % READERS].write(_block(batch))
    finally:
        for file in files:
            file.close()


def _block(batch: pa.RecordBatch) -> bytes:
    parts = [np.array([len(batch), batch.num_columns], "<i4").tobytes()]
    for column in batch.columns:
        content = _text_bytes(column) if pt.is_string(column.type) else np.asarray(column.view(pa.int64())).tobytes()
        parts += [np.array([len(content)], "<i4").tobytes(), content]
    return b"".join(parts)


def _text_bytes(column: pa.Array) -> bytes:
    column = pa.concat_arrays([column, pa.array([], pa.string())])  # offsets from 0
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, "<i4", len(column) + 1, offset=4 * column.offset)
    text = b"" if data is None else data[int(ends[0]) : int(ends[-1])].to_pybytes()
    whole: bytes = (ends - ends[0]).astype("<i4").tobytes() + text
    return whole
