"""A state table as a file of another format, batch by batch: there whole, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as pt

from ...state.file_locations import AnyPath
from .state_table import StateTable


def export_table(table: StateTable, file: AnyPath) -> int:
    """The number of rows. The file's ending says the format; another file there is replaced. Raises ValueError for an
    unknown ending, OSError, and what reading raises.
    """
    path = Path(file).expanduser()
    write = FORMATS.get(path.suffix.removeprefix("."))
    if write is None:
        raise ValueError(f"wanted a file that ends in {', '.join(FORMATS)}, found {path.name!r}")
    unfinished = path.with_name(f".writing-{path.name}")
    try:
        rows = write(table, unfinished)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    return rows


def _parquet(table: StateTable, path: Path) -> int:
    schema = table.arrow_schema()
    with pa.parquet.ParquetWriter(path, schema) as writer:
        return _written(table, schema, writer.write_batch)


def _arrow(table: StateTable, path: Path) -> int:
    schema = table.arrow_schema()
    with pa.ipc.new_file(path, schema) as writer:
        return _written(table, schema, writer.write_batch)


def _csv(table: StateTable, path: Path) -> int:
    """What is nested stands there as JSON."""
    schema = table.arrow_schema()
    flat = pa.schema([(field.name, pa.string() if pt.is_nested(field.type) else field.type) for field in schema])
    with pa.csv.CSVWriter(path, flat) as writer:
        return _written(table, schema, lambda batch: writer.write_batch(_flat(batch, flat)))


def _jsonl(table: StateTable, path: Path) -> int:
    schema = table.arrow_schema()
    with path.open("w", encoding="utf-8") as file:
        return _written(table, schema, lambda batch: file.writelines(f"{_json(row)}\n" for row in batch.to_pylist()))


def _written(table: StateTable, schema: pa.Schema, write: Callable[[pa.RecordBatch], Any]) -> int:
    rows = 0
    for batch in table.conformed(schema):
        write(batch)
        rows += batch.num_rows
    return rows


def _flat(batch: pa.RecordBatch, flat: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.array([None if each is None else _json(each) for each in column.to_pylist()], pa.string())
        if pt.is_nested(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=flat)


def _json(value: Any) -> str:
    return json.dumps(value, default=str)


FORMATS: dict[str, Callable[[StateTable, Path], int]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "csv": _csv,
    "jsonl": _jsonl,
}
"""By the file's ending."""
