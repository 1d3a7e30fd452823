"""PostgresChanges: the changes of a PostgreSQL table as a source. Flink: the CDC source of PostgreSQL.

A thread reads (`ChangeReader`); here is what checkpoints need: the position behind the last batch that was emitted is
the offset, and the server may let go of what stands before it only when its checkpoint is complete.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .....actors.operators.patience import RETRY_MS
from .....actors.operators.source import FromSplit, Source
from .....messages import CheckpointId
from ...names import one_name
from ..background import Closed
from ..database import STATEMENT_TIMEOUT_MS, Database, driver_of
from ..errors import NotReplicable
from ..relation import Relation
from .change_reader import ChangeReader
from .change_rows import ChangeRows, OnUnchanged, change_schema
from .changed_table import ChangedTable
from .position import Position

if TYPE_CHECKING:
    from sqlalchemy import Engine

_BATCH_ROWS, _PAGE_ROWS = 8192, 65_536
_MOST_BATCHES = 8
"""The number that is read ahead."""
_JOIN_S = 5.0


class PostgresChanges(Source):
    """The rows of `table`, then each change of it, in the order of commits: docs/connectors/postgres-cdc.md.

    `slot`, `publication`: of the server, made where they are missing. One job reads a slot. Whoever will not start
    the job again drops the slot, else the server keeps its log for it.
    `snapshot`: whether the table is read first; else changes come from where the slot stands.
    `key`: the primary key when None. `unchanged`: what becomes of a large value that an update left as it was and the
    server does not send: "fail", or "null".
    One subtask reads, whatever the parallelism is. Raises SqlErrors when it is made: it asks for the columns.
    """

    bounded = False
    _how_to_bound = ""
    gives_changes = True

    def __init__(
        self,
        url: str | Callable[[], Engine],
        table: str,
        *,
        slot: str,
        publication: str | None = None,
        db_schema: str | None = None,
        columns: Sequence[str] | None = None,
        key: str | Sequence[str] | None = None,
        snapshot: bool = True,
        unchanged: OnUnchanged = "fail",
        batch_rows: int = _BATCH_ROWS,
        retry_ms: int = RETRY_MS,
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
    ) -> None:
        if unchanged not in ("fail", "null"):
            raise ValueError(f"unchanged: wanted 'fail' or 'null', found {unchanged!r}")
        one_name("table", table, "the name of a table")
        if not slot or not all(c.islower() or c.isdigit() or c == "_" for c in slot) or len(slot) > 63:
            raise ValueError(f"slot: wanted at most 63 lower-case letters, digits and underscores, found {slot!r}")
        database = Database(url, retry_ms=retry_ms, statement_timeout_ms=statement_timeout_ms)
        if not database.is_postgresql:
            raise NotReplicable(
                f"{database.name}: changes come from PostgreSQL only, found {database.engine.dialect.name}"
            )
        with database.connect_to_look() as connection, database.translated("look at the table"):
            relation = Relation(
                database,
                connection,
                table=table,
                query=None,
                db_schema=db_schema,
                columns=columns,
                key=(key,) if isinstance(key, str) else key,
                schema=None,
                needs_key=snapshot,
            )
            self._table = ChangedTable(relation, slot, publication or f"{slot}_publication")
            self._table.check_no_standby(driver_of(connection))
            self._table.check(driver_of(connection))
            self._table.warn_of_large_values(driver_of(connection))
        self._schema = change_schema(relation.read_schema, relation.name)
        self._takes_all, self._has_snapshot, self._unchanged = columns is None, snapshot, unchanged
        self.batch_rows = batch_rows

    def __repr__(self) -> str:
        return f"PostgresChanges({self._table.relation.database.name}, {self._table.relation.name})"

    # -- life

    def open(self) -> None:
        self._position: Position | None = None
        self._lsns: dict[CheckpointId, int] = {}
        """Of checkpoints that are not complete yet: what may be confirmed with each."""
        self._ready: deque[tuple[pa.RecordBatch | None, Position]] = deque()
        self._has_room = threading.Event()
        self._is_closed = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._reader: ChangeReader | None = None

    def close(self) -> None:
        if not hasattr(self, "_is_closed"):
            return
        self._is_closed.set()
        self._has_room.set()
        if self._thread is not None and self._reader is not None:
            self._thread.join(_JOIN_S / 10)
            if self._thread.is_alive():
                self._reader.interrupt()
                self._thread.join(_JOIN_S)

    # -- state

    def offset(self) -> dict[str, Any] | None:
        return None if self._position is None else self._position.to_plain()

    def seek(self, offset: dict[str, Any] | None) -> None:
        self._position = None if offset is None else Position.from_plain(offset)

    def rescale(self, offsets: Sequence[dict[str, Any] | None]) -> None:
        if self._is_reading:
            self.seek(next((offset for offset in offsets if offset is not None), None))

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        if self._position is not None:
            self._lsns[checkpoint_id] = self._position.lsn

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        done = [each for each in self._lsns if each <= checkpoint_id]
        if done and self._reader is not None:
            self._reader.confirm(max(self._lsns[each] for each in done))
        for each in done:
            del self._lsns[each]

    # -- records

    def source_schema(self) -> pa.Schema:
        return self._schema

    def current_splits(self) -> Collection[str]:
        """The slot is one; a subtask without it holds nothing back."""
        return [self._table.slot] if self._is_reading else []

    def poll(self) -> FromSplit | None:
        if not self._is_reading:
            return None
        if self._thread is None:
            self._start()
        while self._ready:
            batch, self._position = self._ready.popleft()
            self._has_room.set()
            if batch is not None:
                return FromSplit(self._table.slot, batch)
        if self._error is not None:
            raise self._error
        return None

    @property
    def _is_reading(self) -> bool:
        return self.context.subtask_index == 0

    # -- the thread

    def _start(self) -> None:
        relation = self._table.relation
        rows = ChangeRows(relation.read_schema, self._schema, relation.name, self._unchanged)
        self._reader = ChangeReader(
            self._table,
            rows,
            takes_all=self._takes_all,
            has_snapshot=self._has_snapshot,
            batch_rows=self.batch_rows,
            page_rows=max(_PAGE_ROWS, self.batch_rows),
            attempt=(self.context.job_id, self.context.attempt_number),
            emit=self._put,
            pause=self._pause,
        )
        self._thread = threading.Thread(
            target=self._run, args=(self._position,), name=f"{self.context.name}-changes", daemon=True
        )
        self._thread.start()

    def _run(self, position: Position | None) -> None:
        assert self._reader is not None
        try:
            self._reader.run(position)
        except Closed:
            pass
        except BaseException as error:  # noqa: BLE001  (raised again on the task's thread)
            if not self._is_closed.is_set():
                self._error = error
                self.context.wake()
        finally:
            self._reader.close()

    def _put(self, batch: pa.RecordBatch | None, position: Position) -> None:
        while len(self._ready) >= _MOST_BATCHES:
            self._has_room.clear()
            if len(self._ready) >= _MOST_BATCHES:
                self._has_room.wait(1.0)
            self._pause(0.0)
            if self._reader is not None:
                self._reader.tend()
        self._ready.append((batch, position))
        self.context.wake()

    def _pause(self, seconds: float) -> None:
        if self._is_closed.wait(seconds):
            raise Closed
