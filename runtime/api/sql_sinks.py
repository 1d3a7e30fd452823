"""SqlSinks: streams into tables of SQL databases. A part of every stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

from ...messages.known_names import known_arguments
from ..connectors import ConnectorError, SqlSink, SqlUpsertSink
from .ends import End, Ends
from .known_options import Options

if TYPE_CHECKING:
    from sqlalchemy import Engine


class TableSinkOptions(TypedDict, total=False):
    """What `SqlSink` takes beside the database, the table and the key."""

    columns: Sequence[str] | None
    kind: str | None
    deleted: str | None
    db_schema: str | None
    retry_ms: int
    statement_timeout_ms: int


class SqlSinks(Ends[End]):
    """Base of the DataStream."""

    @known_arguments(first=1, also=TableSinkOptions.__annotations__)
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
    ) -> End:
        """Write rows into a table: append them, or with a `key` set the row of that key; `kind=` or `deleted=` names
        the column by which rows are removed. Exactly once by a ledger (`SqlSink`); `exactly_once=False` upserts sooner
        and without one (`SqlUpsertSink`). See docs/connectors/sql.md.
        """
        general: Options = {"name": name, "parallelism": parallelism, "slot_sharing_group": slot_sharing_group}
        if exactly_once:
            return self.sink_to(SqlSink(url, table, key=key, **options), **general)
        if key is None:
            raise ConnectorError(
                "to_sql: exactly_once=False needs key=..., as appended rows would come twice after a restart: give the "
                "key, or leave exactly_once=False out"
            )
        return self.sink_to(SqlUpsertSink(url, table, key=key, **options), **general)
