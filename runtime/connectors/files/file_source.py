"""FileSource: files of columns, split over the subtasks. Flink: FileSource with a static split assignment.

Which files there are, and of which version, is settled when the source is made, on the driver.
"""

from __future__ import annotations

import copy
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from fsspec import AbstractFileSystem

from ....actors.flow.records import column_problem, conform
from ....messages import those_there_are
from ....messages.shown import columns_shown
from ....state import DurableFiles
from ....state.file_locations import AnyPath, absolute
from ..errors import InputChanged, NoInput, UnreadableFile, UnreadableInput
from ..paced_source import COLUMN_BATCH_ROWS
from .csv_guess import as_text, check_guess, csv_form, warn_of_texts
from .file_heads import check_head
from .file_look import followed, is_glob, matching, time_advice, version_now, version_shown
from .file_readers import (
    BLOCK_BYTES,
    READ_FORMATS,
    CsvForm,
    FileSplit,
    ReadOptions,
    texts_kept,
)
from .links import named_once
from .locations import barred_folder, located
from .split_source import SplitSource


class FileSource(SplitSource):
    """Reads a file, a folder or a glob, local or an fsspec URL, of `format` "parquet", "csv", "jsonl" or "text".

    Parquet is split by row groups, the others by files. Text has one column, `line`, of lines in UTF-8. Hidden files
    (`.…`, `_…`) are left out, and subfolders are not looked into. All files must have the same columns; types are the
    files' own, or guessed from their first megabyte, or `schema`'s. A CSV column with a value such as 01234 in that
    megabyte is text, and a warning says so; one that first comes later raises UnreadableInput, unless `schema` is
    given. A field of JSON lines that first comes later raises UnreadableInput, unless `schema` or `columns` is given. A
    file that was written or removed since raises InputChanged in the subtask that reads it.
    """

    def __init__(
        self,
        path: AnyPath,
        format: str = "parquet",
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
        null_values: Sequence[str] = ("",),
        delimiter: str = ",",
        encoding: str = "utf8",
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        form = csv_form(format, null_values, delimiter, encoding)
        self.path = absolute(path)
        self.format = format
        fs, files = find_files(self.path)
        self._versions = {file: version_now(fs, file) or "" for file in files}  # before they are looked into
        found, texts = _without_texts(_describe(fs, files, format, form))
        if schema is None:
            for path, (_, one) in found.items():
                check_guess(path, format, one, form)
            warn_of_texts(self.path, texts, columns)
        splits = [split for splits, _ in found.values() for split in splits]
        self.settle(self.path, splits, chosen(_one_schema(found, format, schema), columns, self.path))
        are_guessed = schema is None and columns is None
        self._options = ReadOptions(
            self.schema, self.batch_rows, form, are_guessed, BLOCK_BYTES if schema is None else None
        )

    def for_columns(self, names: Sequence[str], batch_rows: int = COLUMN_BATCH_ROWS) -> FileSource:
        narrowed = copy.copy(self)
        narrowed.schema = chosen(self.schema, names, self.path)
        narrowed.batch_rows = self._batch_rows_or(batch_rows)
        narrowed._options = replace(
            self._options, columns=narrowed.schema, batch_rows=narrowed.batch_rows, are_guessed=False
        )
        return narrowed

    def open_split(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        fs, _ = located(self.path)
        self._check_version(fs, split.path)
        try:
            with fs.open(split.path, "rb") as file:
                for batch in READ_FORMATS[self.format].batches(file, split, self._options):
                    yield conform(batch, self.schema)
            self._check_version(fs, split.path)
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            self._check_version(fs, split.path)
            guessed = self._options.checked_bytes is not None
            raise unreadable(split.path, self.format, error, self.schema, is_guess=guessed) from None

    def versions(self, paths: Collection[str]) -> dict[str, str]:
        """On a disk the file that is being read is looked at, so that no checkpoint covers rows of two versions. A
        store sees to that itself: it is asked for a certain version.
        """
        fs, _ = located(self.path)
        if self._batches is not None and DurableFiles(fs).is_local:
            self._check_version(fs, self.splits[self._begun[0][0]].path)
        return {path: self._versions[path] for path in paths if path in self._versions}

    def _check_version(self, fs: AbstractFileSystem, path: str) -> None:
        was, found = self._versions[path], version_now(fs, path)
        if found == was:
            return
        what = "was removed after the stream had been built, and before its end was read"
        if found is not None:
            versions = f"it was {version_shown(was)}, and is {version_shown(found)}"
            what = f"was changed: {versions}, after the stream had been built, so rows of two versions would be mixed"
        raise InputChanged(
            f"{path} {what}: put it back as it was{time_advice(was)}, or submit the job again for what is there now, "
            "and leave files alone while a job reads them; watch_ms= takes up files that come later, under names of "
            "their own"
        )


def find_files(url: str) -> tuple[AbstractFileSystem, list[str]]:
    """The files that a path, folder or glob names, sorted. Raises NoInput."""
    fs, path = located(url)
    if fs.isfile(path):
        return fs, [path]
    if barred := barred_folder(fs, path):
        raise NoInput(
            f"{url}: user {os.getuid()} of this host may not look into {barred}: let that user read it, or correct the "
            "path"
        )
    try:
        is_folder = fs.isdir(path)
        if is_folder:
            entries = [followed(fs, each) for each in fs.ls(path, detail=True)]
        else:
            entries = matching(fs, path) if is_glob(path) else []
    except OSError as error:
        if error.filename is None:
            raise
        raise NoInput(
            f"{url}: {error.filename} cannot be looked at ({error.strerror or error}): see to that, or remove "
            "it, so that no file is left out"
        ) from error
    if not entries and not is_folder:
        if fs.exists(path):
            raise NoInput(
                f"{url} is neither a file nor a folder, as a named pipe or a device, whose data could not be read "
                "again after a failure: write them into a file first, or send them to an inlet (env.from_inlet)"
            )
        raise NoInput(
            f"{url}: there is no such file, and no file matches it: correct the path, or write the "
            "files before the stream is built"
        )
    shown = [each for each in entries if not each["name"].rstrip("/").rpartition("/")[2].startswith((".", "_"))]
    files = named_once(fs, sorted(each["name"] for each in shown if each["type"] == "file"))
    if not files:
        folders = f", only folders such as {shown[0]['name']}: name them by a glob" if shown else ""
        raise NoInput(f"{url}: wanted files, found none{folders}")
    return fs, files


def read_table(fs: AbstractFileSystem, files: Sequence[str], format: str) -> pa.Table:
    """All rows of these files, in their order, as FileSink has written them. Raises as FileSource does."""
    described, _ = _without_texts(_describe(fs, files, format, CsvForm()))
    schema = _one_schema(described, format, None)
    options = ReadOptions(schema, COLUMN_BATCH_ROWS)
    batches = []
    for splits, _ in described.values():
        for split in splits:
            with fs.open(split.path, "rb") as file:
                batches += [conform(batch, schema) for batch in READ_FORMATS[format].batches(file, split, options)]
    return pa.Table.from_batches(batches, schema)


_Described = dict[str, tuple[Sequence[FileSplit], pa.Schema]]


def _describe(fs: AbstractFileSystem, files: Sequence[str], format: str, form: CsvForm) -> _Described:
    """Splits and schema of each file that has any content."""
    reader = READ_FORMATS[format]
    described: _Described = {}
    for path in files:
        try:
            with fs.open(path, "rb") as file:
                check_head(file, format)
                splits = reader.splits(file, path)
                if splits or not reader.guessed:
                    file.seek(0)
                    described[path] = (splits, reader.schema(file, form))
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            raise unreadable(path, format, error) from None
    if not described:
        raise NoInput(f"{files[0]}: wanted {format}, found {len(files)} empty file(s)")
    return described


def _without_texts(found: _Described) -> tuple[_Described, Mapping[str, str]]:
    """A column that is text in one file for its leading zeros is text in all; and these columns, each with a value."""
    texts = {name: value for _, schema in found.values() for name, value in texts_kept(schema).items()}
    return {path: (splits, as_text(schema, texts)) for path, (splits, schema) in found.items()}, texts


def _one_schema(found: _Described, format: str, wanted: pa.Schema | None) -> pa.Schema:
    """The one schema of all files. Guessed types are widened until they fit all files, unless they are `wanted`."""
    first_path, (_, schema) = next(iter(found.items()))
    guessed = READ_FORMATS[format].guessed
    for path, (_, other) in found.items():
        (name, times), *_ = Counter(other.names).most_common(1) or [("", 0)]
        if times > 1:
            raise UnreadableInput(f"{path} has {times} columns {name!r}: give each a name of its own")
        if format == "jsonl" or (guessed and other.names == schema.names):
            schema = schema if wanted is not None else _widened(schema, other, path, first_path)
        elif not other.equals(schema):
            raise UnreadableInput(
                f"{first_path} and {path} have different columns: {columns_shown(schema)}; and {columns_shown(other)}"
            )
    if wanted is not None and (problem := column_problem(schema.names, wanted)) and format != "jsonl":
        raise UnreadableInput(f"{first_path} does not fit the schema: {problem}")
    return schema if wanted is None else wanted


def _widened(schema: pa.Schema, other: pa.Schema, path: str, first_path: str) -> pa.Schema:
    try:
        return pa.unify_schemas([schema, other], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UnreadableInput(
            f"{first_path} and {path} have columns of different types: {error}. Give a schema= that fits both"
        ) from error


def chosen(schema: pa.Schema, columns: Sequence[str] | None, path: str) -> pa.Schema:
    """These columns of the files at `path`, in this order; all when None. Raises UnreadableInput."""
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            raise UnreadableInput(f"{path} has no column {name!r}; it has {those_there_are(name, schema.names)}")
    return pa.schema([schema.field(name) for name in columns])


def unreadable(
    path: str,
    format: str,
    error: BaseException,
    schema: pa.Schema | None = None,
    *,
    may_grow: bool = False,
    is_guess: bool = False,
) -> UnreadableInput:
    """What a reader has said of a file; `schema`: with which columns it was to be read; `is_guess`: their types are.

    UnreadableFile for the content of a file that stays as it is; an OSError may be the disk's.
    """
    columns = "" if schema is None else f" with columns {columns_shown(schema)}"
    if format == "csv" and "straddling object" in str(error):
        error = ValueError(
            f"a row has more than {BLOCK_BYTES:,} bytes, the most that is read of CSV: is a quotation mark missing? "
            "Else write such rows as jsonl or parquet"
        )
    is_one_column = format == "csv" and "Expected 1 columns" in str(error)
    advice = "; is its delimiter no comma? Say delimiter=';', or which it is" if is_one_column else ""
    if is_guess and "conversion error" in str(error):
        advice += "; types were guessed from the beginning of the files: say them with schema=, as pa.string() of text"
    advice += "; put that file right, or take it away" if may_grow else ""
    kind = UnreadableInput if may_grow or isinstance(error, OSError) else UnreadableFile
    return kind(f"{path} cannot be read as {format}{columns}: {error}{advice}")
