"""SqlTable and SqlLookupJoin: each record with the rows of a table in a database that have its key at that moment.

An async operator: records wait for the database together, whose keys go in one statement, on threads of its own; the
task goes on. Found rows, and keys without any, are kept for a while (`LookupCache`), so what a record meets may be as
old as that. A record that was not in a checkpoint is looked up again after a restart, and may meet a newer row.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ....actors.async_calls.settings import AsyncSettings
from ....actors.context import Clock
from ....actors.flow.records import mapping_of
from ....actors.operators.collector import Collector
from ....actors.operators.operator import Operator, Takes
from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import whole_setting
from ....messages import MissingColumn, make_rows
from ....messages.shown import shown
from ...system.shared_outcome import outcome_of
from .database import Database, driver_of
from .relation import Key, Relation
from .texts import batch_of_csv

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

log = logging.getLogger(__name__)

Rows = list[tuple[Any, ...]]
_MOST_KEYS = 500
"""Of one statement, where keys are parameters each."""


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table, or a query, of the database at `url`, to be looked up: `stream.lookup_join(SqlTable(...), on="id")`.

    `columns`: all when None. `cache_rows`: of how many keys the rows are kept, 0: of none; for `cache_ms`, and that
    there are none for `miss_ms`. `connections`: statements that run at a time, in each subtask.
    """

    url: str | Callable[[], Engine]
    table: str | None = None
    query: str | None = None
    columns: Sequence[str] | None = None
    db_schema: str | None = None
    cache_rows: int = 10_000
    cache_ms: int = 60_000
    miss_ms: int = 10_000
    connections: int = 4
    retry_ms: int = RETRY_MS
    statement_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise ValueError("SqlTable: wanted table=... or query=..., one of both")
        for name, least in (("cache_rows", 0), ("cache_ms", 0), ("miss_ms", 0), ("connections", 1)):
            whole_setting(name, getattr(self, name), least)

    def __repr__(self) -> str:
        return f"SqlTable({self.table or 'a query'})"


