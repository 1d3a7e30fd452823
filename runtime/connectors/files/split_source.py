"""SplitSource: what is read in splits, dealt out over the subtasks. Flink: FileSource with a static split assignment.

The splits are settled when the source is made, on the driver, and travel with it, so all subtasks deal the same ones
out. The offset is a row in a split, and which splits have not been begun; a checksum of the splits goes with it, as an
offset among others means nothing. After a change of parallelism splits that were begun come first. Where event time
goes by the order of the splits, each run of them that ascends has a watermark of its own then. The subclass defines the
content of a split.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple
from typing import Any, Literal

import pyarrow as pa

from ....actors.operators.source import END, SourceState
from ....messages import pack_plain
from ....messages.counted import counted
from ....messages.shown_url import path_shown
from ..errors import OffsetMismatch
from ..index_share import IndexShare
from ..paced_source import COLUMN_BATCH_ROWS, PacedSource, divided
from .file_look import time_advice, version_shown
from .file_readers import FileSplit

_FILES_NAMED = 3


class SplitSource(PacedSource):
    """A subclass calls `settle` when it is made, and defines `open_split` and `for_columns`."""

    splits_only_after_rescale = True

    splits: tuple[FileSplit, ...]
    schema: pa.Schema
    place: str
    """Where the splits are, for messages."""

    def __init__(self, batch_rows: int | None, records_per_second: float | None) -> None:
        super().__init__(batch_rows, records_per_second)
        self._begun: list[list[int]] = []
        """[index among all splits, rows of it that were emitted]; the first one is being read."""
        self._has_splits = False
        """Of event time, until the attempt ends."""
        self._runs: dict[int, str] = {}
        """Of the split that was begun last, its run."""
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def settle(self, place: str, splits: Sequence[FileSplit], schema: pa.Schema, identity: Sequence[Any] = ()) -> None:
        """What is read, and as which columns. `identity`: plain data that must be the same for an offset to hold,
        beside the splits.
        """
        self.place, self.splits, self.schema = place, tuple(splits), schema
        self._inputs = zlib.crc32(pack_plain([*(list(astuple(split)) for split in self.splits), *identity]))

    def for_columns(self, names: Sequence[str], batch_rows: int = COLUMN_BATCH_ROWS) -> SplitSource:
        """The same source with these columns only, in batches of `batch_rows` rows unless the user chose their size.

        An offset of either means the same to both.
        """
        raise NotImplementedError(f"{type(self).__name__}.for_columns is not defined")  # abstract

    def open_split(self, split: FileSplit) -> Iterator[pa.RecordBatch]:
        """All rows of the split, in the same order each time, as batches of `schema`."""
        raise NotImplementedError(f"{type(self).__name__}.open_split is not defined")  # abstract

    def versions(self, paths: Collection[str]) -> dict[str, str]:
        """What tells the content of these files from another one, as of when the stream was built; of a file that is
        not named, the splits say all. It is asked for each offset, and may raise for a file that has changed.
        """
        return {}

    def open(self) -> None:
        super().open()
        self._begun = []
        self._has_splits, self._runs = False, {}
        self._share = IndexShare.fresh(self.context.subtask_index, self.context.parallelism)

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END]:
        if self._rest is None:
            self._rest = self._next_batch()
        if self._rest is None:
            return END
        batch, self._rest = divided(self._rest, max_records)
        self._begun[0][1] += batch.num_rows
        return batch

    def offset(self) -> dict[str, Any]:
        """`begun`: index among all splits, and rows of it that were emitted; `splits`: an IndexShare of the others;
        `versions`: of the files that were begun.
        """
        return {
            "begun": [list(each) for each in self._begun],
            "splits": self._share.to_plain(),
            "inputs": self._inputs,
            "files": self._files_text(),
            "versions": self.versions({self.splits[index].path for index, _ in self._begun}),
        }

    def seek(self, offset: dict[str, Any]) -> None:
        """The first `poll` then costs reading the rows of one split up to the offset."""
        self._check_inputs(offset)
        self._begun = [list(each) for each in offset["begun"]]
        self._share = IndexShare.from_plain(offset["splits"], self.context.parallelism)
        self._has_splits = self._goes_back

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        for offset in offsets:
            self._check_inputs(offset)
        subtask, parallelism = self.context.subtask_index, self.context.parallelism
        begun = [list(each) for offset in offsets for each in offset["begun"]]
        self._begun = begun[subtask::parallelism]
        self._share = IndexShare.dealt_out([offset["splits"] for offset in offsets], subtask, parallelism)
        self._has_splits = self._goes_back

    def current_splits(self) -> Collection[str] | None:
        if not self._has_splits:
            return None
        return tuple(dict.fromkeys((*(self._run_of(index) for index, _ in self._begun), *self._share.names)))

    def _split_read(self) -> str | None:
        return self._run_of(self._begun[0][0]) if self._has_splits else None

    def _run_of(self, index: int) -> str:
        """The run that a split is of, in which rows are in order; or the split itself, if it was begun before."""
        return self._runs.get(index, f"split {index}")

    @property
    def _goes_back(self) -> bool:
        """Whether splits are read behind ones that come later."""
        begun = [index for index, _ in self._begun]
        return self._share.goes_back or begun != sorted(begun) or self._share.first < max(begun, default=-1)

    def source_schema(self) -> pa.Schema:
        return self.schema

    def close(self) -> None:
        self._batches = self._rest = None

    def _check_inputs(self, offset: dict[str, Any]) -> None:
        if offset["inputs"] != self._inputs:
            had = f"it had {offset['files']}" if "files" in offset else "what it had is not recorded"
            raise OffsetMismatch(
                f"source {self.context.name!r} was checkpointed while it read other files than {self.place} has now: "
                f"{had}; it has {self._files_text()}. Start it on the files it had, and read new ones in another job, "
                "or by a source of another name"
            )
        had_versions = offset.get("versions", {})  # earlier releases had none
        for path, version in self.versions(had_versions).items():
            if version != had_versions[path]:
                was = had_versions[path]
                raise OffsetMismatch(
                    f"source {self.context.name!r} had read a part of {path_shown(path)}, and it is another one now: "
                    f"it was {version_shown(was)}, and is {version_shown(version)}; so rows of two versions would be "
                    f"mixed. Start it with the file put back as it was{time_advice(was)}, or read the new one in "
                    "another job, or by a source of another name"
                )

    def _files_text(self) -> str:
        """How many there are, and the names of the first ones."""
        paths = list(dict.fromkeys(split.path for split in self.splits))
        total = sum(split.size for split in self.splits)
        unit = "byte" if all(split.row_group < 0 for split in self.splits) else "row"
        names = ", ".join(map(path_shown, paths[:_FILES_NAMED]))
        more = f", ... ({len(paths) - _FILES_NAMED:,} more)" if len(paths) > _FILES_NAMED else ""
        return f"{counted(len(paths), 'file')}, {counted(total, unit)}: {names}{more}"

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
            self._runs = {taken.start: self._share.taken_of}
        return taken is not None

    def _open_at(self, index: int, rows: int) -> Iterator[pa.RecordBatch]:
        """The split's batches without its first rows."""
        split = self.splits[index]
        for batch in self.open_split(split):
            skipped = min(rows, batch.num_rows)
            rows -= skipped
            yield batch.slice(skipped)
        if rows:
            raise OffsetMismatch(
                f"{split.path} ends {rows} rows before the offset of source {self.context.name!r}: put back "
                "the file as it was when the checkpoint was taken"
            )
