"""ChangeRows: changes as rows of Arrow columns: which kind, the table's columns, and the commit that made them.

    kind           "+I" inserted, or read from the table; "-U" and "+U" before and after an update; "-D" deleted;
                   "-T": the table was emptied by TRUNCATE, all other columns of the table are null
    commit_lsn     where the commit stands in the server's log; of rows that were read, as of where
    commit_place   the place of the change in its transaction; null: it was read from the table
    committed_at   when; null: it was read from the table

Rows of one change never come in different batches.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .....actors.flow.changelog import INSERT, KIND
from ..errors import NotReplicable, TableChanged, TableMismatch
from ..texts import column_of_texts
from .pgoutput import UNCHANGED, RelationMessage, Texts

COMMIT_LSN, COMMIT_PLACE, COMMITTED_AT = "commit_lsn", "commit_place", "committed_at"
TRUNCATED = "-T"
_COMMIT_FIELDS = (
    pa.field(COMMIT_LSN, pa.int64()),
    pa.field(COMMIT_PLACE, pa.int64()),
    pa.field(COMMITTED_AT, pa.timestamp("us", tz="UTC")),
)
Types: TypeAlias = dict[str, pa.DataType]
OnUnchanged = Literal["fail", "null"]


def change_schema(table: pa.Schema, where: str) -> pa.Schema:
    """Raises TableMismatch for a table with columns that are called like ours."""
    added = (pa.field(KIND, pa.string(), nullable=False), *_COMMIT_FIELDS)
    taken = [field.name for field in added if field.name in table.names]
    if taken:
        raise TableMismatch(
            f"{where} has columns that are called {', '.join(taken)}, as those which each change gets: name "
            "the columns "
            "to read in columns=[...]"
        )
    return pa.schema([added[0], *(field.with_nullable(True) for field in table), *_COMMIT_FIELDS])


class Layout:
    """Where the wanted columns stand in the rows of a relation message; None: the table did not have it then."""

    def __init__(self, message: RelationMessage, wanted: pa.Schema, now: Types, takes_all: bool) -> None:
        """`now`: the table's columns at present; `takes_all`: a column that was added has to be noticed. The message
        may be older than the job, which goes on with a table that was altered meanwhile. Raises TableChanged.
        """
        places = {column.name: place for place, column in enumerate(message.columns)}
        dropped = [name for name in wanted.names if name not in places and name not in now]
        added = [name for name in places if takes_all and name in now and name not in wanted.names]
        altered = [name for name in wanted.names if name in now and now[name] != wanted.field(name).type]
        for names, what in ((dropped, "is not there any more"), (added, "was added"), (altered, "has another type")):
            if names:
                raise TableChanged(
                    f"{message.schema}.{message.name} is not as it was when the job was made: column "
                    f"{', '.join(names)} "
                    f"{what}. Make the job again, with the table as it is now, and start it from its newest checkpoint "
                    "or savepoint: it goes on without a gap"
                )
        self.places: list[int | None] = [places.get(name) for name in wanted.names]


class ChangeRows:
    """Collects them, and makes a batch of them."""

    def __init__(self, table: pa.Schema, schema: pa.Schema, where: str, on_unchanged: OnUnchanged) -> None:
        self._table, self._schema, self._where, self._on_unchanged = table, schema, where, on_unchanged
        self.clear()

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, kind: str, row: Texts | None, layout: Layout | None, before: Texts | None = None) -> None:
        """`before`: the whole old row, which has the values that `row` does not, as they did not change."""
        self._kinds.append(kind)
        for place, field in enumerate(self._table):
            value: Any = None
            at = None if layout is None else layout.places[place]
            if row is not None and at is not None:
                value = row[at]
                if value is UNCHANGED and before is not None:
                    value = before[at]
                if value is UNCHANGED:
                    self._check_unchanged(field.name)
                    value = None
            self._columns[place].append(value)

    def commit(self, lsn: int, place: int, at_us: int) -> None:
        """Which commit the rows belong to that were added since the last call."""
        while len(self._lsns) < len(self._kinds):
            self._lsns.append(lsn)
            self._places.append(place)
            self._times.append(at_us)

    def take(self) -> pa.RecordBatch:
        """All of them."""
        columns = [column_of_texts(texts, field) for texts, field in zip(self._columns, self._table, strict=True)]
        commits = (self._lsns, self._places, self._times)
        arrays = [
            pa.array(self._kinds, pa.string()),
            *columns,
            *(pa.array(values, field.type) for values, field in zip(commits, _COMMIT_FIELDS, strict=True)),
        ]
        self.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def read(self, page: pa.RecordBatch, lsn: int) -> pa.RecordBatch:
        """Rows of the table itself."""
        rows = page.num_rows
        arrays = [
            pa.array([INSERT] * rows, pa.string()),
            *(page.column(name) for name in self._table.names),
            pa.array([lsn] * rows, pa.int64()),
            *(pa.nulls(rows, field.type) for field in _COMMIT_FIELDS[1:]),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _check_unchanged(self, column: str) -> None:
        if self._on_unchanged == "fail":
            raise NotReplicable(
                f"{self._where}: an update left a large value of column {column!r} as it was, and PostgreSQL "
                "does not send "
                "it: ALTER TABLE ... REPLICA IDENTITY FULL sends the old row too, from then on; leave the column out, "
                "columns=[...]; or take null for such values, unchanged='null'"
            )

    def clear(self) -> None:
        self._kinds: list[str] = []
        self._columns: list[list[Any]] = [[] for _ in self._table]
        self._lsns: list[int] = []
        self._places: list[int] = []
        self._times: list[int] = []