class LookupCache:
    """Rows of keys, as long as they count; the key that was not asked for the longest goes first."""

    def __init__(self, clock: Clock, most: int, keep_ms: float, miss_ms: float) -> None:
        self._clock, self._most, self._keep_ms, self._miss_ms = clock, most, keep_ms, miss_ms
        self._kept: OrderedDict[Key, tuple[float, Rows]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Rows | None:
        """None: it is not known; []: there are none."""
        found = self._kept.get(key)
        if found is None:
            return None
        until_ms, rows = found
        if self._clock.now_ms() >= until_ms:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return rows

    def put(self, key: Key, rows: Rows) -> None:
        keep_ms = self._keep_ms if rows else self._miss_ms
        if not self._most or not keep_ms:
            return
        self._kept[key] = (self._clock.now_ms() + keep_ms, rows)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


class SqlLookupJoin(Operator):
    """`keys` of the records, `table_keys` of the table, one by one. See `DataStream.lookup_join`."""

    takes: ClassVar[Takes] = "records"
    async_settings = AsyncSettings(batch_size=500)

    def __init__(
        self,
        table: SqlTable,
        keys: Sequence[str],
        table_keys: Sequence[str],
        how: Literal["inner", "left"],
        suffix: str,
    ) -> None:
        self._keys, self._how, self._suffix, self._settings = tuple(keys), how, suffix, table
        database = Database(table.url, retry_ms=table.retry_ms, statement_timeout_ms=table.statement_timeout_ms)
        with database.connect_to_look() as connection, database.translated("look at the table"):
            self._relation = Relation(
                database,
                connection,
                table=table.table,
                query=table.query,
                db_schema=table.db_schema,
                columns=table.columns,
                key=table_keys,
                schema=None,
                is_read_by_key=False,
            )
        self._names = [name for name in self._relation.schema.names if name not in self._relation.key or not self._same]

    @property
    def _same(self) -> bool:
        return self._keys == self._relation.key

    async def open(self) -> None:
        settings, clock = self._settings, self.context.clock
        self._cache = LookupCache(clock, settings.cache_rows, settings.cache_ms, settings.miss_ms)
        self._asked: dict[Key, asyncio.Future[Rows]] = {}
        self._has_named_a_key = False
        self._threads = ThreadPoolExecutor(settings.connections, f"{self.context.name}-lookup")
        self._idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()

    async def close(self) -> None:
        if hasattr(self, "_threads"):
            self._threads.shutdown(wait=False, cancel_futures=True)
            while (connection := self._take_idle()) is not None:
                connection.close()

    async def process_batch(self, records: list[Any], out: Collector) -> None:
        lefts = [mapping_of(record) for record in records]
        keys = [self._key_of(left) for left in lefts]
        found = await self._find([key for key in keys if None not in key])
        for left, key in zip(lefts, keys, strict=True):
            for joined in self._joined(left, found.get(key, [])):
                out.collect(joined)

    # -- one record

    def _key_of(self, left: dict[str, Any]) -> Key:
        try:
            return tuple(left[name] for name in self._keys)
        except KeyError as error:
            raise MissingColumn(error.args[0], left) from None

    def _joined(self, left: dict[str, Any], rows: Rows) -> Iterable[Any]:
        """A NULL key meets no row."""
        if not rows and self._how == "left":
            rows = [(None,) * len(self._names)]
        names = (*left, *(name if name not in left else f"{name}{self._suffix}" for name in self._names))
        return make_rows(names, [(*left.values(), *row) for row in rows])

    # -- many keys

    async def _find(self, keys: Sequence[Key]) -> dict[Key, Rows]:
        """From the cache, from what another call asks for already, or from the database."""
        found: dict[Key, Rows] = {}
        waiting: dict[Key, asyncio.Future[Rows]] = {}
        new: list[Key] = []
        for key in dict.fromkeys(keys):
            if (rows := self._cache.get(key)) is not None:
                found[key] = rows
            elif key in self._asked:
                waiting[key] = self._asked[key]
            else:
                new.append(key)
        if new:
            found |= await self._ask(new)
        for key, future in waiting.items():
            found[key] = await outcome_of(future)
        return found

    async def _ask(self, keys: list[Key]) -> dict[Key, Rows]:
        loop = asyncio.get_running_loop()
        promised = {key: loop.create_future() for key in keys}
        self._asked |= promised
        try:
            found = await loop.run_in_executor(self._threads, self._read, keys)
        except BaseException as error:
            for future in promised.values():
                is_error = isinstance(error, Exception)
                future.set_exception(error if is_error else ConnectionError("the call was cancelled"))
                future.exception()  # perhaps nobody waits for it
            raise
        finally:
            for key in keys:
                self._asked.pop(key, None)
        for key, future in promised.items():
            rows = found.setdefault(key, [])
            self._cache.put(key, rows)
            future.set_result(rows)
        return found

    def _read(self, keys: list[Key]) -> dict[Key, Rows]:
        """On a thread. Raises SqlErrors."""
        database = self._relation.database

        def read() -> Rows:
            connection = self._take_idle() or database.engine.connect()
            try:
                found = _rows_of_keys(self._relation, connection, keys)
                connection.rollback()
            except BaseException:
                connection.close()
                raise
            self._idle.put(connection)
            return found

        names = self._relation.read_schema.names
        places = [names.index(name) for name in self._names]
        key_places = [names.index(name) for name in self._relation.key]
        by_key: dict[Key, Rows] = {}
        for row in database.patiently(read, f"look up rows of {self._relation.name}"):
            key = tuple(row[place] for place in key_places)
            by_key.setdefault(key, []).append(tuple(row[place] for place in places))
        if not self._has_named_a_key:
            self._name_a_key_of_no_record(by_key, keys)
        return by_key

    def _name_a_key_of_no_record(self, found: Iterable[Key], asked: Sequence[Key]) -> None:
        """The database takes some keys for equal that are not: its rows are found by no record. Once."""
        wanted = set(asked)
        other = next((key for key in found if key not in wanted), None)
        if other is None:
            return
        self._has_named_a_key = True
        log.warning(
            "operator %r: for keys of records such as %s the database has found rows of the key %s, which is another "
            "key here, so these records meet no row. Give records the keys that the table has, of the same type and "
            "spelling, as with .map(...) before lookup_join",
            self.context.name,
            shown(next((key for key in asked if key not in set(found)), asked[0])),
            shown(other),
        )

    def _take_idle(self) -> Connection | None:
        """Never waits: whoever has a connection gives none back when it fails."""
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return None


def _rows_of_keys(relation: Relation, connection: Connection, keys: list[Key]) -> Rows:
    if relation.database.is_postgresql:
        return _by_arrays(relation, driver_of(connection), keys)
    from sqlalchemy import tuple_

    rows: Rows = []
    for start in range(0, len(keys), _MOST_KEYS):
        part = keys[start : start + _MOST_KEYS]
        asked = relation.select(None, None)
        columns = [asked.selected_columns[name] for name in relation.key]
        single = columns[0].in_([key[0] for key in part]) if len(columns) == 1 else tuple_(*columns).in_(part)
        rows += [tuple(row) for row in connection.execute(asked.where(single)).fetchall()]
    return rows


def _by_arrays(relation: Relation, driver: Any, keys: list[Key]) -> Rows:
    """One statement for any number of keys: an array for each column of the key."""
    from psycopg import sql

    arrays = [
        sql.SQL("{}::{}[]").format(sql.Literal(list(values)), sql.SQL(kind))
        for values, kind in zip(zip(*keys, strict=True), relation.key_types, strict=True)
    ]
    names = [sql.Identifier(name) for name in relation.key]
    if len(names) == 1:
        condition = sql.SQL("{} = ANY({})").format(names[0], arrays[0])
    else:
        condition = sql.SQL("({}) IN (SELECT * FROM unnest({}))").format(
            sql.SQL(", ").join(names), sql.SQL(", ").join(arrays)
        )
    statement = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT (FORMAT csv)").format(
        sql.SQL(", ").join(map(sql.Identifier, relation.read_schema.names)), relation.identifier, condition
    )
    with relation.database.deadline(driver), driver.cursor() as cursor, cursor.copy(statement) as copy:
        data = b"".join(copy)
    batch = batch_of_csv(data, relation.read_schema)
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
