"""Upkeep of an Iceberg table: small files become larger ones, and old snapshots expire with the files they alone have.

PyIceberg rewrites no files and deletes none, so both are done here, by its own means: a snapshot of kind "replace", and
the list of what snapshots reach. Neither touches the markers, which are properties of the table.

A rewritten file takes the place of its originals only if the newest snapshot still has every one of them, without
deletes of rows; the commit demands just that snapshot. So other commits meanwhile, the sink's own above all, cost one
more round and no second rewrite.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from ..errors import require
from .iceberg_table import without_retries
from .lake_sink import COMMIT_ROUNDS

log = logging.getLogger(__name__)

COMPACTED_BYTES = 64 * 1024 * 1024
"""A file of less than half of this is small; small ones are joined up to about this size, of which memory has to hold
the rows.
"""


def compact(table: Any) -> tuple[int, int]:
    """How many files were replaced, and by how many. Raises CommitFailedException when others commit all the time."""
    errors = require("pyiceberg.exceptions", extra="iceberg", wanted_by="IcebergSink")
    replaced = added = 0
    for group in _groups(table):
        new = _rewritten(table, group)
        try:
            is_done = _replace(table, group, new)
        except errors.CommitFailedException:
            _delete(table.io, [file.file_path for file in new])
            raise
        if is_done:
            replaced, added = replaced + len(group), added + len(new)
        else:
            _delete(table.io, [file.file_path for file in new])
    return replaced, added


def expire(table: Any, older_than_ms: float) -> tuple[int, int]:
    """How many snapshots older than this were removed, and files that no other snapshot has. The newest one stays, and
    heads of branches and tags.
    """
    errors = require("pyiceberg.exceptions", extra="iceberg", wanted_by="IcebergSink")
    before = datetime.now(UTC) - timedelta(milliseconds=older_than_ms)
    for left in reversed(range(COMMIT_ROUNDS)):
        table.refresh()
        known = {each.snapshot_id: each for each in table.snapshots()}
        heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
        limit_ms = before.timestamp() * 1000
        old = [each for each in known.values() if each.timestamp_ms < limit_ms and each.snapshot_id not in heads]
        if not old:
            return 0, 0
        candidates = set(_reached(table, old))
        try:
            table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in old]).commit()
            break
        except errors.CommitFailedException:
            if not left:
                raise
    table.refresh()
    if {each.snapshot_id for each in table.snapshots()} & {each.snapshot_id for each in old}:
        return 0, 0
    unreachable = candidates - set(_reached(table, table.snapshots()))
    _delete(table.io, sorted(unreachable))
    return len(old), len(unreachable)


def _groups(table: Any) -> Iterator[list[Any]]:
    """Small data files without deletes, of one partition each, that together make about one of a good size."""
    spec = table.spec().spec_id
    partitions: dict[Any, list[Any]] = {}
    for task in table.scan().plan_files():
        if not task.delete_files and task.file.spec_id == spec and task.file.file_size_in_bytes < COMPACTED_BYTES // 2:
            values = tuple(task.file.partition[index] for index in range(len(task.file.partition)))
            partitions.setdefault(repr(values), []).append(task)
    for tasks in partitions.values():
        group: list[Any] = []
        size = 0
        for task in sorted(tasks, key=lambda each: str(each.file.file_path)):
            if group and size + task.file.file_size_in_bytes > COMPACTED_BYTES:
                if len(group) > 1:
                    yield group
                group, size = [], 0
            group.append(task)
            size += task.file.file_size_in_bytes
        if len(group) > 1:
            yield group


def _rewritten(table: Any, group: Sequence[Any]) -> list[Any]:
    """New data files with the rows of these."""
    arrow = require("pyiceberg.io.pyarrow", extra="iceberg", wanted_by="IcebergSink")
    expressions = require("pyiceberg.expressions", extra="iceberg", wanted_by="IcebergSink")
    scan = arrow.ArrowScan(table.metadata, table.io, table.schema(), expressions.AlwaysTrue())
    rows = scan.to_table(group)
    wanted = sum(task.file.record_count for task in group)
    assert rows.num_rows == wanted, f"{rows.num_rows} rows were read of files that have {wanted}"
    return list(arrow._dataframe_to_data_files(table.metadata, rows, table.io, uuid.uuid4(), count()))


def _replace(table: Any, group: Sequence[Any], new: Sequence[Any]) -> bool:
    """Commit the new files in place of the group's. Whether that could still be done."""
    errors = require("pyiceberg.exceptions", extra="iceberg", wanted_by="IcebergSink")
    old = [task.file for task in group]
    spec = table.spec().spec_id
    for left in reversed(range(COMMIT_ROUNDS)):
        table.refresh()
        whole = {str(task.file.file_path) for task in table.scan().plan_files() if not task.delete_files}
        if table.spec().spec_id != spec or any(str(file.file_path) not in whole for file in old):
            return False
        without_retries(table)
        try:
            with (
                table.transaction() as transaction,
                _replacing()(transaction=transaction, io=table.io) as replacing,
            ):
                for file in new:
                    replacing.append_data_file(file)
                for file in old:
                    replacing.delete_data_file(file)
            return True
        except errors.CommitFailedException:
            if not left:
                raise
    return False


def _replacing() -> Any:
    """PyIceberg's overwrite, as a snapshot that says that no row has changed. Iceberg's specification: "replace"."""
    updates = require("pyiceberg.table.update.snapshot", extra="iceberg", wanted_by="IcebergSink")
    operation = require("pyiceberg.table.snapshots", extra="iceberg", wanted_by="IcebergSink").Operation

    class Replacing(updates._OverwriteFiles):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self, **options: Any) -> None:
            super().__init__(operation=operation.OVERWRITE, **options)

        def _summary(self, *args: Any, **options: Any) -> Any:
            found = super()._summary(*args, **options)
            return found.model_copy(update={"operation": operation.REPLACE})

    return Replacing


def _reached(table: Any, snapshots: Sequence[Any]) -> Iterator[str]:
    """All files that one of these snapshots needs."""
    seen: set[str] = set()
    for snapshot in snapshots:
        yield str(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield str(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield str(entry.data_file.file_path)


def _delete(io: Any, paths: Sequence[str]) -> None:
    """A file that cannot be deleted stays, and no snapshot has it."""
    for path in paths:
        try:
            io.delete(path)
        except OSError as error:
            log.info("%s was not deleted: %s", path, error)


def look_after(table: Any, name: str, older_than_ms: float | None) -> None:
    """Compact, then expire. A failure costs nothing: files stay small, and snapshots longer."""
    began = time.monotonic()
    try:
        replaced, added = compact(table)
        log.info("%s: %d files are %d now, %.1f s", name, replaced, added, time.monotonic() - began)
        if older_than_ms is not None:
            snapshots, files = expire(table, older_than_ms)
            log.info("%s: %d snapshots expired, and %d files with them", name, snapshots, files)
    except Exception as error:  # noqa: BLE001 - whatever PyIceberg and its storage raise
        log.warning("%s: small files were not compacted, or snapshots not expired: %s", name, error)
