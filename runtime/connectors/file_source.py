"""FileSource: files of columns, split over the subtasks. Flink: FileSource with a static split assignment.

Which files there are is settled when the source is made, on the driver, and travels with it, so all subtasks deal
the same splits out. The offset is a row in a split, and which splits have not been begun; a checksum of the splits goes
with it, as an offset among other files means nothing. After a change of parallelism splits that were begun come first.
"""

from __future__ import annotations

import copy
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import Any, Literal

import pyarrow as pa
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from ...actors.operators.source import END, SourceState
from ...actors.records import column_problem, conform
from ...messages import pack_plain
from .errors import NoInput, OffsetMismatch, UnreadableInput
from .file_readers import READ_FORMATS, FileSplit, ReadOptions
from .index_share import IndexShare
from .paced_source import PacedSource

RECORD_BATCH_ROWS, COLUMN_BATCH_ROWS = 8192, 262_144
"""How many rows are read at a time unless the user says: a step of Python records must stay short."""


class FileSource(PacedSource):
    """Reads a file, a folder or a glob, local or an fsspec URL, of `format` "parquet", "csv" or "jsonl".

    Parquet is split by row groups, text by files. Hidden files (`.…`, `_…`) are left out, and subfolders are not
    looked into. All files must have the same columns; types are the files' own, or guessed from their first
    megabyte, or `schema`'s.
    """

    def __init__(
        self,
        path: str,
        format: str = "parquet",
        *,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
        null_values: Sequence[str] = ("",),
    ) -> None:
        self._batch_rows_chosen = batch_rows is not None
        super().__init__(RECORD_BATCH_ROWS if batch_rows is None else batch_rows, records_per_second)
        if format not in READ_FORMATS:
            raise ValueError(f"format: wanted one of {', '.join(READ_FORMATS)}, found {format!r}")
        self.path = path if "://" in path else os.path.abspath(os.path.expanduser(path))
        self.format = format
        fs, files = find_files(self.path)
        found = _describe(fs, files, format, tuple(null_values))
        self.splits: tuple[FileSplit, ...] = tuple(split for splits, _ in found.values() for split in splits)
        self.schema = _chosen(_one_schema(found, format, schema), columns, self.path)
        self._options = ReadOptions(self.schema, self.batch_rows, tuple(null_values))
        self._inputs = zlib.crc32(pack_plain([list(astuple(split)) for split in self.splits]))
        self._begun: list[list[int]] = []
        """[index among all splits, rows of it that were emitted]; the first one is being read."""
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def for_columns(self, names: Sequence[str]) -> FileSource:
        """The same source for a reader that takes these columns as a whole: in larger batches, unless that was chosen.

        An offset of either means the same to both.
        """
        narrowed = copy.copy(self)
        narrowed.schema = _chosen(self.schema, names, self.path)
        narrowed.batch_rows = self.batch_rows if self._batch_rows_chosen else COLUMN_BATCH_ROWS
        narrowed._options = replace(self._options, columns=narrowed.schema, batch_rows=narrowed.batch_rows)
        return narrowed

    def open(self) -> None:
        super().open()
        self._begun = []
        self._share = IndexShare.fresh(self.context.subtask_index, self.context.parallelism)

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END]:
        if self._rest is None:
            self._rest = self._next_batch()
        if self._rest is None:
            return END
        batch, rest = self._rest.slice(0, max_records), self._rest.slice(max_records)
        self._rest = rest if rest.num_rows else None
        self._begun[0][1] += batch.num_rows
        return batch

    def offset(self) -> dict[str, Any]:
        """`begun`: index among all splits, and rows of it that were emitted; `splits`: an IndexShare of the others."""
        return {
            "begun": [list(each) for each in self._begun],
            "splits": self._share.to_plain(),
            "inputs": self._inputs,
        }

    def seek(self, offset: dict[str, Any]) -> None:
        """The first `poll` then costs reading the rows of one split up to the offset."""
        self._check_inputs(offset)
        self._begun = [list(each) for each in offset["begun"]]
        self._share = IndexShare.from_plain(offset["splits"], self.context.parallelism)

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        for offset in offsets:
            self._check_inputs(offset)
        subtask, parallelism = self.context.subtask_index, self.context.parallelism
        begun = [list(each) for offset in offsets for each in offset["begun"]]
        self._begun = begun[subtask::parallelism]
        self._share = IndexShare.dealt_out([offset["splits"] for offset in offsets], subtask, parallelism)

    def _check_inputs(self, offset: dict[str, Any]) -> None:
        if offset["inputs"] != self._inputs:
            raise OffsetMismatch(
                f"source {self.context.name!r} was checkpointed while it read other files than {self.path} has now "
                f"({len(self.splits)} splits): start it on the files it had, and read new ones in another job"
            )

    def source_schema(self) -> pa.Schema:
        return self.schema

    def close(self) -> None:
        self._batches = self._rest = None

    def _next_batch(self) -> pa.RecordBatch | None:
        """The next batch of this subtask's splits that has rows; None after the last."""
        while self._begun or self._begin_split():
            if self._batches is None:
                self._batches = self._open_at(*self._begun[0])
            for batch in self._batches:
                if batch.num_rows:
                    return batch
            self._batches = None
            del self._begun[0]
        return None

    def _begin_split(self) -> bool:
        taken = self._share.take(1, len(self.splits))
        if taken is not None:
            self._begun.append([taken.start, 0])
        return taken is not None

    def _open_at(self, index: int, rows: int) -> Iterator[pa.RecordBatch]:
        """The split's batches without its first rows."""
        split = self.splits[index]
        for batch in self._open(split):
            skipped = min(rows, batch.num_rows)
            rows -= skipped
            yield batch.slice(skipped)
        if rows:
            raise OffsetMismatch(f"{split.path} ends {rows} rows before the offset of source {self.context.name!r}")

    def _open(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        fs, _ = url_to_fs(self.path)
        try:
            with fs.open(split.path, "rb") as file:
                for batch in READ_FORMATS[self.format].batches(file, split, self._options):
                    yield conform(batch, self.schema)
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            raise UnreadableInput(
                f"{split.path} cannot be read as {self.format} with columns {_told(self.schema)}: {error}"
            ) from error


def find_files(url: str) -> tuple[AbstractFileSystem, list[str]]:
    """The files that a path, folder or glob names, sorted. Raises NoInput."""
    fs, path = url_to_fs(url)
    if fs.isfile(path):
        return fs, [path]
    if fs.isdir(path):
        entries = fs.ls(path, detail=True)
    else:
        entries = list(fs.glob(path, detail=True).values()) if any(sign in path for sign in "*?[") else []
        if not entries:
            raise NoInput(f"{url}: there is no such file, and no file matches it")
    shown = [each for each in entries if not each["name"].rstrip("/").rpartition("/")[2].startswith((".", "_"))]
    files = sorted(each["name"] for each in shown if each["type"] == "file")
    if not files:
        folders = f", only folders such as {shown[0]['name']}: name them by a glob" if shown else ""
        raise NoInput(f"{url}: wanted files, found none{folders}")
    return fs, files


_Described = dict[str, tuple[Sequence[FileSplit], pa.Schema]]


def _describe(fs: AbstractFileSystem, files: Sequence[str], format: str, null_values: tuple[str, ...]) -> _Described:
    """Splits and schema of each file that has any content."""
    reader = READ_FORMATS[format]
    described: _Described = {}
    for path in files:
        try:
            with fs.open(path, "rb") as file:
                splits = reader.splits(file, path)
                if splits or not reader.guessed:
                    file.seek(0)
                    described[path] = (splits, reader.schema(file, null_values))
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            raise UnreadableInput(f"{path} cannot be read as {format}: {error}") from error
    if not described:
        raise NoInput(f"{files[0]}: wanted {format}, found {len(files)} empty file(s)")
    return described


def _one_schema(found: _Described, format: str, wanted: pa.Schema | None) -> pa.Schema:
    """The one schema of all files. Guessed types are widened until they fit all files."""
    first_path, (_, schema) = next(iter(found.items()))
    guessed = READ_FORMATS[format].guessed
    for path, (_, other) in found.items():
        if format == "jsonl" or (guessed and other.names == schema.names):
            schema = _widened(schema, other, path, first_path)
        elif not other.equals(schema):
            raise UnreadableInput(
                f"{first_path} and {path} have different columns: {_told(schema)}; and {_told(other)}"
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


def _chosen(schema: pa.Schema, columns: Sequence[str] | None, path: str) -> pa.Schema:
    if columns is None:
        return schema
    if missing := [name for name in columns if name not in schema.names]:
        raise UnreadableInput(f"{path} has no column {', '.join(missing)}; it has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in columns])


def _told(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
