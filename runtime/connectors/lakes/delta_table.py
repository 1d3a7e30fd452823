"""Delta tables through delta-rs: opened, or refused with a reason. Its names of types and errors end here.

The client library is imported when a table is opened. Files are reached as delta-rs reaches them, with the same
storage options; local ones by the operating system, so that they can be synced.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.fs

from ....state.file_locations import is_url
from ..errors import require
from .column_types import storable
from .errors import ColumnConflict, LakeUnreachable, NoTable, UnsupportedTable, VersionGone

Options = Mapping[str, str] | None
"""Of delta-rs: region, endpoint, credentials, …"""

READABLE = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Reader features of which plain Parquet files and their partitions are all that counts."""

_WRITABLE = READABLE | {"appendOnly", "changeDataFeed", "invariants", "checkConstraints", "generatedColumns"}
"""Writer features; of some there must be no use (see `_used_features`). Appending rows changes nothing for the rest."""

_IMPATIENT = {"max_retries": "2", "retry_timeout": "10s", "connect_timeout": "3s", "timeout": "5s"}
"""By default delta-rs asks a store for three minutes."""

_DRAWN = re.compile(r"\x1b\[[0-9;]*m|↳")

_FIELD_FEATURES = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
}


def to_look(path: str, options: Options) -> Options:
    """Options for a look while a job is made, when its user waits; those that the user gives come first."""
    return {**_IMPATIENT, **(options or {})} if is_url(path) else options


@contextmanager
def reached(path: str, options: Options) -> Iterator[None]:
    """What the object store of a table says comes out as LakeUnreachable; of a local path errors are as they are."""
    try:
        yield
    except OSError as error:
        if not is_url(path) or isinstance(error, LakeUnreachable | FileNotFoundError):
            raise
        endpoint = next((value for name, value in (options or {}).items() if "endpoint" in name.lower()), "")
        at = f" at {endpoint}" if endpoint else ""
        raise LakeUnreachable(
            f"{path}: its object store{at} does not answer, or refuses: {told(error)}. Check endpoint, region and "
            "credentials (storage_options=, or the environment of each process), and that the store can be reached"
        ) from error


def find_table(path: str, options: Options, wanted_by: str, version: int | None = None) -> Any | None:
    """The DeltaTable as of a version, or the newest; None if there is none. Raises MissingExtra, VersionGone, and
    NoTable where no table can be made, and LakeUnreachable.
    """
    deltalake = require("deltalake", extra="delta", wanted_by=wanted_by)
    if os.path.isfile(path):
        raise NoTable(f"{wanted_by}: {path} is a file, and a Delta table is a folder: choose another path")
    try:
        with reached(path, options):
            table = deltalake.DeltaTable(path, storage_options=dict(options or {}))
    except deltalake.exceptions.TableNotFoundError:
        return None
    if version is None or version == table.version():
        return table
    try:
        with reached(path, options):
            table.load_as_version(version)
    except deltalake.exceptions.DeltaError as error:
        raise VersionGone(
            f"{path}: version {version} cannot be read; the newest is {table.version()}: {first_line(error)}"
        ) from error
    return table


def open_table(path: str, options: Options, wanted_by: str, version: int | None = None) -> Any:
    """The same; raises NoTable."""
    table = find_table(path, options, wanted_by, version)
    if table is None:
        raise NoTable(f"{wanted_by}: there is no Delta table at {path}: correct the path, or make the table first")
    return table


