"""TargetTable: a table that is written: which columns it has, whether records fit them, and how rows get in.

Everything here happens within a transaction of its caller. To PostgreSQL rows go by COPY, for an upsert into a
temporary table first; to other databases by INSERT of many rows at once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ....actors.flow.records import values_of
from ....messages import those_there_are
from ....messages.shown import columns_shown
from .column_types import arrow_type_of, may_become, sql_type_of
from .database import Database, driver_of
from .errors import NoSuchTable, RowsLeftOut, TableMismatch
from .texts import csv_of_batch, json_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, TableClause

log = logging.getLogger(__name__)

_ROWS_PER_WRITE = 32_768


class TargetColumn(NamedTuple):
    type: pa.DataType
    declared: str
    """As the database calls it."""
    is_required: bool
    """Neither null nor anything of the database's own takes its place."""


class TargetTable:
    """As it is when it is looked at. Raises NoSuchTable, and TableMismatch for a key that is none."""

    def __init__(
        self, database: Database, connection: Connection, table: str, db_schema: str | None, key: Sequence[str] = ()
    ) -> None:
        from sqlalchemy import inspect
        from sqlalchemy.exc import NoSuchTableError

        self.database, self.table, self.db_schema, self.key = database, table, db_schema, tuple(key)
        self.name = table if db_schema is None else f"{db_schema}.{table}"
        inspector = inspect(connection)
        try:
            found = inspector.get_columns(table, schema=db_schema)
        except NoSuchTableError as error:
            there = inspector.get_table_names(schema=db_schema)
            raise NoSuchTable(
                f"{database.name} has no table {self.name}; it has "
                f"{those_there_are(table, there) if there else 'none'}. "
                "Make it before the job starts"
            ) from error
        is_wide = connection.dialect.name == "sqlite"
        self.columns = {
            each["name"]: TargetColumn(
                arrow_type_of(each["type"], is_wide),
                str(each["type"]),
                not (
                    each["nullable"] or each.get("default") or each.get("autoincrement") is True or each.get("identity")
                ),
            )
            for each in found
        }
        self._may_redirect: bool | None = None
        """Whether other tables inherit of it; None: it was not looked at."""
        if key:
            self._check_key(inspector)

    def problem(self, schema: pa.Schema) -> str | None:
        """Why rows of this schema do not fit; None when they may. Raises nothing."""
        problems = []
        for field in schema:
            column = self.columns.get(field.name)
            if column is None:
                problems.append(f"the table has no column {field.name!r}")
            elif not may_become(field.type, column.type, column.declared):
                problems.append(f"column {field.name!r} is {column.declared}, found {field.type}")
        problems += [
            f"column {name!r} ({column.declared}) may not be null, and is missing"
            for name, column in self.columns.items()
            if column.is_required and name not in schema.names
        ]
        if not problems:
            return None
        has = ", ".join(f"{name} {column.declared}" for name, column in self.columns.items())
        found = columns_shown(schema)
        return f"table {self.name} of {self.database.name}: {'; '.join(problems)} (the table has {has}; found {found})"

    # -- writing

    def append(self, connection: Connection, rows: pa.RecordBatch) -> None:
        """Raises TableMismatch for columns that were dropped since the rows were staged, and RowsLeftOut."""
        self._check_columns(rows.schema)
        if self.database.is_postgresql:
            got_in = self._copy(driver_of(connection), self._identifier, rows)
            if got_in != rows.num_rows and not self._has_heirs(connection, rows.num_rows, got_in):
                raise RowsLeftOut(self.name, self.database.name, rows.num_rows, got_in)
        elif rows.num_rows:
            connection.execute(self._clause(rows.schema).insert(), _python_rows(rows))

    def upsert(self, connection: Connection, rows: pa.RecordBatch) -> None:
        """Rows of different keys: those that are there take the new values of these columns. They are not counted: a
        trigger may leave out those that change nothing, as `suppress_redundant_updates_trigger` does.
        """
        self._check_columns(rows.schema)
        if not rows.num_rows:
            return
        if self.database.is_postgresql:
            self._merge(driver_of(connection), rows)
        elif connection.dialect.name == "sqlite":
            connection.execute(self._on_conflict(rows.schema), _python_rows(rows))
        else:
            self.delete(connection, rows.select(list(self.key)))
            self.append(connection, rows)

    def delete(self, connection: Connection, keys: pa.RecordBatch) -> None:
        """The rows with these keys, as far as there are any."""
        from sqlalchemy import bindparam

        if not keys.num_rows:
            return
        if self.database.is_postgresql:
            self._delete_by_copy(driver_of(connection), keys)
            return
        clause = self._clause(keys.schema)
        found = clause.delete()
        for name in self.key:
            found = found.where(clause.c[name] == bindparam(f"key_{name}"))
        rows = [{f"key_{name}": value for name, value in row.items()} for row in _python_rows(keys)]
        connection.execute(found, rows)

    # -- details

    def _has_heirs(self, connection: Connection, sent: int, got_in: int) -> bool:
        """Whether a trigger may have put the rows that are missing into tables that inherit of this one, as tables were
        parted before PostgreSQL 10: then they are not counted, which is logged once.
        """
        if self._may_redirect is None:
            driver = driver_of(connection)
            of_this = (
                "SELECT 1 FROM pg_class JOIN pg_inherits ON inhparent = oid WHERE oid = %s::regclass AND relkind = 'r'"
            )
            name = self._identifier.as_string(driver)
            self._may_redirect = driver.execute(of_this, (name,)).fetchone() is not None
            if self._may_redirect:
                log.warning(
                    "%s: of %d rows that were sent to table %s it has taken %d; the others are not counted, as a "
                    "trigger may put them into tables that inherit of it, and if it leaves out some nothing says so",
                    self.database.name,
                    sent,
                    self.name,
                    got_in,
                )
        return self._may_redirect

    def _check_columns(self, schema: pa.Schema) -> None:
        if any(name not in self.columns for name in schema.names):
            raise TableMismatch(self.problem(schema) or "")

    def _check_key(self, inspector: Any) -> None:
        unknown = [name for name in self.key if name not in self.columns]
        if unknown:
            raise TableMismatch(
                f"{self.name} of {self.database.name} has no column {unknown[0]!r}; it has "
                f"{those_there_are(unknown[0], self.columns)}"
            )
        where = {"schema": self.db_schema}
        primary = inspector.get_pk_constraint(self.table, **where)["constrained_columns"]
        unique = [primary] if primary else []
        unique += [each["column_names"] for each in inspector.get_unique_constraints(self.table, **where)]
        unique += [each["column_names"] for each in inspector.get_indexes(self.table, **where) if each["unique"]]
        if set(self.key) not in [set(each) for each in unique]:
            raise TableMismatch(
                f"{self.name} of {self.database.name}: an upsert needs a primary key or unique index of just its key "
                f"({', '.join(self.key)}); there is {' and '.join(', '.join(each) for each in unique) or 'none'}"
            )

    @property
    def _identifier(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*((self.table,) if self.db_schema is None else (self.db_schema, self.table)))

    def _clause(self, schema: pa.Schema) -> TableClause:
        from sqlalchemy import column, table

        typed = (column(name, sql_type_of(self.columns[name].type)) for name in schema.names)
        return table(self.table, *typed, schema=self.db_schema)

    def _on_conflict(self, schema: pa.Schema) -> Any:
        from sqlalchemy.dialects.sqlite import insert

        made = insert(self._clause(schema))  # type: ignore[arg-type, unused-ignore]
        changed = {name: made.excluded[name] for name in schema.names if name not in self.key}
        if not changed:
            return made.on_conflict_do_nothing(index_elements=list(self.key))
        return made.on_conflict_do_update(index_elements=list(self.key), set_=changed)

    def _copy(self, driver: Any, into: Any, rows: pa.RecordBatch) -> int:
        """Returns how many got in."""
        from psycopg import sql

        names = sql.SQL(", ").join(map(sql.Identifier, rows.schema.names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(into, names)
        with driver.cursor() as cursor:
            with cursor.copy(statement) as copy:
                for start in range(0, rows.num_rows, _ROWS_PER_WRITE):  # the server reads one while the next is made
                    copy.write(csv_of_batch(rows.slice(start, _ROWS_PER_WRITE)))
            return int(cursor.rowcount)

    def _staged(self, driver: Any, rows: pa.RecordBatch) -> Any:
        """A temporary table with these rows; it goes with the transaction."""
        from psycopg import sql

        stage = sql.Identifier("understudy_stage")
        names = sql.SQL(", ").join(map(sql.Identifier, rows.schema.names))
        driver.execute(sql.SQL("DROP TABLE IF EXISTS pg_temp.{}").format(stage))
        made = "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0"
        driver.execute(sql.SQL(made).format(stage, names, self._identifier))
        self._copy(driver, stage, rows)
        return stage

    def _merge(self, driver: Any, rows: pa.RecordBatch) -> None:
        from psycopg import sql

        stage = self._staged(driver, rows)
        names = [sql.Identifier(name) for name in rows.schema.names]
        keys = sql.SQL(", ").join(map(sql.Identifier, self.key))
        changed = [sql.Identifier(name) for name in rows.schema.names if name not in self.key]
        settings = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in changed)
        action = sql.SQL("UPDATE SET {}").format(settings) if changed else sql.SQL("NOTHING")
        driver.execute(
            sql.SQL("INSERT INTO {0} ({1}) SELECT {1} FROM {2} ORDER BY {3} ON CONFLICT ({3}) DO {4}").format(
                self._identifier, sql.SQL(", ").join(names), stage, keys, action
            )
        )

    def _delete_by_copy(self, driver: Any, keys: pa.RecordBatch) -> None:
        from psycopg import sql

        stage = self._staged(driver, keys)
        equal = sql.SQL(" AND ").join(sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in self.key)
        driver.execute(sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE {}").format(self._identifier, stage, equal))


def last_of_each_key(rows: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    """In their order."""
    place = "place of the row"
    table = pa.table([*(rows.column(name) for name in key), pa.array(range(rows.num_rows), pa.int64())], [*key, place])
    last = table.group_by(list(key)).aggregate([(place, "max")]).column(f"{place}_max").combine_chunks()
    return rows if len(last) == rows.num_rows else rows.take(last.take(pc.sort_indices(last)))


def _python_rows(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = {}
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        values = values_of(column)
        columns[name] = list(map(json_text, values)) if pa.types.is_nested(column.type) else values
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
