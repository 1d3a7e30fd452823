"""How records become the bytes of a file: a writer per format. They know no file names and no transactions."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from ....actors.flow.elements import Batch
from ....actors.flow.records import mapping_of, rows_of
from ....messages import pack_plain
from ....state.keyring import Keyring
from ..json_texts import json_text, json_texts, text_bytes

ROW_GROUP_BYTES = 32 * 1024 * 1024
"""A row group of a Parquet file is written when so much has been gathered in memory."""

_SAMPLED_RUNS, _SAMPLED_RUN = 16, 256
"""(Number of runs that are looked at, rows of each.)"""
_NEARLY_ALL = 0.99
"""The number of different values among 4,096 drawn from 200,000 equally frequent ones."""

RECORDS_LENGTH_BYTES = 4
"""A "records" file is a sequence of blocks: a length, big-endian, and as many bytes of `pack_plain(records)`, encrypted
where the process has keys: such files lie beside the state, and users do not choose the format.
"""


class BatchWriter(Protocol):
    """Writes to a file that it does not own; `close` writes what belongs at the end."""

    def write(self, batch: Any) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WriteFormat:
    """`open(file, schema)` gives the writer. A columnar one takes columns of that schema, the others any batch."""

    extension: str
    columnar: bool
    open: Callable[[BinaryIO, pa.Schema | None], BatchWriter]


class _ParquetWriter:
    """Gathers small batches, as each row group costs a reader."""

    def __init__(self, file: BinaryIO, schema: pa.Schema | None) -> None:
        self._file = file
        self._schema = schema
        self._writer: Any = None
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= ROW_GROUP_BYTES:
            self._write_row_group()

    def close(self) -> None:
        self._write_row_group()
        self._opened(use_dictionary=True).close()

    def _write_row_group(self) -> None:
        if self._gathered:
            table = pa.Table.from_batches(self._gathered)
            self._opened(repeating_columns(table)).write_table(table, row_group_size=table.num_rows)
        self._gathered, self._gathered_bytes = [], 0

    def _opened(self, use_dictionary: bool | list[str]) -> Any:
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._file, self._schema, use_dictionary=use_dictionary)
        return self._writer


def repeating_columns(table: pa.Table) -> bool | list[str]:
    """Which columns get a dictionary, by a sample of their rows; True: all.

    Where nearly all values of the sample are different, either most values come once, or there are enough of them that
    the dictionary would reach its limit of 1 MB and be given up: either way the file gets larger, and writing it takes
    twice the time.
    """
    if any(pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type) for field in table.schema):
        return True
    step = max(_SAMPLED_RUN, table.num_rows // _SAMPLED_RUNS)
    sample = pa.concat_tables([table.slice(start, _SAMPLED_RUN) for start in range(0, table.num_rows, step)])
    distinct = {name: pa.compute.count_distinct(sample[name]).as_py() for name in table.column_names}
    return [name for name, count in distinct.items() if count < _NEARLY_ALL * sample.num_rows]


class _JsonLinesWriter:
    """One JSON object per line."""

    def __init__(self, file: BinaryIO, _schema: pa.Schema | None) -> None:
        self._file = file

    def write(self, batch: Batch) -> None:
        if isinstance(batch, pa.RecordBatch):
            self._file.write(text_bytes(json_texts(batch, end="\n")))
        else:
            self._file.write("".join(f"{json_text(mapping_of(each))}\n" for each in batch).encode())

    def close(self) -> None: ...


class _RecordsWriter:
    """Python records as they are, for `read_collected`."""

    def __init__(self, file: BinaryIO, _schema: pa.Schema | None) -> None:
        self._file = file
        self._keys = Keyring.of(os.environ)

    def write(self, batch: Batch) -> None:
        data = pack_plain(rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch)
        if self._keys is not None:
            data = b"".join(self._keys.sealed([data]))
        self._file.write(len(data).to_bytes(RECORDS_LENGTH_BYTES, "big") + data)

    def close(self) -> None: ...


def csv_refuses(type: pa.DataType) -> bool:
    """Whether Arrow writes no columns of this type as CSV: those of lists and structs, for example."""
    try:
        pa.csv.write_csv(pa.schema([("column", type)]).empty_table(), io.BytesIO())
    except pa.ArrowException:
        return True
    return False


WRITE_FORMATS: dict[str, WriteFormat] = {
    "parquet": WriteFormat(".parquet", True, _ParquetWriter),
    "csv": WriteFormat(".csv", True, lambda file, schema: pa.csv.CSVWriter(file, schema)),
    "jsonl": WriteFormat(".jsonl", False, _JsonLinesWriter),
    "records": WriteFormat(".records", False, _RecordsWriter),
}

FILE_FORMATS = ("parquet", "csv", "jsonl")
"""Those that users choose from; the others are for `collect`."""
