"""The data files of a Delta table: rows to Parquet with what the log says of a file, and back to rows.

Columns by which a table is partitioned are in the log and not in the files. Statistics let readers skip files: number
of rows, and of nulls, least and greatest value, as Parquet has them anyway. Those of floats are left out: Parquet's do
not count NaN, which other engines hold to be the greatest.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ....actors.flow.records import RecordMismatch, conform
from ..errors import UnreadableInput
from ..files.file_writers import repeating_columns
from .delta_table import TableFiles
from .errors import VersionGone
from .lake_source import without_first

INDEXED_COLUMNS = 32
"""How many columns have statistics, the first ones: Delta's default."""

_UNSAFE = re.compile(r"[^\w.-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class DataFile:
    """As the log has it. `path`: in the table's folder; `values`: of the columns that it is partitioned by, as texts;
    None: null.
    """

    path: str
    values: Mapping[str, str | None]


def file_name(values: Mapping[str, Any], name: str) -> str:
    """In folders such as `day=2026-01-01`. They are to be seen: readers go by the log."""
    folders = [_UNSAFE.sub("_", f"{key}-{text_of(value) or 'null'}").replace(f"{key}-", f"{key}=", 1)
               for key, value in values.items()]  # fmt: skip
    return posixpath.join(*folders, name)


def text_of(value: pa.Scalar) -> str | None:
    """The value of a partition as the log has it. An empty text is null there."""
    if not value.is_valid:
        return None
    plain = value.as_py()
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, datetime):
        return plain.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(plain, bytes):
        raise RecordMismatch("a Delta table is not partitioned by bytes here: make a text of them")
    return str(plain) or None


def write_file(files: TableFiles, name: str, rows: pa.Table) -> dict[str, Any]:
    """Write a new file; returns its size in bytes and its statistics as JSON."""
    written: list[Any] = []
    with files.create(name) as file:
        repeating = repeating_columns(rows)
        with pq.ParquetWriter(
            file, rows.schema, use_dictionary=repeating, metadata_collector=written, coerce_timestamps="us"
        ) as writer:
            writer.write_table(rows)
        size = file.tell()
    return {"size": size, "stats": json.dumps(_statistics(written[0], rows))}


def read_file(
    files: TableFiles, file: DataFile, schema: pa.Schema, skipped: int, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Its rows but for the first ones, with the columns of `schema`: null where the file has none of that name."""
    try:
        with files.system.open_input_file(file.path) as opened, pq.ParquetFile(opened) as parquet:
            names = [name for name in schema.names if name in parquet.schema_arrow.names and name not in file.values]
            for group in range(parquet.num_row_groups):
                rows = parquet.metadata.row_group(group).num_rows
                if skipped >= rows:
                    skipped -= rows
                    continue
                batches = parquet.iter_batches(batch_rows, row_groups=[group], columns=names)
                for batch in without_first(skipped, batches):
                    yield _completed(batch, file, schema)
                skipped = 0
    except FileNotFoundError as error:
        raise VersionGone(
            f"{file.path}: a file of the version that is read is gone: a vacuum removed it. Let vacuums keep files for "
            "longer than a job may be behind, and start this one at a version that is still there"
        ) from error
    except (pa.ArrowException, OSError) as error:
        raise UnreadableInput(f"{file.path} cannot be read as Parquet: {error}") from error


def _completed(batch: pa.RecordBatch, file: DataFile, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.name in file.values:
            columns.append(pa.repeat(_value(file.values[field.name], field.type), batch.num_rows))
        elif field.name in batch.schema.names:
            columns.append(batch.column(field.name))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    try:
        return conform(pa.RecordBatch.from_arrays(columns, schema.names), schema)
    except RecordMismatch as error:
        raise UnreadableInput(f"{file.path} does not fit the table's columns: {error}") from error


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    if text is None or text == "":
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        at = datetime.fromisoformat(text).replace(tzinfo=None)
        return pa.scalar(at, pa.timestamp("us")).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(text), kind)
    return pc.cast(pa.scalar(text), kind)


def _statistics(footer: Any, rows: pa.Table) -> dict[str, Any]:
    nulls, least, greatest = {}, {}, {}
    columns = {footer.schema.column(index).path: index for index in range(len(footer.schema))}
    for field in list(rows.schema)[:INDEXED_COLUMNS]:
        if pa.types.is_nested(field.type):
            continue
        nulls[field.name] = rows[field.name].null_count
        of_groups = [
            footer.row_group(group).column(columns[field.name]).statistics for group in range(footer.num_row_groups)
        ]
        bounds = [each for each in of_groups if each is not None and each.has_min_max]
        if _has_bounds(field.type) and len(bounds) == footer.num_row_groups > 0:
            least[field.name] = _json_value(min(each.min for each in bounds))
            greatest[field.name] = _json_value(max(each.max for each in bounds))
    return {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _has_bounds(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    )


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):  # Delta's have ms: rows of the last one must not be skipped
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if value.tzinfo is not None else "")
    return value.isoformat() if isinstance(value, date) else value
