"""SqlSink and SqlUpsertSink: rows into a table, exactly once by a ledger in the same database, or by upserts alone.

The ledger is a table of ours beside the user's, `understudy_ledger`: a row per writer, moved on in the transaction that
writes the rows (`LedgerSink` says when). So it needs no setting of the server, holds no lock between checkpoints, and a
zombie finds the row moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pyarrow as pa

from ....actors.errors import MarkerMoved
from ....actors.flow.elements import Batch
from ....actors.flow.records import merged
from ....actors.operators.idempotent_sink import IdempotentSink
from ....actors.operators.ledger_sink import LedgerSink
from ....actors.operators.marker import Marker
from ....actors.operators.operator import Operator, Takes
from ....actors.operators.patience import RETRY_MS
from ....state import pack_batch
from ..names import one_name, several_names
from .database import STATEMENT_TIMEOUT_MS, Database, driver_of
from .errors import DatabaseRefused, DatabaseUnreachable, StatementFailed, TableMismatch
from .row_changes import RowChanges
from .target_table import TargetTable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

T = TypeVar("T")
LEDGER = "understudy_ledger"


class _TableSink(Operator):
    """What both have: a table, looked at when the sink opens, and a connection, made again when it was lost."""

    takes: ClassVar[Takes] = "any"

    def _set_up(self, database: Database, table: str, db_schema: str | None, changes: RowChanges) -> None:
        self._database, self._db_schema, self._changes = database, db_schema, changes
        self.removes_rows = changes.removes_rows
        self._table = one_name("table", table, "the name of a table")
        self._connection: Connection | None = None
        self._upstream: pa.Schema | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database.name}, {self._table})"

    @property
    def _writes_to(self) -> str:
        return f"table {self._table} of {self._database.name}"

    @property
    def _row_key(self) -> tuple[str, ...]:
        return self._changes.key

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises SqlErrors: wrong credentials, a missing table, columns that do not fit, a server that only reads."""
        with self._database.connect_to_look() as connection:
            self._look(connection)
            if self._database.is_postgresql:
                self._check_takes_changes(connection)

    def output_schema(self, *inputs: pa.Schema | None) -> None:
        """A sink emits nothing; what comes is compared with the table when the job is submitted, and when it opens."""
        self._upstream = inputs[0]
        if self._upstream is not None:
            self._changes.written(self._upstream)

    def open(self) -> None:
        """Waits for the database for `retry_ms`: without its table nothing can be written."""
        self._connection = self._database.connect()
        self._target = self._look(self._connection)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _look(self, connection: Connection) -> TargetTable:
        with self._database.translated(f"look at table {self._table}"):
            found = TargetTable(self._database, connection, self._table, self._db_schema, self._changes.key)
            connection.rollback()
        if self._upstream is not None:
            problem = found.problem(self._changes.written(self._upstream))
            if problem is not None:
                raise TableMismatch(problem)
        return found

    def _check_takes_changes(self, connection: Connection) -> None:
        """When the job runs a server that only reads may be one that is about to be replaced; here it is a mistake."""
        with self._database.translated(f"look at table {self._table}"):
            (read_only,) = driver_of(connection).execute("SHOW transaction_read_only").fetchone()
        if read_only == "on":
            raise DatabaseRefused(
                f"{self._database.name} takes no changes: its transactions are read-only, as at a standby, or with "
                "default_transaction_read_only. Give the URL of the primary"
            )

    def _transact(self, what: str, act: Callable[[Connection], T]) -> T:
        """One transaction: committed when it returns. After an error nobody knows whether it was, and the connection is
        made again. Raises SqlErrors.
        """
        with self._database.translated(what):
            if self._connection is None:
                self._connection = self._database.engine.connect()
            connection = self._connection
            try:
                if not self._database.is_postgresql:
                    return _committed(connection, act)
                with self._database.deadline(driver_of(connection)):
                    return _committed(connection, act)
            except BaseException:
                self.close()
                raise


