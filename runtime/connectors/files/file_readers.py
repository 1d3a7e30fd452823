"""How files become Arrow batches: per format, what a file's columns are, how it is split, and how a split is read.

Reading streams: no file is held in memory as a whole. A split is read from its beginning, in the same order each time.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from .file_heads import check_compression
from .late_zeros import LEADING_ZERO, LateZeros

BLOCK_BYTES = 1 << 20
"""How much text is parsed at a time, and from how much of it the types of a column are guessed."""

_KEPT = b"understudy:leading zero"


@dataclass(frozen=True, slots=True)
class FileSplit:
    """What one subtask reads as a unit: a row group of a Parquet file, or a whole file of text (row group -1)."""

    path: str
    row_group: int
    size: int
    """Rows of a row group, bytes of a text file: if it changes, so did the file."""


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How the text of CSV files is to be read."""

    null_values: tuple[str, ...] = ("",)
    delimiter: str = ","
    encoding: str = "utf8"

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise ValueError(f"delimiter: wanted one character, such as ';' or a tab, found {self.delimiter!r:.60}")
        try:
            is_fit = f"09{self.delimiter}".encode(self.encoding) == f"09{self.delimiter}".encode("ascii")
        except (LookupError, UnicodeError, TypeError):
            is_fit = False
        if not is_fit:
            raise ValueError(
                f"encoding: wanted one that Python knows, and in which digits and {self.delimiter!r} are as in ASCII, "
                f"such as 'utf8', 'latin-1' or 'cp1252', found {self.encoding!r:.60}"
            )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`columns`: names and types as they are in the file; those not named are left out."""

    columns: pa.Schema
    batch_rows: int
    form: CsvForm = CsvForm()
    are_guessed: bool = False
    """The columns are those of the beginning of the files, and a field that comes later is an error."""
    checked_bytes: int | None = None
    """Types of CSV are guessed: how much of each file's beginning was looked at for that. None: they were given."""


@dataclass(frozen=True, slots=True)
class ReadFormat:
    """`schema(file, form)`, `splits(file, path)`, and `batches(file, split, options)`."""

    schema: Callable[[BinaryIO, CsvForm], pa.Schema]
    splits: Callable[[BinaryIO, str], Sequence[FileSplit]]
    batches: Callable[[BinaryIO, FileSplit, ReadOptions], Iterator[pa.RecordBatch]]
    guessed: bool
    """Whether the types are a guess, so that those of several files are widened to fit each other."""
    columns: pa.Schema | None = None
    """Those of all files, whatever is in them."""


def _parquet_schema(file: BinaryIO, _form: CsvForm) -> pa.Schema:
    return pa.parquet.read_schema(file).remove_metadata()


def _parquet_splits(file: BinaryIO, path: str) -> Sequence[FileSplit]:
    try:
        metadata = pa.parquet.read_metadata(file)
    except pa.ArrowInvalid:
        check_compression(file)
        raise
    return [FileSplit(path, group, metadata.row_group(group).num_rows) for group in range(metadata.num_row_groups)]


def _parquet_batches(file: BinaryIO, split: FileSplit, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    parquet = pa.parquet.ParquetFile(file)
    yield from parquet.iter_batches(
        options.batch_rows, row_groups=[split.row_group], columns=options.columns.names, use_threads=False
    )


def _whole_file(file: BinaryIO, path: str) -> Sequence[FileSplit]:
    size = file.seek(0, io.SEEK_END)
    return [FileSplit(path, -1, size)] if size else []


def _csv_schema(file: BinaryIO, form: CsvForm) -> pa.Schema:
    """Columns that would be numbers, but for values such as 01234, are text: a field's metadata has the first one."""
    guessed = _csv_reader(file, form).schema
    numbers = list(filter(_is_number, guessed))
    if not numbers:
        return guessed
    file.seek(0)
    as_text = {field.name: pa.string() for field in numbers}
    try:
        rows = _csv_reader(file, form, column_types=as_text).read_next_batch()
    except (pa.ArrowInvalid, StopIteration):
        return guessed  # no rows, or an error that is said again, with its place, when the file is read
    for field in numbers:
        position = guessed.get_field_index(field.name)  # -1: two of the name
        if position < 0:
            continue
        values = rows.column(position)
        zeros = values.filter(pc.match_substring_regex(values, LEADING_ZERO))
        if len(zeros):
            guessed = guessed.set(position, pa.field(field.name, pa.string(), metadata={_KEPT: zeros[0].as_py()}))
    return guessed


def _is_number(field: pa.Field) -> bool:
    return bool(pa.types.is_integer(field.type) or pa.types.is_floating(field.type))


def texts_kept(schema: pa.Schema) -> dict[str, str]:
    """The columns that are text for the zeros that their values begin with, and such a value."""
    return {field.name: field.metadata[_KEPT].decode() for field in schema if _KEPT in (field.metadata or {})}


def _csv_batches(file: BinaryIO, split: FileSplit, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    columns = options.columns
    numbers = {field.name for field in columns if _is_number(field)}
    if options.checked_bytes is None or not numbers or split.size <= options.checked_bytes:
        yield from _csv_reader(file, options.form, column_types=columns, include_columns=columns.names)
        return
    watched = LateZeros(file, numbers, options.checked_bytes, options.form.delimiter, options.form.encoding)
    for batch in _csv_reader(watched, options.form, column_types=columns, include_columns=columns.names):
        watched.check()
        yield batch
    watched.check()


def _csv_reader(file: BinaryIO | LateZeros, form: CsvForm, **chosen: Any) -> pa.csv.CSVStreamingReader:
    """A quoted value is never null, so an empty string differs from null, as FileSink writes them."""
    return pa.csv.open_csv(
        file,
        read_options=pa.csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False, encoding=form.encoding),
        parse_options=pa.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            null_values=list(form.null_values), strings_can_be_null=True, quoted_strings_can_be_null=False, **chosen
        ),
    )


