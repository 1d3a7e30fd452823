"""IcebergSink: exactly-once rows in an Iceberg table, one snapshot per checkpoint.

The commit adds the files of all writers, and moves the marker: a property of the table, which outlives expired
snapshots; it stands in the snapshot's summary too. The commit demands that the table's newest snapshot is
the one whose properties were read. PyIceberg's own retries would commit again without reading the marker, and so double
the rows: they are off in our copy of the table's properties, and the round begins here, with the marker.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from ....actors.operators.marker import Marker
from ....actors.setting_limits import duration_setting
from ..errors import check_extra, require
from ..names import one_name
from .errors import ColumnConflict, NoTable
from .iceberg_table import (
    MARKER,
    Catalog,
    add_columns,
    arrow_schema,
    find_table,
    load_catalog,
    open_or_make,
    reached,
    stored_schema,
    without_retries,
)
from .iceberg_upkeep import look_after
from .lake_sink import COMMIT_ROUNDS, FILE_BYTES, LakeCommitter, LakeSink, LakeWriter, added_columns
from .upkeep import check_commits_per_compaction

log = logging.getLogger(__name__)


class IcebergSink(LakeSink):
    """Appends to the Iceberg table `table`, such as "sales.totals", of a `catalog`: the name of one that PyIceberg is
    configured with, or its properties.

    `schema` and `partition_by`: of the table that is made if there is none, partitioned by the values of columns; None:
    there has to be one, partitioned in whatever way. One that is there must have these columns.
    `evolve`: columns of records that the table lacks are added to it, and those that a record lacks are null.
    Otherwise both are a RecordMismatch.
    `file_bytes`: how many bytes of rows, in memory, each subtask gathers for a file, or for one of each partition.
    `commits_per_compaction`: after this number of commits small files are made larger ones, beside the job; None: they
    are not.
    `keep_snapshots_ms`: after each compaction, snapshots older than this expire, with the files that they alone have;
    None: none does.

    Raises NoCatalog, NoTable, UnsupportedTable and ColumnConflict when it is made, and MissingExtra without PyIceberg.
    """

    def __init__(
        self,
        table: str,
        *,
        catalog: Catalog,
        schema: pa.Schema | None = None,
        partition_by: str | Sequence[str] = (),
        evolve: bool = False,
        file_bytes: int = FILE_BYTES,
        commits_per_compaction: int | None = None,
        keep_snapshots_ms: float | None = None,
    ) -> None:
        check_extra("pyiceberg", extra="iceberg", wanted_by="IcebergSink")
        one_name("table", table, "the name of a table")
        check_commits_per_compaction(commits_per_compaction)
        if keep_snapshots_ms is not None:
            duration_setting("keep_snapshots_ms", keep_snapshots_ms)
        if keep_snapshots_ms is not None and commits_per_compaction is None:
            raise ValueError("keep_snapshots_ms: snapshots expire after compactions: set commits_per_compaction, too")
        self.commits_per_compaction, self.keep_snapshots_ms = commits_per_compaction, keep_snapshots_ms
        self.table, self.catalog, self.evolve, self.file_bytes = table, catalog, evolve, file_bytes
        self.partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        found = find_table(load_catalog(catalog, "IcebergSink"), table)
        if found is not None:
            self.schema = arrow_schema(found.schema())
            if schema is not None:
                added_columns(table, self.schema, stored_schema(schema, table), evolve)
            self._check_partitions(found)
        elif schema is None:
            raise NoTable(f"IcebergSink: there is no Iceberg table {table}: give schema= to make one, or correct it")
        else:
            self.schema = arrow_schema_of(schema, table)
            if unknown := [name for name in self.partition_by if name not in schema.names]:
                raise ColumnConflict(f"{table}: partition_by={unknown[0]!r}, found {', '.join(schema.names)}")

    def writer(self) -> IcebergWriter:
        return IcebergWriter(self)

    def committer(self) -> IcebergCommitter:
        return IcebergCommitter(self)

    def _check_partitions(self, table: Any) -> None:
        partitioned = [field.name for field in table.spec().fields]
        if self.partition_by and self.partition_by != partitioned:
            raise ColumnConflict(
                f"{self.table}: wanted a table partitioned by {self.partition_by}, found one by {partitioned}: leave "
                "partition_by= out, or write to another table"
            )
        if any(str(field.transform) != "identity" for field in table.spec().fields):
            check_extra(
                "pyiceberg_core", extra="iceberg", wanted_by=f"IcebergSink, for the partitions of {self.table},"
            )


def arrow_schema_of(schema: pa.Schema, where: str) -> pa.Schema:
    """The columns as the table will have them."""
    return pa.schema([field.remove_metadata() for field in stored_schema(schema, where)])


class IcebergWriter(LakeWriter):
    """Its committables are what a manifest says of a file, as dicts. It adds new columns before it writes them, as a
    file has to name the id that the table has given to each.
    """

    def __init__(self, sink: IcebergSink) -> None:
        super().__init__(sink.table, sink.schema, sink.file_bytes, sink.evolve)
        self._catalog, self._partition_by, self._first_schema = sink.catalog, sink.partition_by, sink.schema

    def open(self) -> None:
        super().open()
        self._opened_table: Any = None
        self._named = count()

    def write_files(self, rows: pa.Table) -> list[dict[str, Any]]:
        arrow = require("pyiceberg.io.pyarrow", extra="iceberg", wanted_by="IcebergSink")
        table = self._open_table()
        unique = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.context.job_id}/{self.context.attempt_id}")
        with reached(self.table, table):
            self._add_columns(table)
            written = arrow._dataframe_to_data_files(table.metadata, rows, table.io, unique, self._named)
            return [_plain(file, table.spec().spec_id) for file in written]

    def remove_file(self, committable: dict[str, Any]) -> None:
        self._opened_table.io.delete(committable["file_path"])

    def new_column(self, field: pa.Field) -> pa.Field:
        return arrow_schema_of(pa.schema([field]), self.table).field(0).with_nullable(True)

    def _open_table(self) -> Any:
        if self._opened_table is None:
            catalog = load_catalog(self._catalog, "IcebergSink")
            self._opened_table = open_or_make(catalog, self.table, self._first_schema, self._partition_by)
        return self._opened_table

    def _add_columns(self, table: Any) -> None:
        errors = require("pyiceberg.exceptions", extra="iceberg", wanted_by="IcebergSink")
        for left in reversed(range(COMMIT_ROUNDS)):
            new = added_columns(self.table, arrow_schema(table.schema()), self.schema, self.evolve)
            if not new:
                break
            try:
                add_columns(table, new)
            except errors.CommitFailedException:
                if not left:
                    raise
            table.refresh()


class IcebergCommitter(LakeCommitter):
    def __init__(self, sink: IcebergSink) -> None:
        super().__init__(sink.table, sink.commits_per_compaction)
        self._catalog, self._keep_snapshots_ms = sink.catalog, sink.keep_snapshots_ms
        self._schema, self._partition_by = sink.schema, sink.partition_by

    def open(self) -> None:
        self._table = self._table_now()
        super().open()

    def last_marker(self, writer: str) -> int | None:
        with reached(self.table, self._table):
            self._table.refresh()
        found = self._table.properties.get(MARKER + writer)
        return None if found is None else int(found)

    def missing(self, committables: list[dict[str, Any]]) -> list[str]:
        paths = [each["file_path"] for each in committables]
        with reached(self.table, self._table):
            return [path for path in paths if not self._table.io.new_input(path).exists()]

    def commit_once(self, committables: list[dict[str, Any]], marker: Marker) -> None:
        with reached(self.table, self._table):
            self._commit_now(committables, marker)

    def conflict(self) -> type[Exception]:
        errors = require("pyiceberg.exceptions", extra="iceberg", wanted_by="IcebergSink")
        found: type[Exception] = errors.CommitFailedException
        return found

    def _table_now(self) -> Any:
        catalog = load_catalog(self._catalog, "IcebergSink")
        return open_or_make(catalog, self.table, self._schema, self._partition_by)

    def look_after(self) -> None:
        """With a table of its own."""
        try:
            table = self._table_now()
        except Exception as error:  # noqa: BLE001 - the next commit says it, if it lasts
            log.warning("%s: small files were not compacted: %s", self.table, error)
        else:
            look_after(table, self.table, self._keep_snapshots_ms)

    def _commit_now(self, committables: list[dict[str, Any]], marker: Marker) -> None:
        table, spec = self._table, self._table.spec().spec_id
        if other := [each["spec"] for each in committables if each["spec"] != spec]:
            raise ColumnConflict(
                f"{self.table}: files were written for partitioning {other[0]}, and the table has {spec} now: put it "
                "back until they are committed, and change it while no job writes"
            )
        without_retries(table)
        who = {"understudy.job": str(self.context.job_id), MARKER + marker.writer: str(marker.sequence)}
        with table.transaction() as transaction:
            transaction.set_properties({MARKER + marker.writer: str(marker.sequence)})
            with transaction.update_snapshot(snapshot_properties=who).fast_append() as append:
                for each in committables:
                    append.append_data_file(_data_file(each))


def _plain(file: Any, spec: int) -> dict[str, Any]:
    """A DataFile as plain data."""
    manifest = require("pyiceberg.manifest", extra="iceberg", wanted_by="IcebergSink")
    values = {field.name: file[index] for index, field in enumerate(manifest.DATA_FILE_TYPE[2].fields)}
    partition = [file.partition[index] for index in range(len(file.partition))]
    named = {"content": int(file.content), "file_format": file.file_format.value, "partition": partition}
    return values | named | {"spec": spec}


def _data_file(plain: dict[str, Any]) -> Any:
    manifest = require("pyiceberg.manifest", extra="iceberg", wanted_by="IcebergSink")
    typedef = require("pyiceberg.typedef", extra="iceberg", wanted_by="IcebergSink")
    values = plain | {
        "content": manifest.DataFileContent(plain["content"]),
        "file_format": manifest.FileFormat(plain["file_format"]),
        "partition": typedef.Record(*plain["partition"]),
    }
    file = manifest.DataFile.from_args(**values)
    file.spec_id = plain["spec"]
    return file
