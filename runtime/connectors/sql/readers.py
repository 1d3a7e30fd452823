"""Reading pages of a relation: a number of rows behind a key, in one statement, as one Arrow batch.

A page is a statement of its own, so it is read again without harm when the connection was lost, and no cursor or
snapshot stays open in the database while records wait for what is slower. PostgreSQL prints pages as CSV (COPY), which
Arrow parses; other databases give Python values through SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .database import Database, driver_of
from .errors import TableMismatch
from .relation import Key, Relation
from .texts import batch_of_csv

if TYPE_CHECKING:
    from sqlalchemy import Connection


class PageReader:
    """One connection, made when it is needed, and again when it was lost. For one thread."""

    def __init__(self, relation: Relation, pause: Callable[[float], Any]) -> None:
        self._relation = relation
        self._database: Database = relation.database
        self._pause = pause
        self._connection: Connection | None = None

    def page(self, low: Key | None, high: Key | None, rows: int) -> pa.RecordBatch:
        """At most `rows` rows with low < key <= high, in the order of their keys. Raises SqlErrors."""

        def read() -> pa.RecordBatch:
            if self._connection is None:
                self._connection = self._database.connect(self._pause)
            try:
                return self._read(self._connection, low, high, rows)
            except BaseException:
                self.close()
                raise

        return self._database.patiently(read, f"read {self._relation.name}", self._pause)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _read(self, connection: Connection, low: Key | None, high: Key | None, rows: int) -> pa.RecordBatch:
        if self._database.is_postgresql:
            driver = driver_of(connection)
            page = copied_page(self._relation, driver, low, high, rows)
            driver.rollback()
            return page
        found = connection.execute(self._relation.select(low, high).limit(rows)).fetchall()
        connection.rollback()
        return rows_as_batch(found, self._relation.read_schema, self._relation.name)


def rows_as_batch(rows: Sequence[Any], schema: pa.Schema, where: str) -> pa.RecordBatch:
    """Rows of Python values as columns. Raises TableMismatch."""
    arrays = []
    for place, field in enumerate(schema):
        values = [row[place] for row in rows]
        try:
            arrays.append(_array(values, field.type))
        except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TableMismatch(
                f"{where}: column {field.name!r} was taken for {field.type} and holds another value ({error}): give "
                "the types as schema=pa.schema([...])"
            ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array([value if value is None or isinstance(value, str) else str(value) for value in values], kind)
    if pa.types.is_decimal(kind):
        return (
            pa.array(values).cast(kind) if any(value is not None for value in values) else pa.nulls(len(values), kind)
        )
    return pa.array(values, kind)


def copied_page(relation: Relation, driver: Any, low: Key | None, high: Key | None, rows: int) -> pa.RecordBatch:
    """The same over psycopg's connection, in whatever transaction it is."""
    statement = _copy_statement(relation, low, high, rows)
    with relation.database.deadline(driver), driver.cursor() as cursor, cursor.copy(statement) as copy:
        data = b"".join(copy)
    return batch_of_csv(data, relation.read_schema)


def _copy_statement(relation: Relation, low: Key | None, high: Key | None, rows: int) -> Any:
    """psycopg's Composed: COPY (SELECT ...) TO STDOUT."""
    from psycopg import sql

    keys = [sql.Identifier(name) for name in relation.key]
    row = sql.SQL("({})").format(sql.SQL(", ").join(keys))
    conditions = [
        sql.SQL("{} {} {}").format(row, sql.SQL(sign), _row_of(relation, bound))
        for sign, bound in ((">", low), ("<=", high))
        if bound is not None
    ]
    return sql.SQL("COPY (SELECT {} FROM {}{} ORDER BY {} LIMIT {}) TO STDOUT (FORMAT csv)").format(
        sql.SQL(", ").join(map(sql.Identifier, relation.read_schema.names)),
        relation.identifier,
        sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL(""),
        sql.SQL(", ").join(keys),
        sql.Literal(rows),
    )


def _row_of(relation: Relation, values: Key) -> Any:
    from psycopg import sql

    typed = zip(values, relation.key_types, strict=True)
    return sql.SQL("({})").format(
        sql.SQL(", ").join(sql.SQL("{}::{}").format(sql.Literal(value), sql.SQL(kind)) for value, kind in typed)
    )