class SqlSink(_TableSink, LedgerSink):
    """Rows into `table` of the database at `url`, exactly once, for every reader at every moment.

    Without a `key` rows are appended; with one they are upserted: the row with that key, which a primary key or unique
    index must say, takes the new values. `kind`, `deleted`: the column that says that a row is to be removed, see
    RowChanges. `columns`: those that are written. The ledger's table is made where it is missing.
    """

    def __init__(
        self,
        url: str | Callable[[], Engine],
        table: str,
        *,
        key: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        kind: str | None = None,
        deleted: str | None = None,
        db_schema: str | None = None,
        retry_ms: int = RETRY_MS,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
    ) -> None:
        database = Database(url, retry_ms=retry_ms, statement_timeout_ms=statement_timeout_ms)
        self._set_up(database, table, db_schema, RowChanges.of(key, columns, kind=kind, deleted=deleted))
        self.retry_ms = retry_ms

    def open(self) -> None:
        super().open()
        self._has_ledger = False
        with suppress(DatabaseUnreachable):  # it is made, and if need be tried again, with what is to be written
            self._settle_ledger()

    def write(self, batch: Batch) -> None:
        self._kept.append(self._changes.fitted(batch, self._target))

    def stage(self, batches: list[Any]) -> Any:
        return [pack_batch(rows) for rows in merged(batches)] or None

    def apply(self, batches: list[Any], marker: Marker) -> None:
        def act(connection: Connection) -> None:
            if not self._moved(connection, marker):
                raise MarkerMoved(marker.writer, marker.after)
            self._changes.apply(connection, batches, self._target)

        self._settle_ledger()
        self._transact(f"write to {self._target.name}", act)

    def last_marker(self, writer: str) -> int | None:
        from sqlalchemy import select

        ledger = self._ledger()
        asked = select(ledger.c.sequence).where(ledger.c.writer == writer)
        self._settle_ledger()
        return self._transact(f"read {LEDGER}", lambda connection: connection.execute(asked).scalar())

    def _moved(self, connection: Connection, marker: Marker) -> bool:
        """The row stays locked until the transaction ends, so that nobody else moves it meanwhile."""
        ledger = self._ledger()
        if not marker.after:
            row = {"writer": marker.writer, "sink": marker.sink, "sequence": marker.sequence}
            return _is_made(connection, ledger, row)
        at = ledger.update().where(ledger.c.writer == marker.writer, ledger.c.sequence == marker.after)
        return connection.execute(at.values(sequence=marker.sequence)).rowcount == 1

    def _ledger(self) -> Table:
        from sqlalchemy import BigInteger, Column, MetaData, String, Table

        return Table(
            LEDGER,
            MetaData(),
            Column("writer", String(64), primary_key=True),
            Column("sink", String(32), nullable=False),
            Column("sequence", BigInteger, nullable=False),
            schema=self._db_schema,
        )

    def _settle_ledger(self) -> None:
        """See to it that it is there."""
        if not self._has_ledger:
            self._make_ledger()
            self._has_ledger = True

    def _make_ledger(self) -> None:
        """Subtasks may make it at the same time: then one of them finds that it is there."""
        ledger = self._ledger()

        def make(connection: Connection) -> None:
            ledger.metadata.create_all(connection)

        try:
            self._transact(f"make table {LEDGER}", make)
        except StatementFailed:
            self._transact(f"make table {LEDGER}", make)
        except DatabaseRefused as error:
            raise DatabaseRefused(
                f"{error}. A table of this name keeps what was written, in the same transaction: let somebody who may "
                f"make it: CREATE TABLE {LEDGER} (writer varchar(64) PRIMARY KEY, sink varchar(32) NOT NULL, sequence "
                "bigint NOT NULL), and grant SELECT, INSERT and UPDATE on it"
            ) from error


class SqlUpsertSink(_TableSink, IdempotentSink):
    """The same upserts without a ledger: at least once, sooner than the next checkpoint, and right in the end
    (IdempotentSink says what that promises).
    """

    def __init__(
        self,
        url: str | Callable[[], Engine],
        table: str,
        *,
        key: str | Sequence[str],
        columns: Sequence[str] | None = None,
        kind: str | None = None,
        deleted: str | None = None,
        db_schema: str | None = None,
        most_rows: int = 10_000,
        retry_ms: int = RETRY_MS,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
    ) -> None:
        database = Database(url, retry_ms=retry_ms, statement_timeout_ms=statement_timeout_ms)
        named = several_names("key", key, "the name of a column")
        self._set_up(database, table, db_schema, RowChanges.of(named, columns, kind=kind, deleted=deleted))
        self.most_rows, self.retry_ms = most_rows, retry_ms

    def upsert(self, batch: Batch) -> None:
        rows = self._changes.fitted(batch, self._target)
        self._transact(
            f"write to {self._target.name}", lambda connection: self._changes.apply(connection, [rows], self._target)
        )


def _committed(connection: Connection, act: Callable[[Connection], T]) -> T:
    with connection.begin():
        return act(connection)


def _is_made(connection: Connection, ledger: Table, row: dict[str, Any]) -> bool:
    """Makes the row, unless there is one of this writer."""
    from sqlalchemy import literal, select
    from sqlalchemy.dialects import postgresql, sqlite

    if connection.dialect.name in ("postgresql", "sqlite"):
        insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(ledger).values(row)
        made = insert.on_conflict_do_nothing().returning(ledger.c.writer)
        return connection.execute(made).first() is not None
    there = select(ledger.c.writer).where(ledger.c.writer == row["writer"])
    unless = ledger.insert().from_select(list(row), select(*map(literal, row.values())).where(~there.exists()))
    return connection.execute(unless).rowcount == 1
