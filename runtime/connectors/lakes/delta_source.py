"""DeltaSource: the rows of a Delta table as of one version, and those that later versions add."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ....state.file_locations import AnyPath, absolute
from ..errors import check_extra
from .delta_files import DataFile, read_file, text_of
from .delta_table import Options, TableFiles, arrow_schema, check_readable, open_table, reached, to_look
from .errors import RowsChanged, VersionGone
from .lake_source import LakeSource, check_following, chosen


class DeltaSource(LakeSource):
    """Reads the Delta table at `path`, a local path or a URL that delta-rs knows, reached with `storage_options`.

    `version`: which one; None: the newest when the source is made.
    `watch_ms`: None ends with that version. Else the rows that later versions add follow; the source looks for them
    again this long after it has found none.
    `only_new`: rows of that first version itself are left out.
    `changes`: a later version that removed or rewrote rows is an error ("refuse"), or is passed over with all its rows
    ("skip"). Compactions, which change no rows, are always passed over.
    `columns`: which ones, in this order; None: those that the table has when the source is made.
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        version: int | None = None,
        watch_ms: float | None = None,
        only_new: bool = False,
        changes: str = "refuse",
        columns: Sequence[str] | None = None,
        batch_rows: int | None = None,
        records_per_second: float | None = None,
        storage_options: Options = None,
    ) -> None:
        check_extra("deltalake", extra="delta", wanted_by="DeltaSource")
        check_following(watch_ms, only_new, changes)
        self.path, self.storage_options, self.changes = absolute(path), storage_options, changes
        table = open_table(self.path, to_look(self.path, storage_options), "DeltaSource", version)
        check_readable(table, self.path)
        self.schema = chosen(arrow_schema(table), columns, self.path)
        super().__init__(table.version(), not only_new, watch_ms, batch_rows, records_per_second)

    def versions(self) -> DeltaVersions:
        return DeltaVersions(self.path, self.storage_options, self.changes == "skip", self.batch_rows)


class DeltaVersions:
    """A Delta table as a LakeSource reads it. Later versions are read from the log itself, a JSON file each."""

    def __init__(self, path: str, options: Options, skips_changes: bool, batch_rows: int) -> None:
        self._path, self._options, self._skips_changes, self._batch_rows = path, options, skips_changes, batch_rows
        self._files = TableFiles(path, options, "DeltaSource")
        self._table: Any = None

    def files(self, version: int) -> Sequence[DataFile]:
        table = open_table(self._path, self._options, "DeltaSource", version)
        check_readable(table, self._path)
        partitioned = table.metadata().partition_columns
        actions = pa.table(table.get_add_actions())
        paths = actions["path"].to_pylist()
        values = actions["partition"] if partitioned else [{}] * len(paths)
        files = [
            DataFile(unquote(path), {name: text_of(each[name]) for name in partitioned})
            for path, each in zip(paths, values, strict=True)
        ]
        return sorted(files, key=lambda file: file.path)

    def added(self, version: int) -> Sequence[DataFile]:
        actions = self._log_entry(version)
        if actions is None:
            raise VersionGone(
                f"{self._path}: the log of version {version} is gone: it was cleaned up before this job has read it. "
                "Keep it for longer (delta.logRetentionDuration) than a job may be behind, and start a new job"
            )
        removed = [action["remove"] for action in actions if "remove" in action]
        if any(each.get("dataChange", True) for each in removed):
            if self._skips_changes:
                return ()
            operation = next((each["commitInfo"].get("operation") for each in actions if "commitInfo" in each), "?")
            raise RowsChanged(
                f"{self._path}: version {version} removed or rewrote rows ({operation}), and this source gives new "
                "rows alone: changes='skip' passes over such a version with all its rows; or start a new job behind it"
            )
        if any("protocol" in action or "metaData" in action for action in actions):
            check_readable(open_table(self._path, self._options, "DeltaSource", version), self._path)
        added = [action["add"] for action in actions if "add" in action]
        return [
            DataFile(unquote(add["path"]), add.get("partitionValues") or {})
            for add in added
            if add.get("dataChange", True)
        ]

    def after(self, version: int) -> Sequence[int]:
        if self._table is None:
            self._table = open_table(self._path, self._options, "DeltaSource")
        else:
            with reached(self._path, self._options):
                self._table.update_incremental()
        return range(version + 1, self._table.version() + 1)

    def batches(self, file: DataFile, schema: pa.Schema, skipped: int) -> Iterator[pa.RecordBatch]:
        return read_file(self._files, file, schema, skipped, self._batch_rows)

    def _log_entry(self, version: int) -> list[dict[str, Any]] | None:
        content = self._files.read(_log_name(version))
        return None if content is None else [json.loads(line) for line in content.splitlines() if line.strip()]


def _log_name(version: int) -> str:
    return f"_delta_log/{version:020d}.json"
