"""SqlSources: streams of tables of SQL databases, and of their changes. A part of the StreamEnvironment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ...messages.known_names import known_arguments
from ..connectors import PostgresChanges, SqlSource
from .beginnings import Beginnings
from .stream import DataStream

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Engine


class TableOptions(TypedDict, total=False):
    """What `SqlSource` takes beside the database and the table."""

    query: str | None
    db_schema: str | None
    key: str | Sequence[str] | None
    columns: Sequence[str] | None
    schema: pa.Schema | None
    splits: int | None
    page_rows: int | None
    records_per_second: float | None
    retry_ms: int
    statement_timeout_ms: int


class ChangeOptions(TypedDict, total=False):
    """What `PostgresChanges` takes beside the database, the table and the slot."""

    publication: str | None
    db_schema: str | None
    columns: Sequence[str] | None
    key: str | Sequence[str] | None
    snapshot: bool
    unchanged: Any
    retry_ms: int
    statement_timeout_ms: int


class SqlSources(Beginnings):
    """Base of the StreamEnvironment."""

    @known_arguments(first=1, also=TableOptions.__annotations__)
    def from_sql(
        self,
        url: str | Callable[[], Engine],
        table: str | None = None,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Unpack[TableOptions],
    ) -> DataStream:
        """Read a table, or `query=`, of the database at `url`: each row once, split by ranges of its key. A record is a
        Row: `row["delay"]`, `row.delay`. Options: those of `SqlSource`; `records_per_second` is the rate of all
        subtasks together. See docs/connectors/sql.md.
        """
        return self._start(SqlSource(url, table, **self._with(options)), name, parallelism)

    @known_arguments(first=1, also=ChangeOptions.__annotations__)
    def from_postgres_changes(
        self,
        url: str | Callable[[], Engine],
        table: str,
        *,
        slot: str,
        name: str | None = None,
        parallelism: int | None = None,
        **options: Unpack[ChangeOptions],
    ) -> DataStream:
        """The rows of a PostgreSQL table, then each change of it, as it is committed. A record is a Row with `kind`,
        the table's columns, `commit_lsn`, `commit_place` and `committed_at`. One subtask reads. Options: those of
        `PostgresChanges`. See docs/connectors/postgres-cdc.md.
        """
        source = PostgresChanges(url, table, slot=slot, **self._with(options))
        return self._start(source, name, parallelism, leads=True)
