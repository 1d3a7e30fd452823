"""LakeSource: a table of a lake as of one version, and the versions that follow. What a version holds, a subclass says.

The files of a version are dealt out over the subtasks (`spans`); each reads its files one after the other. The first
version is settled when the source is made, on the driver, so that all subtasks and attempts begin with the same one.
The columns are those that the table has then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeVar

import pyarrow as pa

from ....actors.operators.source import END, SourceState
from ....actors.setting_limits import duration_setting
from ..paced_source import PacedSource, divided
from .errors import ColumnConflict
from .spans import Share, Span, dealt_out

F = TypeVar("F")

CHANGES = ("refuse", "skip")


class Versions(Protocol[F]):
    """A table as a source reads it. `F`: one of its files, as the implementation knows it. Raises VersionGone,
    RowsChanged, UnsupportedTable.
    """

    def files(self, version: int) -> Sequence[F]:
        """All files of the table as of this version, in the same order each time."""
        ...

    def added(self, version: int) -> Sequence[F]:
        """The files with new rows of this version alone, in the same order each time."""
        ...

    def after(self, version: int) -> Sequence[int]:
        """The versions that have come after this one, in order."""
        ...

    def batches(self, file: F, schema: pa.Schema, skipped: int) -> Iterator[pa.RecordBatch]:
        """The rows of a file, in the same order each time, without the first `skipped`, as batches of `schema`."""
        ...


class LakeSource(PacedSource):
    """`version`: the first one; `is_whole`: whether all of its rows are read, or only what comes after it;
    `watch_ms`: how often to look for later versions; None: there is an end.
    """

    schema: pa.Schema
    _how_to_bound = "leave watch_ms out in the test, and it ends where the table ends"

    def __init__(
        self,
        version: int,
        is_whole: bool,
        watch_ms: float | None,
        batch_rows: int | None,
        records_per_second: float | None,
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        self.version, self.is_whole, self.watch_ms = version, is_whole, watch_ms
        self.bounded = watch_ms is None

    def versions(self) -> Versions[Any]:
        """The table, in the TaskManager. Called once per attempt."""
        raise NotImplementedError(f"{type(self).__name__}.versions is not defined")  # abstract

    def open(self) -> None:
        super().open()
        self._versions: Versions[Any] = self.versions()
        self._share = Share(self.version)
        if self.is_whole:
            self._share = Share.of_whole(self.version, self.context.subtask_index, self.context.parallelism)
        self._files: tuple[Span, Sequence[Any]] | None = None
        """Of the version of the first span, so that each version is listed once."""
        self._batches: Iterator[pa.RecordBatch] | None = None
        """Of the file that is being read."""
        self._rest: pa.RecordBatch | None = None
        self._look_at_ms = 0.0

    def close(self) -> None:
        self._batches = self._rest = None

    def source_schema(self) -> pa.Schema:
        return self.schema

    # -- reading

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END] | None:
        while self._rest is None:
            if not self._share.spans and not self._looked_further():
                return END if self.bounded else None
            self._rest = self._next_batch()
        batch, self._rest = divided(self._rest, max_records)
        first, *others = self._share.spans
        read = Span(first.version, first.is_whole, first.start, first.step, first.row + batch.num_rows)
        self._share = Share(self._share.seen, (read, *others))
        return batch

    def poll_delay_ms(self) -> float | None:
        paced_ms = super().poll_delay_ms()
        if paced_ms is not None or self.bounded:
            return paced_ms
        return max(0.0, self._look_at_ms - self.context.clock.now_ms())

    def _looked_further(self) -> bool:
        """Whether there are new versions; it looks for them when it is time to."""
        now_ms = self.context.clock.now_ms()
        if self.watch_ms is None or now_ms < self._look_at_ms:
            return False
        context, seen = self.context, self._share.seen
        self._share = self._share.with_versions(self._versions.after(seen), context.subtask_index, context.parallelism)
        if self._share.seen == seen:
            self._look_at_ms = now_ms + self.watch_ms
        return self._share.seen != seen

    def _next_batch(self) -> pa.RecordBatch | None:
        """The next batch with rows of the first span's first file; None when that is read, or there is none."""
        span, *others = self._share.spans
        if self._batches is None:
            files = self._files_of(span)
            if span.start >= len(files):
                self._share = Share(self._share.seen, tuple(others))
                return None
            self._batches = self._versions.batches(files[span.start], self.schema, span.row)
        for batch in self._batches:
            if batch.num_rows:
                return batch
        self._batches = None
        self._share = Share(self._share.seen, (span.rest(), *others))
        return None

    def _files_of(self, span: Span) -> Sequence[Any]:
        if self._files is None or (self._files[0].version, self._files[0].is_whole) != (span.version, span.is_whole):
            listed = self._versions.files(span.version) if span.is_whole else self._versions.added(span.version)
            self._files = (span, listed)
        return self._files[1]

    # -- state

    def offset(self) -> dict[str, Any]:
        """A Share: the newest version that was seen, and what is left to read of those up to it."""
        return self._share.to_plain()

    def seek(self, offset: dict[str, Any]) -> None:
        self._share = Share.from_plain(offset)

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        shares = [Share.from_plain(offset) for offset in offsets]
        chains = [[seen, *self._chain_after(seen, shares)] for seen in {share.seen for share in shares}]
        context = self.context
        self._share = dealt_out(shares, max(chains, key=len), context.subtask_index, context.parallelism)

    def _chain_after(self, seen: int, shares: Sequence[Share]) -> Sequence[int]:
        """Where all have seen the same, nothing is asked of the table."""
        return self._versions.after(seen) if any(share.seen != seen for share in shares) else ()


def without_first(rows: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches without their first `rows`."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


def check_following(watch_ms: float | None, only_new: bool, changes: str) -> None:
    """Raises ValueError for settings that make no sense."""
    if watch_ms is not None:
        duration_setting("watch_ms", watch_ms, 1)
    if only_new and watch_ms is None:
        raise ValueError("only_new=True reads nothing without watch_ms")
    if changes not in CHANGES:
        raise ValueError(f"changes: wanted one of {', '.join(CHANGES)}, found {changes!r}")


def chosen(schema: pa.Schema, columns: Sequence[str] | None, path: str) -> pa.Schema:
    """The schema of these columns alone. Raises ColumnConflict for one that is not there."""
    if columns is None:
        return schema
    if unknown := [name for name in columns if name not in schema.names]:
        raise ColumnConflict(f"{path} has no column {unknown[0]!r}; it has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in columns])
