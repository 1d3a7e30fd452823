"""IcebergSource: the rows of an Iceberg table as of one snapshot, and those that later snapshots add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from ....actors.flow.records import RecordMismatch, conform
from ..errors import UnreadableInput, check_extra, require
from ..names import one_name
from .errors import LakeUnreachable, RowsChanged, VersionGone
from .iceberg_table import Catalog, arrow_schema, load_catalog, open_table, reached
from .lake_source import LakeSource, check_following, chosen, without_first

EMPTY = 0
"""The version of a table that has no snapshot yet."""


class IcebergSource(LakeSource):
    """Reads the Iceberg table `table`, such as "sales.totals", of a `catalog`: the name of one that PyIceberg is
    configured with, or its properties.

    `version`: the id of a snapshot; None: the newest when the source is made.
    `watch_ms`: None ends with that snapshot. Else the rows that later snapshots add follow; the source looks for them
    again this long after it has found none.
    `only_new`: rows of that first snapshot itself are left out.
    `changes`: a later snapshot that removed or rewrote rows is an error ("refuse"), or is passed over with all its rows
    ("skip"). Compactions, which change no rows, are always passed over.
    `columns`: which ones, in this order; None: those that the table has when the source is made.
    """

    def __init__(
        self,
        table: str,
        *,
        catalog: Catalog,
        version: int | None = None,
        watch_ms: float | None = None,
        only_new: bool = False,
        changes: str = "refuse",
        columns: Sequence[str] | None = None,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
    ) -> None:
        check_extra("pyiceberg", extra="iceberg", wanted_by="IcebergSource")
        one_name("table", table, "the name of a table")
        check_following(watch_ms, only_new, changes)
        self.table, self.catalog, self.changes = table, catalog, changes
        found = open_table(load_catalog(catalog, "IcebergSource"), table, "IcebergSource")
        newest = found.current_snapshot()
        if version is None:
            version = EMPTY if newest is None else newest.snapshot_id
        snapshot = None if version == EMPTY else _snapshot(found, table, version)
        schema = found.schema()
        if snapshot is not None and snapshot is not newest and snapshot.schema_id is not None:
            schema = found.schemas()[snapshot.schema_id]
        self.schema = chosen(arrow_schema(schema), columns, table)
        self._schema_id = schema.schema_id
        super().__init__(version, not only_new, watch_ms, batch_rows, records_per_second)

    def versions(self) -> IcebergVersions:
        return IcebergVersions(self.table, self.catalog, self._schema_id, self.changes == "skip")


class IcebergVersions:
    """An Iceberg table as a LakeSource reads it. A file is a FileScanTask of PyIceberg: it has the deletes with it."""

    def __init__(self, name: str, catalog: Catalog, schema_id: int, skips_changes: bool) -> None:
        self._name, self._schema_id, self._skips_changes = name, schema_id, skips_changes
        self._table = open_table(load_catalog(catalog, "IcebergSource"), name, "IcebergSource")

    def files(self, version: int) -> Sequence[Any]:
        if version == EMPTY:
            return ()
        _snapshot(self._table, self._name, version)
        with reached(self._name, self._table):
            return sorted(self._table.scan(snapshot_id=version).plan_files(), key=_path)

    def added(self, version: int) -> Sequence[Any]:
        manifests = require("pyiceberg.manifest", extra="iceberg", wanted_by="IcebergSource")
        tables = require("pyiceberg.table", extra="iceberg", wanted_by="IcebergSource")
        snapshot = _snapshot(self._table, self._name, version)
        operation = "?" if snapshot.summary is None else snapshot.summary.operation.value
        if operation == "replace":
            return ()
        if operation != "append":
            if self._skips_changes:
                return ()
            raise RowsChanged(
                f"{self._name}: version {version} removed or rewrote rows ({operation}), and this source gives new "
                "rows alone: changes='skip' passes over such a version with all its rows; or start a new job behind it"
            )
        io = self._table.io
        with reached(self._name, self._table):
            entries = [
                entry
                for manifest in snapshot.manifests(io)
                if manifest.content == manifests.ManifestContent.DATA and manifest.added_snapshot_id == version
                for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)
            ]
        new = [entry for entry in entries if entry.status == manifests.ManifestEntryStatus.ADDED]
        return sorted((tables.FileScanTask(entry.data_file) for entry in new), key=_path)

    def after(self, version: int) -> Sequence[int]:
        with reached(self._name, self._table):
            self._table.refresh()
        found: list[int] = []
        snapshot = self._table.current_snapshot()
        while snapshot is not None and snapshot.snapshot_id != version:
            found.append(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._table.metadata.snapshot_by_id(parent)
            if snapshot is None and (version != EMPTY or parent is not None):
                raise VersionGone(
                    f"{self._name}: the snapshots behind version {version} are gone: they expired before this job has "
                    "read them, or the table was rolled back. Keep them for longer than a job may be behind, and start "
                    "a new job"
                )
        return found[::-1]

    def batches(self, file: Any, schema: pa.Schema, skipped: int) -> Iterator[pa.RecordBatch]:
        arrow = require("pyiceberg.io.pyarrow", extra="iceberg", wanted_by="IcebergSource")
        expressions = require("pyiceberg.expressions", extra="iceberg", wanted_by="IcebergSource")
        wanted = self._table.schemas()[self._schema_id].select(*schema.names)
        scan = arrow.ArrowScan(self._table.metadata, self._table.io, wanted, expressions.AlwaysTrue())
        try:
            with reached(self._name, self._table):
                for batch in without_first(skipped, scan.to_record_batches([file])):
                    yield conform(batch, schema)
        except LakeUnreachable:
            raise
        except FileNotFoundError as error:
            raise VersionGone(
                f"{_path(file)}: a file of the version that is read is gone: its snapshot expired. Keep snapshots for "
                "longer than a job may be behind, and start this one at a version that is still there"
            ) from error
        except (pa.ArrowException, RecordMismatch, OSError) as error:
            raise UnreadableInput(f"{_path(file)} cannot be read as the table's columns: {error}") from error


def _path(file: Any) -> str:
    return str(file.file.file_path)


def _snapshot(table: Any, name: str, version: int) -> Any:
    found = table.metadata.snapshot_by_id(version)
    if found is None:
        raise VersionGone(f"{name}: version {version} is gone: its snapshot expired, or there never was one")
    return found