def _json_schema(file: BinaryIO, _form: CsvForm) -> pa.Schema:
    lines = _some_lines(file)
    return pa.json.read_json(io.BytesIO(lines), read_options=_one_block(lines)).schema


def _json_batches(file: BinaryIO, _split: FileSplit, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    others = "error" if options.are_guessed else "ignore"
    parse_options = pa.json.ParseOptions(explicit_schema=options.columns, unexpected_field_behavior=others)
    before = 0
    while lines := _some_lines(file):
        if lines.strip():
            try:
                table = pa.json.read_json(
                    io.BytesIO(lines), read_options=_one_block(lines), parse_options=parse_options
                )
            except pa.ArrowInvalid:
                _check_lines(lines, before)
                if options.are_guessed:
                    _check_fields(lines, options.columns)
                raise
            yield from table.to_batches()
        before += lines.count(b"\n")


def _check_lines(lines: bytes, before: int) -> None:
    """Raises ValueError for the first of these lines that holds no JSON object. `before`: the number of those above."""
    for number, line in enumerate(lines.split(b"\n"), before + 1):
        try:
            is_object = not line.strip() or isinstance(json.loads(line), dict)
            why = "" if is_object else "it is no object"
        except json.JSONDecodeError as error:
            is_object, why = False, f"{error.msg} at character {error.colno}"
        except ValueError as error:  # no UTF-8
            is_object, why = False, str(error)
        if not is_object:
            raise ValueError(
                f"line {number} is no JSON object: {why}: {line[:80].decode(errors='replace')!r}"
            ) from None


def _check_fields(lines: bytes, columns: pa.Schema) -> None:
    """Raises ValueError for a field that is no column."""
    found = pa.json.read_json(io.BytesIO(lines), read_options=_one_block(lines)).column_names
    if new := [repr(name) for name in found if name not in columns.names]:
        raise ValueError(
            f"the field {', '.join(new)} comes later than the first megabyte, from which the columns were taken: name "
            "all columns with schema=, or those that you want with columns="
        )


def _some_lines(file: BinaryIO) -> bytes:
    """The next lines, about a block of them; none at the end. fsspec's files have no `readlines(hint)`."""
    block = file.read(BLOCK_BYTES)
    return block if block.endswith(b"\n") else block + file.readline()


def _one_block(lines: bytes) -> pa.json.ReadOptions:
    return pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)


LINES = pa.schema([("line", pa.string())])
"""What files of lines have."""


def _lines_schema(_file: BinaryIO, _form: CsvForm) -> pa.Schema:
    return LINES


def _line_batches(file: BinaryIO, _split: FileSplit, _options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """A line ends with a line feed, or with the file; a carriage return before it, and a byte order mark, are left
    out. Raises ValueError for what is not UTF-8.
    """
    number = 0
    while block := _some_lines(file):
        if number == 0:
            block = block.removeprefix(codecs.BOM_UTF8)
        try:
            lines = block.decode().split("\n")
        except UnicodeDecodeError as error:
            number += block.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"line {number} is not UTF-8: {error.reason}, byte {block[error.start]:#04x}: convert the file to "
                "UTF-8 first"
            ) from None
        if not lines[-1]:
            lines.pop()
        number += len(lines)
        column = pa.array([line.removesuffix("\r") for line in lines], pa.string())
        yield pa.RecordBatch.from_arrays([column], schema=LINES)


READ_FORMATS = {
    "parquet": ReadFormat(_parquet_schema, _parquet_splits, _parquet_batches, guessed=False),
    "csv": ReadFormat(_csv_schema, _whole_file, _csv_batches, guessed=True),
    "jsonl": ReadFormat(_json_schema, _whole_file, _json_batches, guessed=True),
    "text": ReadFormat(_lines_schema, _whole_file, _line_batches, guessed=False, columns=LINES),
}
