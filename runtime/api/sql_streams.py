"""Streams from and to SQL databases, as parts of the StreamEnvironment and of every stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ..connectors import ConnectorError, PostgresChanges, SqlSink, SqlSource, SqlUpsertSink
from .joined_streams import Options

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Engine

    from .stream import DataStream


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


class TableSinkOptions(TypedDict, total=False):
    """What `SqlSink` takes beside the database, the table and the key."""

    columns: Sequence[str] | None
    kind: str | None
    deleted: str | None
    db_schema: str | None
    retry_ms: int
    statement_timeout_ms: int


class SqlSources:
    """Base of the StreamEnvironment."""

    if TYPE_CHECKING:

        def _batching(self) -> dict[str, Any]: ...
        def _start(self, source: Source, name: str | None, parallelism: int | None, group: None) -> DataStream: ...

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
        Row: `row["delay"]`, `row.delay`. Options: those of `SqlSource`. See docs/connectors/sql.md.
        """
        return self._start(SqlSource(url, table, **self._batching(), **options), name, parallelism, None)

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
        source = PostgresChanges(url, table, slot=slot, **self._batching(), **options)
        return self._start(source, name, 1 if parallelism is None else parallelism, None)


class SqlSinks:
    """A part of every stream."""

    @abstractmethod
    def sink_to(self, sink: Operator | type[Operator], **options: Unpack[Options]) -> Any:
        """End the stream in a sink."""

    def to_sql(
        self,
        url: str | Callable[[], Engine],
        table: str,
        *,
        key: str | Sequence[str] | None = None,
        exactly_once: bool = True,
        name: str | None = None,
        parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        **options: Unpack[TableSinkOptions],
    ) -> Any:
        """Write rows into a table: append them, or with a `key` set the row of that key; `kind=` or `deleted=` names
        the column by which rows are removed. Exactly once by a ledger (`SqlSink`); `exactly_once=False` upserts sooner
        and without one (`SqlUpsertSink`). See docs/connectors/sql.md.
        """
        general: Options = {"name": name, "parallelism": parallelism, "slot_sharing_group": slot_sharing_group}
        if exactly_once:
            return self.sink_to(SqlSink(url, table, key=key, **options), **general)
        if key is None:
            raise ConnectorError(
                "to_sql: without a ledger only upserts come right: name the key=..., or leave exactly_once"
            )
        return self.sink_to(SqlUpsertSink(url, table, key=key, **options), **general)
