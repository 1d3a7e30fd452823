"""SQL over a savepoint, by DuckDB: the tables that a query names are read, and no others."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..connectors.errors import require
from .errors import NoSuchState, QueryFailed
from .state_table import StateTable

if TYPE_CHECKING:
    from .reading import SavepointReader


_OF_ITS_OWN = re.compile(r'\nDid you mean "pg_\w+"\?')
"""DuckDB's advice, of tables that nobody has asked for."""


def query(savepoint: SavepointReader, sql: str) -> pa.Table:
    """Raises MissingExtra, QueryFailed and NoSuchState."""
    duckdb: Any = require("duckdb", extra="frames", wanted_by="Savepoint.query")
    tables = {f"{table.operator}.{table.name}".lower(): table for table in savepoint.tables()}
    with duckdb.connect() as connection:
        try:
            for schema, name in sorted(_named(connection, sql)):
                _add(connection, _found(savepoint, tables, schema, name))
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            known = ", ".join(f"{_quoted(table.operator)}.{_quoted(table.name)}" for table in tables.values())
            said = _OF_ITS_OWN.sub("", str(error))
            raise QueryFailed(f"{savepoint.path}: {said}\ntables: {known}") from error


def _named(connection: Any, sql: str) -> set[tuple[str, str]]:
    """Schema and name of the tables that a SELECT names; those without a schema are its own, or DuckDB's to refuse."""
    ((tree,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    found = json.loads(tree)
    if found.get("error"):
        raise QueryFailed(f"{found.get('error_message')}: wanted one SELECT, found {sql!r:.80}")
    if (count := len(found["statements"])) != 1:
        raise QueryFailed(f"wanted one SELECT, found {count} statements in {sql!r:.80}")
    names: set[tuple[str, str]] = set()
    left: list[Any] = [found]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and node.get("schema_name"):
                names.add((node["schema_name"], node["table_name"]))
            left += node.values()
        elif isinstance(node, list):
            left += node
    return names


def _found(savepoint: SavepointReader, tables: dict[str, StateTable], schema: str, name: str) -> StateTable:
    found = tables.get(f"{schema}.{name}".lower())
    if found is None:
        texts = [f"{table.operator}.{table.name}" for table in tables.values()]
        raise NoSuchState(savepoint.path, f"table {schema + '.' + name!r} (operator.state)", texts)
    return found


def _add(connection: Any, table: StateTable) -> None:
    held = f"state {table.operator} {table.name}"
    connection.register(held, table.to_arrow())
    operator, state = _quoted(table.operator), _quoted(table.name)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {operator}")
    connection.execute(f"CREATE VIEW {operator}.{state} AS SELECT * FROM {_quoted(held)}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
