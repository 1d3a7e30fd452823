"""LakeSink: what a table of a lake is written by: writers, as many as there are subtasks, and one committer.

    stream.sink_to(DeltaSink(path))     the writers are called NAME-writer, and the committer NAME

Each writer gathers rows in memory until they are worth a file, or a barrier comes, and sends the committer what there
is to know of its files; the committer puts all files of a checkpoint into the table in one commit, once the checkpoint
is complete. Files of an attempt that was killed before that are in no version of the table, so no reader sees them;
the table's own maintenance removes them when they are old.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ....actors.errors import MarkerMoved
from ....actors.flow.elements import Batch
from ....actors.flow.records import RecordMismatch, batch_of, conform, mapping_of, schema_problem
from ....actors.operators.committer import CommittableWriter, Committer
from ....actors.operators.marker import Marker
from ....messages.shown_url import url_shown
from ..files.output_trial import output_named
from .errors import ColumnConflict, LostDataFile
from .upkeep import Upkeep

log = logging.getLogger(__name__)

FILE_BYTES = 64 * 1024 * 1024

COMMIT_ROUNDS = 10
"""How often a commit goes out again at once when others keep committing; after that the sink waits."""


class LakeSink:
    """Makes the two operators."""

    def writer(self) -> LakeWriter:
        raise NotImplementedError(f"{type(self).__name__}.writer is not defined")  # abstract

    def committer(self) -> LakeCommitter:
        raise NotImplementedError(f"{type(self).__name__}.committer is not defined")  # abstract


class LakeWriter(CommittableWriter):
    """`schema`: of the table; `file_bytes`: how many bytes of rows, in memory, are gathered for a file, or for one of
    each partition; `evolve`: whether columns that are new become columns of the table, and columns that are missing are
    null.
    """

    def __init__(self, table: str, schema: pa.Schema, file_bytes: int, evolve: bool) -> None:
        if file_bytes < 1:
            raise ValueError(f"file_bytes: wanted at least 1, found {file_bytes!r}")
        self.table, self.schema, self.file_bytes, self.evolve = table, schema, file_bytes, evolve

    # -- what a subclass supplies

    def write_files(self, rows: pa.Table) -> list[Any]:
        """Write rows of `self.schema` into new files, durably; returns a committable for each."""
        raise NotImplementedError(f"{type(self).__name__}.write_files is not defined")  # abstract

    def remove_file(self, committable: Any) -> None:
        """It was written and will not be committed."""
        raise NotImplementedError(f"{type(self).__name__}.remove_file is not defined")  # abstract

    def new_column(self, field: pa.Field) -> pa.Field:
        """As the table will have it."""
        return field.with_nullable(True)

    # -- how it goes

    def open(self) -> None:
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._written: list[Any] = []

    def output_schema(self, *inputs: pa.Schema | None) -> None:
        """Raises RecordMismatch, naming the columns, when batches of this schema can never be rows of the table."""
        (upstream,) = inputs
        if upstream is None:
            return
        wanted = self.schema
        if self.evolve:
            self._widened(upstream)
            shared = [name for name in upstream.names if name in wanted.names]
            upstream = pa.schema([upstream.field(name) for name in shared])
            wanted = pa.schema([wanted.field(name) for name in shared])
        if problem := schema_problem(upstream, wanted):
            raise RecordMismatch(f"{self.table}: {problem}")

    def write(self, batch: Batch) -> None:
        columns = self._fitted(batch)
        self._gathered.append(columns)
        self._gathered_bytes += columns.nbytes
        if self._gathered_bytes >= self.file_bytes:
            self._flush()

    def finish(self) -> Sequence[Any]:
        self._flush()
        written, self._written = self._written, []
        return written

    def close(self) -> None:
        """Remove files that were not sent: nobody will commit them."""
        for committable in getattr(self, "_written", ()):
            with suppress(OSError):
                self.remove_file(committable)

    def _flush(self) -> None:
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if gathered:
            whole = [self._completed(batch) for batch in gathered]
            with output_named(self.table):
                self._written += self.write_files(pa.Table.from_batches(whole, self.schema))

    def _fitted(self, batch: Batch) -> pa.RecordBatch:
        try:
            if not self.evolve:
                columns = batch if isinstance(batch, pa.RecordBatch) else batch_of(batch, self.schema)
                return conform(columns, self.schema)
            columns = batch if isinstance(batch, pa.RecordBatch) else self._inferred(batch)
            self.schema = self._widened(columns.schema)
            return self._completed(columns)
        except RecordMismatch as mismatch:
            raise RecordMismatch(f"{self.table}: {mismatch}") from mismatch

    def _inferred(self, records: list[Any]) -> pa.RecordBatch:
        """Columns that the table has are of its types; a new one that has no value yet is left out."""
        rows = [dict(mapping_of(record)) for record in records]
        new = dict.fromkeys(name for row in rows for name in row if name not in self.schema.names)
        if new:
            found = batch_of([{name: row.get(name) for name in new} for row in rows]).schema
            self.schema = self._widened(pa.schema([field for field in found if field.type != pa.null()]))
            for row in rows:
                for name in new.keys() - set(self.schema.names):
                    row.pop(name, None)
        return batch_of(rows, self.schema)

    def _widened(self, found: pa.Schema) -> pa.Schema:
        new = [field for field in found if field.name not in self.schema.names]
        return pa.schema([*self.schema, *map(self.new_column, new)]) if new else self.schema

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """With null where it has no column. Raises RecordMismatch where that may not be null."""
        if batch.schema.names == self.schema.names:
            return conform(batch, self.schema)
        missing = [field for field in self.schema if field.name not in batch.schema.names]
        if required := [field.name for field in missing if not field.nullable]:
            raise RecordMismatch(f"missing {', '.join(required)}, which may not be null")
        for field in missing:
            batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
        return conform(batch, self.schema)


class LakeCommitter(Committer):
    """One for all writers. Makes the table when it opens, if there is none.

    Others, jobs or people, may commit at the same time. Where that is a conflict nothing was written, and the commit
    goes out once more, from the newest version and with its marker.
    """

    def __init__(self, table: str, commits_per_compaction: int | None) -> None:
        self.table, self._commits_per_compaction = table, commits_per_compaction

    @property
    def _writes_to(self) -> str:
        return f"table {url_shown(self.table)}"

    # -- what a subclass supplies, beside `last_marker`, which reads the newest version

    def missing(self, committables: list[Any]) -> list[str]:
        """The files that are not there any more."""
        raise NotImplementedError(f"{type(self).__name__}.missing is not defined")  # abstract

    def commit_once(self, committables: list[Any], marker: Marker) -> None:
        """Commit to the version that `last_marker` has read. Raises `conflict()` if that is not the newest."""
        raise NotImplementedError(f"{type(self).__name__}.commit_once is not defined")  # abstract

    def conflict(self) -> type[Exception]:
        """What the table's library raises where somebody else has committed meanwhile."""
        raise NotImplementedError(f"{type(self).__name__}.conflict is not defined")  # abstract

    def look_after(self) -> None:
        """Upkeep, on a thread of its own: keep the table quick to read. Raises nothing."""

    # -- how it goes

    def open(self) -> None:
        self._upkeep = Upkeep("upkeep of a table", self._commits_per_compaction, self.look_after)

    def close(self) -> None:
        if (upkeep := getattr(self, "_upkeep", None)) is not None:
            upkeep.join(timeout=60)

    def commit(self, committables: list[Any], marker: Marker) -> None:
        if lost := self.missing(committables):
            raise LostDataFile(self.table, lost)
        conflict = self.conflict()
        for left in reversed(range(COMMIT_ROUNDS)):
            found = self.last_marker(marker.writer) or 0
            if found != marker.after:
                raise MarkerMoved(marker.writer, marker.after, found)
            try:
                self.commit_once(committables, marker)
                break
            except conflict as error:
                if not left:
                    raise
                log.info("%s: others commit too, trying again: %s", self.table, str(error).partition("\n")[0])
        self._upkeep.committed()


def added_columns(where: str, table: pa.Schema, wanted: pa.Schema, evolve: bool) -> list[pa.Field]:
    """The columns of `wanted` that the table lacks. Raises ColumnConflict if there may be none, or if types differ."""
    for field in wanted:
        if field.name in table.names and table.field(field.name).type != field.type:
            raise ColumnConflict(
                f"{where}: column {field.name!r} is {table.field(field.name).type} in the table, found {field.type}: "
                "cast it, or give schema= so that all records have one type"
            )
    new = [field for field in wanted if field.name not in table.names]
    if new and not evolve:
        raise ColumnConflict(f"{where}: the table has no column {new[0].name!r}: evolve=True adds it")
    return new
