"""WatchedFileSource: reads files that come while the job runs, each once. Flink: FileSource.monitorContinuously.

Each subtask looks at the folder for itself, every `watch_ms`, and takes the files whose names hash to it (FilesSeen). A
look, and reading, may block, so they are done aside; without a task around it they are done at once. Files come in the
order of their modification times within a look, and rows in the file's order. Splits, for watermarks, are the files
that are being read; until the first look is done there is one that is waited for.

The offset is what FilesSeen knows, and belongs to one path.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ....actors.flow.records import column_problem, conform
from ....actors.operators.patience import RETRY_MS
from ....state import DurableFiles
from ....state.file_locations import AnyPath, absolute
from ..errors import ConnectorError, NoInput, OffsetMismatch, UnreadableInput
from ..paced_source import COLUMN_BATCH_ROWS, PacedSource, divided
from .csv_guess import as_text, check_guess, csv_form, warn_of_texts
from .file_heads import check_head
from .file_look import look, root_of, version_now
from .file_readers import READ_FORMATS, CsvForm, ReadOptions, texts_kept
from .file_source import chosen, unreadable
from .files_seen import FilesSeen, changed
from .locations import is_object_store, located

log = logging.getLogger(__name__)

WATCH_MS, SETTLE_MS = 1_000, 1_000

_FIRST_LOOK = "the first look"


@dataclass(frozen=True, slots=True)
class _Unread:
    """A file is not what it was found as, and nothing of it was emitted: it may be found again."""

    is_gone: bool


class WatchedFileSource(PacedSource):
    """`path`: a file, folder or glob, local or an fsspec URL; in each folder of a glob hidden names (`.…`, `_…`) and
    those of unfinished files (`.tmp`, `.part`, …) are left out.

    `settle_ms`: how long a file has to be the same until it is read; None: 0 in an object store, where files come
    whole, and else SETTLE_MS. Without a `schema` the oldest file there is says the columns; raises NoInput if there is
    none. A file with other columns is an UnreadableInput; one that was changed after its first rows were read, also
    after all of them were, or removed before a checkpoint covers the last, an InputChanged.
    """

    bounded = False
    _how_to_bound = "leave watch_ms out in the test, and it ends where its files end"

    def __init__(
        self,
        path: AnyPath,
        format: str = "parquet",
        *,
        watch_ms: float = WATCH_MS,
        settle_ms: float | None = None,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
        null_values: Sequence[str] = ("",),
        delimiter: str = ",",
        encoding: str = "utf8",
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        self.path = absolute(path)
        if "**" in self.path:
            raise ValueError(f"path: wanted a * for each level of folders, found ** in {str(path)!r}")
        form = csv_form(format, null_values, delimiter, encoding)
        self.format = format
        self.watch_ms = watch_ms
        self.settle_ms = (0.0 if is_object_store(self.path) else SETTLE_MS) if settle_ms is None else settle_ms
        found = self._oldest_schema(form, columns) if schema is None else schema
        self._check_folder()
        self._file_columns = None if columns is not None or format == "jsonl" else found
        """What each file has to have, and no more; None: the columns of the stream are enough."""
        self.schema = chosen(found, columns, self.path)
        checked = 0 if schema is None else None
        self._options = ReadOptions(self.schema, self.batch_rows, form, checked_bytes=checked)

    def for_columns(self, names: Sequence[str], batch_rows: int = COLUMN_BATCH_ROWS) -> WatchedFileSource:
        """The same source with these columns only, in batches of `batch_rows` rows unless the user chose their size."""
        narrowed = copy.copy(self)
        narrowed.schema = chosen(self.schema, names, self.path)
        narrowed.batch_rows = self._batch_rows_or(batch_rows)
        narrowed._options = replace(self._options, columns=narrowed.schema, batch_rows=narrowed.batch_rows)
        return narrowed

    def source_schema(self) -> pa.Schema:
        return self.schema

    # -- life and state

    def open(self) -> None:
        super().open()
        self._files = FilesSeen(self.context.subtask_index, self.context.parallelism, self.settle_ms)
        self._is_looking = self._has_looked = self._is_reading = False
        self._next_look_ms = 0.0
        self._failing_since_ms: float | None = None
        """When the first of the looks failed that have failed since."""
        self._batches: Iterator[pa.RecordBatch | _Unread] | None = None
        self._rest: pa.RecordBatch | None = None
        self._error: BaseException | None = None
        self._split = ""
        """Where the last batch came from."""

    def close(self) -> None:
        self._batches = self._rest = None

    def offset(self) -> dict[str, Any]:
        return {"path": self.path, **self._files.to_plain()}

    def seek(self, offset: dict[str, Any]) -> None:
        self.rescale([offset])

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        for offset in offsets:
            if offset["path"] != self.path:
                raise OffsetMismatch(
                    f"source {self.context.name!r} was checkpointed while it watched {offset['path']}, and watches "
                    f"{self.path} now: what it has read there says nothing of the files here. Keep the path, or give "
                    "the source another name, to read all that is there"
                )
        self._files.restore(offsets)

    def current_splits(self) -> tuple[str, ...]:
        """A subtask without a file is idle, but not before it has looked whether there is one."""
        if not self._has_looked:
            return (_FIRST_LOOK, *(each.name for each in self._files.begun))
        return tuple(each.name for each in self._files.begun)

    # -- emitting

    def _split_read(self) -> str:
        return self._split

    def poll_delay_ms(self) -> float | None:
        if self._delay_ms is not None or self._is_looking or self._is_reading:
            return self._delay_ms
        return max(self._next_look_ms - self.context.clock.now_ms(), 1.0)

    def read(self, max_records: int) -> pa.RecordBatch | None:
        self._look()
        while self._rest is None and self._read_on():
            pass
        if self._error is not None:
            raise self._error
        if self._rest is None:
            return None
        batch, self._rest = divided(self._rest, max_records)
        file = self._files.begun[0]
        file.rows += batch.num_rows
        self._split = file.name
        if self._rest is None:
            self._read_on()  # while this batch is at work
        return batch

    def _read_on(self) -> bool:
        """Begin to read the next batch, if there is a file; whether that is done already."""
        if self._is_reading or self._error is not None:
            return False
        if self._batches is None:
            if (file := self._files.next()) is None:
                return False
            self._batches = self._rows_of(file.name, file.version, file.rows)
        self._is_reading = True
        batches = self._batches
        self._aside(lambda: next(batches, None), self._has_batch, self._failed)
        return not self._is_reading

    def _has_batch(self, batch: pa.RecordBatch | _Unread | None) -> None:
        self._is_reading = False
        if isinstance(batch, _Unread):
            self._put_back(batch)
        elif batch is None:
            self._batches = None
            self._files.has_read()
        elif batch.num_rows:
            self._rest = batch

    def _failed(self, error: BaseException) -> None:
        self._is_reading, self._error = False, error

    def _put_back(self, unread: _Unread) -> None:
        if unread.is_gone:
            log.warning("source %r: %s was removed before it was read", self.context.name, self._files.begun[0].name)
        self._batches = None
        self._files.put_back()
        self._next_look_ms = min(self._next_look_ms, self.context.clock.now_ms() + self.settle_ms)

    def _rows_of(self, name: str, version: str, rows: int) -> Iterator[pa.RecordBatch | _Unread]:
        """The rows of a file from this one on. Raises UnreadableInput and InputChanged."""
        fs, _ = located(self.path)
        reader = READ_FORMATS[self.format]
        if (found := version_now(fs, name)) != version:
            if rows:
                raise changed(name, version, found)
            yield _Unread(found is None)
            return
        try:
            with fs.open(name, "rb") as file:
                splits = reader.splits(file, name)
                self._check_columns(name, reader.schema(_at_start(file), self._options.form) if splits else None)
            for split in splits:
                if split.row_group >= 0 and split.size <= rows:
                    rows -= split.size
                    continue
                with fs.open(name, "rb") as file:
                    for batch in reader.batches(file, split, self._options):
                        skipped = min(rows, batch.num_rows)
                        rows -= skipped
                        yield conform(batch, self.schema).slice(skipped)
        except FileNotFoundError as error:
            raise changed(name, version, None) from error
        except PermissionError:
            raise UnreadableInput(
                f"user {os.getuid()} of this host may not read {name}: let that user read it, or take it away, and the "
                "job goes on"
            ) from None
        except (ValueError, TypeError, KeyError, NotImplementedError) as error:
            if isinstance(error, ConnectorError):
                raise
            guessed = self._options.checked_bytes is not None
            raise unreadable(name, self.format, error, self.schema, may_grow=True, is_guess=guessed) from None
        if (found := version_now(fs, name)) != version:
            raise changed(name, version, found)

    def _check_columns(self, name: str, found: pa.Schema | None) -> None:
        wanted = self._file_columns
        if found is None or wanted is None:
            return
        problem = column_problem(found.names, wanted)
        if problem is None and not READ_FORMATS[self.format].guessed:
            other = [each for each in wanted if found.field(each.name).type != each.type]
            problem = "; ".join(f"{each.name} is {found.field(each.name).type}, wanted {each.type}" for each in other)
        if problem:
            raise UnreadableInput(
                f"{name} has other columns than the stream: {problem}. Write files of the same columns, or start the "
                "job again with columns= or schema= that fit all of them"
            )

    # -- looking

    def _look(self) -> None:
        """Begin to look, if it is time and there is no file left to read."""
        if self._is_looking or self._files.has_more or self.context.clock.now_ms() < self._next_look_ms:
            return
        self._is_looking = True
        self._aside(lambda: look(self.path), self._has_seen, self._has_not_seen)

    def _has_seen(self, files: Any) -> None:
        now_ms = self.context.clock.now_ms()
        if self._failing_since_ms is not None:
            log.warning("source %r: %s can be read again", self.context.name, self.path)
        self._is_looking, self._has_looked, self._failing_since_ms = False, True, None
        try:
            self._files.take(files, now_ms)
        except ConnectorError as error:
            self._error = error
        is_soon = self._files.is_settling
        self._next_look_ms = now_ms + (min(self.watch_ms, self.settle_ms) if is_soon else self.watch_ms)

    def _has_not_seen(self, error: BaseException) -> None:
        if isinstance(error, FileNotFoundError) and is_object_store(self.path):
            self._has_seen([])  # a folder is there as long as there is a file in it
            return
        now_ms = self.context.clock.now_ms()
        self._is_looking, self._next_look_ms = False, now_ms + self.watch_ms
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
            log.warning("source %r: cannot look at %s, and tries again: %r", self.context.name, self.path, error)
        if isinstance(error, PermissionError) or now_ms - self._failing_since_ms >= RETRY_MS:
            self._error = error

    def _aside(
        self, work: Callable[[], Any], done: Callable[[Any], Any], failed: Callable[[BaseException], Any]
    ) -> None:
        if self.context.task is not None:
            self.context.task.run_aside(work, done, failed)
            return
        try:
            found = work()
        except (OSError, ConnectorError) as error:
            failed(error)
        else:
            done(found)

    # -- when it is made

    def _oldest_schema(self, form: CsvForm, columns: Sequence[str] | None) -> pa.Schema:
        reader = READ_FORMATS[self.format]
        if reader.columns is not None:
            return reader.columns
        fs, _ = located(self.path)
        try:
            files = look(self.path)
        except FileNotFoundError:
            files = []
        for each in sorted(files, key=lambda file: file.modified):
            try:
                with fs.open(each.name, "rb") as file:
                    check_head(file, self.format)
                    if reader.splits(file, each.name) or not reader.guessed:
                        found = reader.schema(_at_start(file), form)
                        check_guess(each.name, self.format, found, form)
                        texts = texts_kept(found)
                        warn_of_texts(self.path, texts, columns)
                        return as_text(found, texts)
            except (ValueError, TypeError, NotImplementedError, OSError) as error:
                raise unreadable(each.name, self.format, error, may_grow=True) from None
        raise NoInput(f"{self.path}: no file says the columns yet: give schema=pa.schema([...]), or write a first file")

    def _check_folder(self) -> None:
        """A folder that is missing is a slip of the pen."""
        fs, path = located(self.path)
        if DurableFiles(fs).has_folders and not fs.exists(root_of(path)):
            raise NoInput(f"{self.path}: there is no folder {root_of(path)}: make it, or correct the path")


def _at_start(file: Any) -> Any:
    file.seek(0)
    return file