def make_table(path: str, options: Options, schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Unless somebody else makes it at the same time."""
    deltalake = require("deltalake", extra="delta", wanted_by="DeltaSink")
    with reached(path, options):
        deltalake.DeltaTable.create(
            path,
            delta_schema(schema, path),
            mode="ignore",
            partition_by=list(partition_by),
            storage_options=dict(options or {}),
        )


def arrow_schema(table: Any) -> pa.Schema:
    """The table's columns, those that it is partitioned by among them."""
    return pa.schema(table.schema().to_arrow())


def delta_schema(schema: pa.Schema, where: str) -> Any:
    """Delta's own schema of these columns. Raises ColumnConflict for one that has no place there."""
    deltalake = require("deltalake", extra="delta", wanted_by="DeltaSink")
    for field in schema:
        try:
            if pa.types.is_null(field.type):
                raise ValueError("null is no type")
            deltalake.Schema.from_arrow(pa.schema([field]))
        except Exception as error:  # delta-rs raises a bare Exception here
            raise ColumnConflict(
                f"{where}: column {field.name!r} is {field.type}, which a Delta table cannot hold: cast it first "
                f"({first_line(error)})"
            ) from error
    return deltalake.Schema.from_arrow(schema)


def stored_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """The columns as a table that is made with them has them. Raises ColumnConflict for a type that has no place."""
    return pa.schema(delta_schema(storable(schema), where).to_arrow())


def check_readable(table: Any, path: str) -> None:
    """Raises UnsupportedTable where plain Parquet files are not all that there is to read."""
    features = set(table.protocol().reader_features or ())
    if table.protocol().min_reader_version == 2 and _maps_columns(table):
        features.add("columnMapping")
    if unknown := sorted(features - READABLE):
        raise UnsupportedTable(f"{path}: cannot read a Delta table with {', '.join(unknown)}: rewrite it without")


def check_writable(table: Any, path: str) -> None:
    """Raises UnsupportedTable where rows have to be more than appended, or checked by rules that are not known here."""
    unknown = [
        *sorted(set(table.protocol().writer_features or ()) - _WRITABLE),
        *_used_features(table),
    ]
    if unknown:
        raise UnsupportedTable(f"{path}: cannot append to a Delta table with {', '.join(unknown)}: remove it first")


def _used_features(table: Any) -> list[str]:
    """Of the older protocol, whose versions promise much that a table does not use."""
    used = [f"constraint {name.removeprefix('delta.constraints.')!r}" for name in table.metadata().configuration
            if name.startswith("delta.constraints.")]  # fmt: skip
    for field in table.schema().fields:
        used += [f"{what} ({field.name})" for key, what in _FIELD_FEATURES.items() if key in field.metadata]
    return [*used, "columnMapping"] if _maps_columns(table) else used


def _maps_columns(table: Any) -> bool:
    return bool(table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none")


def first_line(error: BaseException) -> str:
    """Without the stack of Rust and CPython that delta-rs adds."""
    return str(error).partition("\n")[0]


def told(error: BaseException) -> str:
    """All of it, in one line: delta-rs draws its causes as a tree, in colours."""
    lines = (line.strip() for line in _DRAWN.sub("", str(error)).splitlines())
    return ": ".join(line for line in lines if line)


class TableFiles:
    """The files of a table, by their paths in it."""

    def __init__(self, path: str, options: Options, wanted_by: str) -> None:
        self._path = path
        self._is_local = not is_url(path)
        handler = require("deltalake.fs", extra="delta", wanted_by=wanted_by).DeltaStorageHandler
        self.system: Any = (
            pa.fs.SubTreeFileSystem(path, pa.fs.LocalFileSystem())
            if self._is_local
            else pa.fs.PyFileSystem(handler(path, dict(options or {})))
        )

    def create(self, name: str) -> Any:
        """A new file to write to; use it as a context. A local one is synced when it is closed."""
        if not self._is_local:
            return self.system.open_output_stream(name)
        os.makedirs(posixpath.join(self._path, posixpath.dirname(name)), exist_ok=True)
        return _Synced(os.path.join(self._path, name))

    def missing(self, names: Sequence[str]) -> list[str]:
        found = self.system.get_file_info(list(names))
        return [name for name, info in zip(names, found, strict=True) if info.type == pa.fs.FileType.NotFound]

    def remove(self, name: str) -> None:
        self.system.delete_file(name)

    def read(self, name: str) -> bytes | None:
        """None: there is no such file."""
        try:
            with self.system.open_input_file(name) as file:
                return bytes(file.readall())
        except FileNotFoundError:
            return None


class _Synced:
    """A local file, whose content lasts when the context ends."""

    def __init__(self, path: str) -> None:
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115 - closed by the context

    def __enter__(self) -> BinaryIO:
        return self._file

    def __exit__(self, *_: object) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
