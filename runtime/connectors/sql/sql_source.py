"""SqlSource: a table or a query, read once, in the order of its key, split by ranges of it. Flink: JdbcSource.

The offset is the key of the last row that was emitted, of each range: a restored attempt reads on behind it, with any
parallelism. What is promised of a table that changes meanwhile, docs/connectors/sql.md says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ....actors.operators.patience import RETRY_MS
from ....actors.operators.source import END, SourceState
from ....actors.setting_limits import MOST
from ....messages import shown
from ..errors import OffsetMismatch
from ..paced_source import PacedSource
from .background import Background
from .database import STATEMENT_TIMEOUT_MS, Database
from .readers import PageReader
from .relation import Key, Relation

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

TABLE_PAGE_ROWS, QUERY_PAGE_ROWS = 65_536, 524_288
"""A query is run again for each page."""
_BATCH_ROWS = 8192
_ROWS_PER_SPLIT, _MOST_SPLITS = 100_000, 64


class SqlSource(PacedSource):
    """Reads `table`, or `query`, of the database at `url`, each row once, as Arrow batches.

    `url`: as SQLAlchemy takes it; postgresql://... is read by psycopg. Or a function that makes an Engine.
    `key`: the columns by which rows are ordered and differ; of a table its primary key when None.
    `columns`: which; all when None. `schema`: their Arrow types, where the database's are not wanted.
    `splits`: into how many ranges of the key; None: as many as suit a key that is one integer, else 1.
    `retry_ms`: how long a database that is away is waited for. Raises SqlErrors when it is made: it asks the database
    for the columns.
    """

    def __init__(
        self,
        url: str | Callable[[], Engine],
        table: str | None = None,
        *,
        query: str | None = None,
        db_schema: str | None = None,
        key: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        splits: int | None = None,
        batch_rows: int = _BATCH_ROWS,
        page_rows: int | None = None,
        records_per_second: float | None = None,
        retry_ms: int = RETRY_MS,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
    ) -> None:
        super().__init__(batch_rows, records_per_second)
        if (table is None) == (query is None):
            raise ValueError("SqlSource: wanted table=... or query=..., one of both")
        for name, value in (("splits", splits), ("page_rows", page_rows)):
            if value is not None and (type(value) is not int or not 1 <= value <= MOST):
                raise ValueError(f"{name}: wanted a whole number from 1 to {MOST}, or None, found {shown(value)}")
        database = Database(url, retry_ms=retry_ms, statement_timeout_ms=statement_timeout_ms)
        with database.connect_to_look() as connection, database.translated("look at the table"):
            self._relation = Relation(
                database,
                connection,
                table=table,
                query=query,
                db_schema=db_schema,
                columns=columns,
                key=(key,) if isinstance(key, str) else key,
                schema=schema,
            )
            self._splits = [
                _Split(f"{self._relation.name}[{i}]", *r) for i, r in enumerate(self._ranges(connection, splits))
            ]
        self._page_rows = page_rows or (TABLE_PAGE_ROWS if query is None else QUERY_PAGE_ROWS)

    def __repr__(self) -> str:
        return f"SqlSource({self._relation.database.name}, {self._relation.name})"

    # -- life

    _read_from = ""
    """The split of the last batch."""

    def open(self) -> None:
        super().open()
        self._left = self._splits[self.context.subtask_index :: self.context.parallelism]
        """The first one is being read."""
        self._page: _Page | None = None
        self._reader = PageReader(self._relation, lambda seconds: self._background.pause(seconds))
        self._background: Background[_Page] = Background(
            f"{self.context.name}-sql", self.context.wake, self._reader.close
        )

    def close(self) -> None:
        if hasattr(self, "_background"):
            self._background.close()

    # -- state

    def offset(self) -> dict[str, Any]:
        """Of a query only that it is one: its text may be written in another way."""
        return {
            "key": list(self._relation.key),
            "splits": [split.to_plain() for split in self._left],
            "relation": self._relation.name,
        }

    def seek(self, offset: dict[str, Any]) -> None:
        self._left = self._recorded([offset])

    def rescale(self, offsets: Sequence[dict[str, Any]]) -> None:
        self._left = self._recorded(offsets)[self.context.subtask_index :: self.context.parallelism]

    def _recorded(self, offsets: Sequence[dict[str, Any]]) -> list[_Split]:
        for offset in offsets:
            if tuple(offset["key"]) != self._relation.key:
                raise OffsetMismatch(
                    f"source {self.context.name!r} was checkpointed with the key {', '.join(offset['key'])} and now "
                    f"has {', '.join(self._relation.key)}: start it with the key it had"
                )
            if (was := offset.get("relation", self._relation.name)) != self._relation.name:
                raise OffsetMismatch(
                    f"source {self.context.name!r} was checkpointed while it read {was}, and reads "
                    f"{self._relation.name} now: how far it had come there says nothing of the rows here. Keep what it "
                    "reads (a view may have the name that a table had), or give the source another name, to read all"
                )
        return [_Split.from_plain(each) for offset in offsets for each in offset["splits"]]

    # -- records

    def source_schema(self) -> pa.Schema:
        return self._relation.schema

    def current_splits(self) -> Collection[str]:
        """All that this subtask has left: those not begun hold the watermark back, as their rows may be older."""
        return [split.name for split in self._left]

    def _split_read(self) -> str:
        return self._read_from

    def read(self, max_records: int) -> pa.RecordBatch | Literal[SourceState.END] | None:
        while self._left:
            if self._page is None:
                self._page = self._background.take()
                if self._page is None:
                    if not self._background.is_busy:
                        self._fetch(self._left[0], self._left[0].low)
                    return None
                self._fetch_behind(self._page)
            split, page = self._left[0], self._page
            batch, page.rest = page.rest.slice(0, max_records), page.rest.slice(max_records)
            if batch.num_rows:
                split.low = self._relation.key_of(batch, batch.num_rows - 1)
            if not page.rest.num_rows:
                self._page = None
                if page.is_last:
                    del self._left[0]
            if batch.num_rows:
                self._read_from = split.name
                return batch.select(self._relation.schema.names)
        return END

    def _fetch_behind(self, page: _Page) -> None:
        """While a page is emitted the next one is read."""
        if not page.is_last:
            self._fetch(self._left[0], self._relation.key_of(page.rest, page.rest.num_rows - 1))
        elif len(self._left) > 1:
            self._fetch(self._left[1], self._left[1].low)

    def _fetch(self, split: _Split, low: Key | None) -> None:
        high, rows, reader = split.high, self._page_rows, self._reader

        def read() -> _Page:
            page = reader.page(low, high, rows)
            return _Page(page, is_last=page.num_rows < rows)

        self._background.begin(read)

    # -- how it is split

    def _ranges(self, connection: Connection, splits: int | None) -> list[tuple[Key | None, Key | None]]:
        points = self._split_points(connection, splits)
        return list(zip([None, *points], [*points, None], strict=True))

    def _split_points(self, connection: Connection, splits: int | None) -> list[Key]:
        from sqlalchemy import func, select

        relation = self._relation
        clause = relation.clause()
        keys = [clause.c[name] for name in relation.key]
        if len(keys) == 1 and pa.types.is_integer(relation.read_schema.field(relation.key[0]).type):
            low, high = connection.execute(select(func.min(keys[0]), func.max(keys[0]))).one()
            if low is None:
                return []
            number = splits or min(max((high - low + 1) // _ROWS_PER_SPLIT, 1), _MOST_SPLITS)
            number = min(number, high - low + 1)
            return [(low + (high - low + 1) * part // number - 1,) for part in range(1, number)]
        if splits is None or splits == 1:
            return []
        rows = connection.execute(select(func.count()).select_from(clause)).scalar_one()
        places = sorted({rows * part // splits - 1 for part in range(1, splits)} - {-1})
        return [
            tuple(connection.execute(relation.select(None, None, relation.key).offset(place).limit(1)).one())
            for place in places
        ]


class _Split:
    """A range of the key: low < key <= high. `low` moves as rows are emitted."""

    __slots__ = ("high", "low", "name")

    def __init__(self, name: str, low: Key | None, high: Key | None) -> None:
        self.name, self.low, self.high = name, low, high

    def to_plain(self) -> list[Any]:
        return [self.name, self.low, self.high]

    @classmethod
    def from_plain(cls, plain: list[Any]) -> _Split:
        name, low, high = plain
        return cls(name, None if low is None else tuple(low), None if high is None else tuple(high))


class _Page:
    """What was read of a range, as far as it was not emitted."""

    __slots__ = ("is_last", "rest")

    def __init__(self, rest: pa.RecordBatch, is_last: bool) -> None:
        self.rest, self.is_last = rest, is_last
