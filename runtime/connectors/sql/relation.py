"""Relation: a table or a query of a database that is read: its columns, its key, and the SQL that reads a part of it.

A key is what rows are ordered by and resumed behind, so it is never NULL and no two rows share it. For a table it is
the primary key unless the user says; for a query the user says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....messages import those_there_are
from .column_types import arrow_type_of, arrow_type_of_oid, sql_type_of
from .database import Database, driver_of
from .errors import KeyNotUnique, NoSuchTable, TableMismatch

if TYPE_CHECKING:
    from sqlalchemy import Connection, FromClause, Select

Key = tuple[Any, ...]
"""One value for each key column."""

_GUESSED_ROWS = 1000


class Relation:
    """Plain data that travels with the job. Raises NoSuchTable, TableMismatch, KeyNotUnique."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        *,
        table: str | None,
        query: str | None,
        db_schema: str | None,
        columns: Sequence[str] | None,
        key: Sequence[str] | None,
        schema: pa.Schema | None,
        needs_key: bool = True,
        is_read_by_key: bool = True,
    ) -> None:
        self.database, self.table, self.query, self.db_schema = database, table, query, db_schema
        self.name = table if table is not None else "the query"
        """For messages."""
        if table is not None and db_schema is not None:
            self.name = f"{db_schema}.{table}"
        primary: tuple[str, ...] = ()
        unique: list[tuple[str, ...]] = []
        not_null: set[str] = set()
        if table is not None:
            primary, unique, not_null = self._keys_of_table(connection)
        found = self._columns(connection) if schema is None else schema
        self.key = tuple(primary if key is None else key)
        if not self.key and needs_key:
            raise TableMismatch(
                f"{self.name} of {database.name} has no primary key: say by which columns its rows differ and "
                "are ordered, key=[...]"
            )
        wanted = tuple(found.names) if columns is None else tuple(columns)
        for each in (*wanted, *self.key):
            if each not in found.names:
                raise TableMismatch(
                    f"{self.name} of {database.name} has no column {each!r}; it has "
                    f"{those_there_are(each, found.names)}"
                )
        self.schema = pa.schema([found.field(each) for each in wanted])
        """Of the records."""
        extra = [each for each in self.key if each not in wanted]
        self.read_schema = pa.schema([*self.schema, *(found.field(each) for each in extra)])
        """Of what is read: with the key."""
        self.key_types = self._declared_types(connection) if database.is_postgresql else ()
        """As PostgreSQL calls them."""
        if self.key and is_read_by_key:
            self._check_key(
                connection, not_null, known_unique=any(set(one) <= set(self.key) for one in (primary, *unique) if one)
            )

    def key_of(self, batch: pa.RecordBatch, row: int) -> Key:
        return tuple(batch.column(name)[row].as_py() for name in self.key)

    # -- SQL

    def clause(self) -> FromClause:
        """For SQLAlchemy's select."""
        from sqlalchemy import column, table, text

        typed = [column(field.name, sql_type_of(field.type)) for field in self.read_schema]
        if self.query is not None:
            return text(self.query).columns(*typed).subquery("q")
        assert self.table is not None
        return table(self.table, *typed, schema=self.db_schema)

    def select(self, low: Key | None, high: Key | None, names: Sequence[str] | None = None) -> Select[Any]:
        """The rows with low < key <= high, in the order of their keys."""
        from sqlalchemy import select

        clause = self.clause()
        chosen = select(*(clause.c[name] for name in names or self.read_schema.names))
        keys = [clause.c[name] for name in self.key]
        if low is not None:
            chosen = chosen.where(_beyond(keys, low))
        if high is not None:
            chosen = chosen.where(~_beyond(keys, high))
        return chosen.order_by(*keys)

    # -- what there is

    def _keys_of_table(self, connection: Connection) -> tuple[tuple[str, ...], list[tuple[str, ...]], set[str]]:
        from sqlalchemy import inspect
        from sqlalchemy.exc import NoSuchTableError

        inspector, table, schema = inspect(connection), self.table, self.db_schema
        assert table is not None
        try:
            columns = inspector.get_columns(table, schema=schema)
            primary = tuple(inspector.get_pk_constraint(table, schema=schema)["constrained_columns"])
            unique = [tuple(each["column_names"]) for each in inspector.get_unique_constraints(table, schema=schema)]
            for index in inspector.get_indexes(table, schema=schema):
                names = tuple(name for name in index["column_names"] if name is not None)
                unique += [names] if index["unique"] and len(names) == len(index["column_names"]) else []
        except NoSuchTableError as error:
            there = [*inspector.get_table_names(schema=schema), *inspector.get_view_names(schema=schema)]
            raise NoSuchTable(
                f"{self.database.name} has no table {self.name}; it has "
                f"{those_there_are(table, there) if there else 'none'}: correct the name, or the database in the URL"
            ) from error
        self._inspected = columns
        return primary, unique, {each["name"] for each in columns if not each["nullable"]}

    def _columns(self, connection: Connection) -> pa.Schema:
        if self.database.is_postgresql:
            return self._described_by_postgresql(connection)
        if self.table is not None:
            is_wide = connection.dialect.name == "sqlite"
            return pa.schema([pa.field(each["name"], arrow_type_of(each["type"], is_wide)) for each in self._inspected])
        return self._guessed(connection)

    def _described_by_postgresql(self, connection: Connection) -> pa.Schema:
        from psycopg import sql

        with self.database.translated(f"describe {self.name}"):
            cursor = driver_of(connection).execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(self.identifier))
        found = cursor.description
        return pa.schema(
            [pa.field(each.name, arrow_type_of_oid(each.type_code, each.precision, each.scale)) for each in found]
        )

    def _declared_types(self, connection: Connection) -> tuple[str, ...]:
        from psycopg import sql

        asked = sql.SQL(", ").join(sql.SQL("pg_typeof({})::text").format(sql.Identifier(name)) for name in self.key)
        statement = sql.SQL("SELECT {} FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM {} LIMIT 0) AS q ON true")
        return tuple(driver_of(connection).execute(statement.format(asked, self.identifier)).fetchone())

    def _guessed(self, connection: Connection) -> pa.Schema:
        """A query of a database that does not say its types: those of its first rows."""
        from sqlalchemy import text

        assert self.query is not None
        with self.database.translated(f"read {self.name}"):
            result = connection.execution_options(stream_results=True).execute(text(self.query))
            names, rows = list(result.keys()), result.fetchmany(_GUESSED_ROWS)
            result.close()
        arrays = [pa.array([row[place] for row in rows]) for place in range(len(names))]
        unknown = [name for name, array in zip(names, arrays, strict=True) if pa.types.is_null(array.type)]
        if unknown:
            raise TableMismatch(
                f"the types of columns {', '.join(unknown)} of the query are not known, as its first rows have none: "
                "give them as schema=pa.schema([...])"
            )
        return pa.schema([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)])

    @property
    def identifier(self) -> Any:
        """What stands behind FROM, for psycopg."""
        from psycopg import sql

        if self.query is not None:
            return sql.SQL(f"({self.query}) AS q")  # type: ignore[arg-type, unused-ignore]
        return sql.Identifier(*self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """The table's name with that of its schema, if it has one."""
        assert self.table is not None
        return (self.table,) if self.db_schema is None else (self.db_schema, self.table)

    def _check_key(self, connection: Connection, not_null: set[str], known_unique: bool) -> None:
        """NULLs and equal keys that are there now; those that come while it is read are found then, if at all."""
        from sqlalchemy import func, or_, select

        clause = self.clause()
        keys = [clause.c[name] for name in self.key]
        with self.database.translated(f"read {self.name}"):
            nullable = [clause.c[name] for name in self.key if name not in not_null]
            if nullable:
                empty = select(*keys).where(or_(*(each.is_(None) for each in nullable))).limit(1)
                if connection.execute(empty).first() is not None:
                    raise KeyNotUnique(
                        f"{self.name}: the key {', '.join(self.key)} is NULL in some rows, which have no place in its "
                        "order: choose another key, or leave them out with a query"
                    )
            if not known_unique:
                doubled = select(*keys).group_by(*keys).having(func.count() > 1).limit(1)
                if (found := connection.execute(doubled).first()) is not None:
                    raise KeyNotUnique(
                        f"{self.name}: the key {', '.join(self.key)} is not unique: {tuple(found)} is there more than "
                        "once. Add columns to it by which the rows differ"
                    )


def _beyond(keys: Sequence[Any], values: Key) -> Any:
    """Whether a row's key is greater than the values: column by column, which every database understands."""
    from sqlalchemy import and_, or_

    first, *others = keys
    if not others:
        return first > values[0]
    return or_(first > values[0], and_(first == values[0], _beyond(others, values[1:])))
