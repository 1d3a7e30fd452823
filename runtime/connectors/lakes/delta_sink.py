"""DeltaSink: exactly-once rows in a Delta table, one commit per checkpoint.

The commit adds the files of all writers, and moves the marker: Delta's application transaction (`txn` in its log),
whose id is the writer's name and whose version is the sequence. Two commits of one name from the same snapshot: the
second is refused. But a writer that looks again first may commit a version that is there already, so the marker is
always read from that very snapshot from which the commit goes out.

Other writers, jobs or people, may append, compact and delete at the same time: where that is a conflict nothing was
written, and the commit goes out once more from the newest snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ....actors.operators.marker import Marker
from ....state.file_locations import AnyPath, absolute
from ..errors import check_extra, require
from .delta_files import file_name, text_of, write_file
from .delta_table import (
    Options,
    TableFiles,
    arrow_schema,
    check_writable,
    delta_schema,
    find_table,
    make_table,
    open_table,
    reached,
    stored_schema,
    to_look,
    told,
)
from .errors import ColumnConflict, NoTable
from .lake_sink import FILE_BYTES, LakeCommitter, LakeSink, LakeWriter, added_columns
from .partitions import partitions_of
from .upkeep import check_commits_per_compaction

log = logging.getLogger(__name__)


class DeltaSink(LakeSink):
    """Appends to the Delta table at `path`, a local path or a URL that delta-rs knows, reached with `storage_options`.

    `schema` and `partition_by`: of the table that is made if there is none; None: there has to be one. One that is
    there must have these columns.
    `evolve`: columns of records that the table lacks are added to it, and those that a record lacks are null.
    Otherwise both are a RecordMismatch.
    `file_bytes`: how many bytes of rows, in memory, each subtask gathers for a file, or for one of each partition.
    `commits_per_compaction`: after this number of commits small files are made larger ones, beside the job; None: they
    are not.

    Raises NoTable, UnsupportedTable, ColumnConflict and LakeUnreachable when it is made, and MissingExtra without
    delta-rs.
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        schema: pa.Schema | None = None,
        partition_by: str | Sequence[str] = (),
        evolve: bool = False,
        file_bytes: int = FILE_BYTES,
        commits_per_compaction: int | None = None,
        storage_options: Options = None,
    ) -> None:
        check_extra("deltalake", extra="delta", wanted_by="DeltaSink")
        check_commits_per_compaction(commits_per_compaction)
        self.path, self.evolve, self.commits_per_compaction = absolute(path), evolve, commits_per_compaction
        self.file_bytes, self.storage_options = file_bytes, storage_options
        self.partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        table = find_table(self.path, to_look(self.path, storage_options), "DeltaSink")
        if table is not None:
            self._take_over(table, schema)
        elif schema is None:
            raise NoTable(f"DeltaSink: there is no Delta table at {self.path}: give schema= to make one, or correct it")
        else:
            self.schema = stored_schema(schema, self.path)
            if unknown := [name for name in self.partition_by if name not in schema.names]:
                raise ColumnConflict(f"{self.path}: partition_by={unknown[0]!r}, found {', '.join(schema.names)}")

    def writer(self) -> DeltaWriter:
        return DeltaWriter(self)

    def committer(self) -> DeltaCommitter:
        return DeltaCommitter(self)

    def _take_over(self, table: Any, schema: pa.Schema | None) -> None:
        check_writable(table, self.path)
        self.schema = arrow_schema(table)
        if schema is not None:
            added_columns(self.path, self.schema, stored_schema(schema, self.path), self.evolve)
        partitioned = list(table.metadata().partition_columns)
        if self.partition_by and self.partition_by != partitioned:
            raise ColumnConflict(
                f"{self.path}: wanted a table partitioned by {self.partition_by}, found one by {partitioned}: leave "
                "partition_by= out, or write to another table"
            )
        self.partition_by = partitioned


