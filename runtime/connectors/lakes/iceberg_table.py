"""Iceberg tables through PyIceberg: opened, made, or refused with a reason. Its names of types and errors end here.

A catalog is the name of one that PyIceberg is configured with, or its properties: they go to each TaskManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pyarrow as pa

from ....messages.shown_url import url_shown
from ....state.file_locations import protocol_of
from ..errors import require
from ..reaching import why_unreachable
from .column_types import storable
from .errors import ColumnConflict, LakeUnreachable, NoCatalog, NoTable, UnsupportedTable

Catalog: TypeAlias = str | Mapping[str, str]

MARKER = "understudy.marker."
"""Properties of a table that begin so are markers: the writer's name follows."""

_RETRIES = "commit.retry.num-retries"

_CATALOG_AWAY = {
    ("requests", "ConnectionError"),
    ("requests", "Timeout"),
    ("pyiceberg", "ServiceUnavailableError"),
    ("pyiceberg", "ServerError"),
    ("pyiceberg", "TooManyRequestsError"),
    ("pyiceberg", "CommitStateUnknownException"),
    ("sqlalchemy", "OperationalError"),
    ("sqlalchemy", "InterfaceError"),
}
"""Errors of catalogs that may pass: of HTTP, of REST, of SQL."""

UNDERSTOOD = ("1", "2")
"""Format versions."""


def load_catalog(catalog: Catalog, wanted_by: str) -> Any:
    """Raises MissingExtra, NoCatalog, and ValueError for what names none."""
    if not isinstance(catalog, str | Mapping):
        raise ValueError(f"catalog: wanted the name of a catalog, or its properties, found {catalog!r:.80}")
    module = require("pyiceberg.catalog", extra="iceberg", wanted_by=wanted_by)
    name, properties = (catalog, {}) if isinstance(catalog, str) else ("understudy", catalog)
    try:
        return module.load_catalog(name, **properties)
    except Exception as error:  # of HTTP, of databases, of clouds
        place = url_shown(str(properties.get("uri") or f"catalog {name!r}"))
        raise NoCatalog(f"{wanted_by}: cannot open its catalog: {why_unreachable(error, place)}") from error


@contextmanager
def reached(name: str, table: Any) -> Iterator[None]:
    """What the object store of a table says comes out as LakeUnreachable, and so does a catalog that is away; errors of
    local paths are as they are.
    """
    try:
        with catalog_reached(name, table.catalog):
            yield
    except OSError as error:
        location = table.location()
        if protocol_of(location) == "file" or isinstance(error, LakeUnreachable | FileNotFoundError):
            raise
        raise LakeUnreachable(
            f"{name}: its object store, which has {url_shown(location)}, does not answer, or refuses: "
            f"{' '.join(str(error).split())}. Check endpoint, region and credentials (s3.* and the like of catalog=, "
            "or the environment of each process), and that the store can be reached"
        ) from error


@contextmanager
def catalog_reached(name: str, catalog: Any) -> Iterator[None]:
    """A catalog that is away, or cannot answer now, comes out as LakeUnreachable."""
    try:
        yield
    except Exception as error:
        if not _is_catalog_away(error):
            raise
        place = url_shown(str(catalog.properties.get("uri") or f"catalog {catalog.name!r}"))
        why = why_unreachable(getattr(error, "orig", None) or error, place)
        raise LakeUnreachable(f"{name}: its catalog does not answer: {why}") from error


def _is_catalog_away(error: Exception) -> bool:
    """By names: the clients of catalogs are not installed everywhere."""
    return any((kind.__module__.partition(".")[0], kind.__name__) in _CATALOG_AWAY for kind in type(error).__mro__)


def find_table(catalog: Any, name: str) -> Any | None:
    """None if there is none. Raises NoTable for a name that no table has, UnsupportedTable and LakeUnreachable."""
    errors = require("pyiceberg.exceptions", extra="iceberg", wanted_by="a table")
    if "" in name.split(".") or "." not in name:
        raise NoTable(f"{name!r} is no name of an Iceberg table: wanted namespace.table, such as 'sales.totals'")
    try:
        with catalog_reached(name, catalog):
            table = catalog.load_table(name)
    except (errors.NoSuchTableError, errors.NoSuchNamespaceError):
        return None
    if str(table.metadata.format_version) not in UNDERSTOOD:
        raise UnsupportedTable(
            f"{name}: wanted an Iceberg table of format version {' or '.join(sorted(UNDERSTOOD))}, found version "
            f"{table.metadata.format_version}: use another table"
        )
    return table


def open_table(catalog: Any, name: str, wanted_by: str) -> Any:
    """Raises NoTable, UnsupportedTable and LakeUnreachable."""
    table = find_table(catalog, name)
    if table is None:
        raise NoTable(
            f"{wanted_by}: there is no Iceberg table {name} in this catalog: correct the name, or make it first"
        )
    return table


def open_or_make(catalog: Any, name: str, schema: pa.Schema, partition_by: Sequence[str]) -> Any:
    """The table; made with these columns, partitioned by their values, if there is none."""
    if (found := find_table(catalog, name)) is not None:
        return found
    partitioning = require("pyiceberg.partitioning", extra="iceberg", wanted_by="IcebergSink")
    transforms = require("pyiceberg.transforms", extra="iceberg", wanted_by="IcebergSink")
    own = _iceberg_schema(schema, name)
    fields = [
        partitioning.PartitionField(
            own.find_field(column).field_id, 1000 + index, transforms.IdentityTransform(), column
        )
        for index, column in enumerate(partition_by)
    ]
    with catalog_reached(name, catalog):
        if namespace := name.rpartition(".")[0]:
            catalog.create_namespace_if_not_exists(namespace)
        return catalog.create_table_if_not_exists(name, own, partition_spec=partitioning.PartitionSpec(*fields))


def stored_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """The columns as a table that is made with them has them. Raises ColumnConflict for a type that has no place."""
    return storable(_iceberg_schema(schema, where).as_arrow())


def arrow_schema(schema: Any) -> pa.Schema:
    """Of Iceberg's own, without the ids of its fields."""
    plain = storable(schema.as_arrow())
    return pa.schema([field.remove_metadata() for field in plain])


def add_columns(table: Any, new: Sequence[pa.Field]) -> None:
    """Raises CommitFailedException when somebody else has changed the table."""
    with table.update_schema() as update:
        update.union_by_name(pa.schema(new))


def without_retries(table: Any) -> None:
    """Let a commit that is refused raise: off in our copy of the table's properties, not in the table."""
    properties = {**table.metadata.properties, _RETRIES: "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})


def _iceberg_schema(schema: pa.Schema, where: str) -> Any:
    catalogs = require("pyiceberg.catalog", extra="iceberg", wanted_by="IcebergSink")
    schemas = require("pyiceberg.schema", extra="iceberg", wanted_by="IcebergSink")
    for field in (plain := storable(schema)):
        try:
            if pa.types.is_null(field.type):
                raise TypeError("null is no type")
            catalogs.Catalog._convert_schema_if_needed(pa.schema([field]))
        except Exception as error:  # TypeError, and an UnsupportedPyArrowTypeException of its own
            raise ColumnConflict(
                f"{where}: column {field.name!r} is {field.type}, which an Iceberg table cannot hold: cast it first "
                f"({error})"
            ) from error
    return schemas.assign_fresh_schema_ids(catalogs.Catalog._convert_schema_if_needed(plain))
