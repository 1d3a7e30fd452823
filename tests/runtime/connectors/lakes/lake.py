"""What the tests of both formats need of a real table in a temporary folder: to make it, to change it as others do, and
to read it with the format's own client.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.string())])


def rows(numbers: Sequence[int], **more: Any) -> list[dict[str, Any]]:
    """Of SCHEMA, one for each number, which is in both columns."""
    return [{"key": number, "text": f"row {number}", **more} for number in numbers]


class Lake(ABC):
    """One table. Nothing is there before `make`, or before a sink has made it."""

    @abstractmethod
    def make(self, schema: pa.Schema = SCHEMA, partition_by: Sequence[str] = ()) -> None: ...

    @abstractmethod
    def sink(self, **options: Any) -> Any: ...

    @abstractmethod
    def source(self, **options: Any) -> Any: ...

    @abstractmethod
    def append(self, written: list[dict[str, Any]]) -> None:
        """As somebody else does."""

    @abstractmethod
    def delete(self, key: int) -> None: ...

    @abstractmethod
    def read(self) -> pa.Table: ...

    @abstractmethod
    def duckdb(self) -> list[int]:
        """The keys as another engine reads them."""

    @abstractmethod
    def version(self) -> int:
        """The newest one, as a source counts them."""

    @abstractmethod
    def commits(self) -> int:
        """How many commits have appended rows."""

    @abstractmethod
    def data_files(self) -> list[Path]:
        """All that lie there, in the table or not."""

    def keys(self) -> list[int]:
        return sorted(self.read()["key"].to_pylist())


class DeltaLake(Lake):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "table"

    def make(self, schema: pa.Schema = SCHEMA, partition_by: Sequence[str] = (), **configuration: str) -> None:
        from deltalake import DeltaTable

        DeltaTable.create(self.path, schema, partition_by=list(partition_by), configuration=configuration or None)

    def sink(self, **options: Any) -> Any:
        from understudy import DeltaSink

        return DeltaSink(str(self.path), **options)

    def source(self, **options: Any) -> Any:
        from understudy import DeltaSource

        return DeltaSource(str(self.path), **options)

    def table(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.path)

    def append(self, written: list[dict[str, Any]]) -> None:
        from deltalake import write_deltalake

        write_deltalake(
            self.path, pa.Table.from_pylist(written, pa.schema(self.table().schema().to_arrow())), mode="append"
        )

    def delete(self, key: int) -> None:
        self.table().delete(f"key = {key}")

    def read(self) -> pa.Table:
        return self.table().to_pyarrow_table()

    def duckdb(self) -> list[int]:
        import duckdb

        dataset = self.table().to_pyarrow_dataset()  # noqa: F841 - DuckDB finds it by its name
        return [key for (key,) in duckdb.sql("SELECT key FROM dataset ORDER BY key").fetchall()]

    def version(self) -> int:
        return int(self.table().version())

    def commits(self) -> int:
        return sum(any("add" in action for action in self.log(version)) for version in range(self.version() + 1))

    def log(self, version: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.path / f"_delta_log/{version:020d}.json").read_text().splitlines()]

    def data_files(self) -> list[Path]:
        return sorted(path for path in self.path.rglob("*.parquet") if "_delta_log" not in path.parts)


class IcebergLake(Lake):
    """A catalog on SQLite, and a warehouse in a folder."""

    NAME = "sales.totals"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.catalog = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }

    def make(self, schema: pa.Schema = SCHEMA, partition_by: Sequence[str] = ()) -> None:
        from understudy.runtime.connectors.lakes.iceberg_table import open_or_make

        open_or_make(self.loaded(), self.NAME, schema, partition_by)

    def loaded(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("understudy", **self.catalog)

    def sink(self, **options: Any) -> Any:
        from understudy import IcebergSink

        return IcebergSink(self.NAME, catalog=self.catalog, **options)

    def source(self, **options: Any) -> Any:
        from understudy import IcebergSource

        return IcebergSource(self.NAME, catalog=self.catalog, **options)

    def table(self) -> Any:
        return self.loaded().load_table(self.NAME)

    def append(self, written: list[dict[str, Any]]) -> None:
        table = self.table()
        table.append(pa.Table.from_pylist(written, table.schema().as_arrow()))

    def delete(self, key: int) -> None:
        self.table().delete(f"key = {key}")

    def read(self) -> pa.Table:
        return self.table().scan().to_arrow()

    def duckdb(self) -> list[int]:
        """Through the files that the snapshot names: DuckDB's own reader of Iceberg has to be downloaded."""
        import duckdb

        paths = [task.file.file_path.removeprefix("file://") for task in self.table().scan().plan_files()]
        found = duckdb.read_parquet(paths).fetchall()
        return sorted(row[0] for row in found)

    def version(self) -> int:
        snapshot = self.table().current_snapshot()
        return 0 if snapshot is None else int(snapshot.snapshot_id)

    def commits(self) -> int:
        return sum(each.summary.operation.value == "append" for each in self.table().snapshots())

    def data_files(self) -> list[Path]:
        return sorted((self.folder / "warehouse").rglob("*.parquet"))