class DeltaWriter(LakeWriter):
    """Its committables are dicts of what the log says of a file, and `columns`: new ones of the table, as bytes."""

    def __init__(self, sink: DeltaSink) -> None:
        super().__init__(sink.path, sink.schema, sink.file_bytes, sink.evolve)
        self._partition_by, self._options = sink.partition_by, sink.storage_options
        self._first_schema = sink.schema

    def open(self) -> None:
        super().open()
        self._files = TableFiles(self.table, self._options, "DeltaSink")
        self._named = 0

    def write_files(self, rows: pa.Table) -> list[dict[str, Any]]:
        new = [field for field in self.schema if field.name not in self._first_schema.names]
        columns = pa.schema(new).serialize().to_pybytes() if new else None
        written = []
        for values, part in partitions_of(rows, self._partition_by):
            self._named += 1
            path = file_name(
                values, f"part-{self.context.subtask_index:05d}-{self.context.attempt_id}-{self._named}.parquet"
            )
            with reached(self.table, self._options):
                about = write_file(self._files, path, part)
            texts = {name: text_of(value) for name, value in values.items()}
            written.append({"path": path, "values": texts, "columns": columns, **about})
        return written

    def remove_file(self, committable: dict[str, Any]) -> None:
        self._files.remove(committable["path"])

    def new_column(self, field: pa.Field) -> pa.Field:
        return stored_schema(pa.schema([field]), self.table).field(0).with_nullable(True)


class DeltaCommitter(LakeCommitter):
    def __init__(self, sink: DeltaSink) -> None:
        super().__init__(sink.path, sink.commits_per_compaction)
        self._options, self._evolve = sink.storage_options, sink.evolve
        self._schema, self._partition_by = sink.schema, sink.partition_by

    def open(self) -> None:
        self._files = TableFiles(self.table, self._options, "DeltaSink")
        if find_table(self.table, self._options, "DeltaSink") is None:
            make_table(self.table, self._options, self._schema, self._partition_by)
        self._table: Any = open_table(self.table, self._options, "DeltaSink")
        check_writable(self._table, self.table)
        super().open()

    def last_marker(self, writer: str) -> int | None:
        with reached(self.table, self._options):
            self._table.update_incremental()
            found: int | None = self._table.transaction_version(writer)
        return found

    def missing(self, committables: list[dict[str, Any]]) -> list[str]:
        with reached(self.table, self._options):
            return self._files.missing([each["path"] for each in committables])

    def commit_once(self, committables: list[dict[str, Any]], marker: Marker) -> None:
        with reached(self.table, self._options):
            self._add_columns(committables)
            self._commit_now(committables, marker)

    def conflict(self) -> type[Exception]:
        found: type[Exception] = _deltalake().exceptions.CommitFailedError
        return found

    def _commit_now(self, committables: list[dict[str, Any]], marker: Marker) -> None:
        deltalake = _deltalake()
        now_ms = self.context.clock.wall_ms()
        actions = [
            deltalake.transaction.AddAction(
                each["path"], each["size"], each["values"], now_ms, data_change=True, stats=each["stats"]
            )
            for each in committables
        ]
        properties = deltalake.CommitProperties(
            app_transactions=[deltalake.Transaction(marker.writer, marker.sequence)],
            custom_metadata={"understudy.job": self.context.job_id, "understudy.sink": marker.sink},
        )
        self._table.create_write_transaction(
            actions, "append", self._table.schema(), partition_by=self._partition_by, commit_properties=properties
        )

    def _add_columns(self, committables: list[dict[str, Any]]) -> None:
        """A commit of its own, before that of the files; where somebody else has added them it does nothing."""
        for serialized in {each["columns"] for each in committables} - {None}:
            wanted = pa.ipc.read_schema(pa.py_buffer(serialized))
            new = added_columns(self.table, arrow_schema(self._table), wanted, self._evolve)
            if new:
                self._table.alter.add_columns(delta_schema(pa.schema(new), self.table).fields)
                self._table.update_incremental()

    def look_after(self) -> None:
        """With a table of its own. A failure costs nothing: small files stay small."""
        began = time.monotonic()
        try:
            done = open_table(self.table, self._options, "DeltaSink").optimize.compact()
            taken = f"{done['numFilesRemoved']} files are {done['numFilesAdded']} now, {time.monotonic() - began:.1f} s"
            log.info("%s: %s", self.table, taken)
        except Exception as error:  # noqa: BLE001 - whatever delta-rs raises
            log.warning("%s: small files were not compacted: %s", self.table, told(error))


def _deltalake() -> Any:
    return require("deltalake", extra="delta", wanted_by="DeltaSink")
