"""ChangeReader: reads a table's snapshot, then its changes, on a thread of its own, and connects again when it has to.

Each batch that it gives comes with the position behind it. It knows nothing of checkpoints: the source says what it may
confirm to the server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from .....actors.flow.changelog import AFTER, BEFORE, DELETE, INSERT
from ..database import shut
from ..errors import ChangesLost, NotReplicable
from ..readers import copied_page
from .change_rows import TRUNCATED, ChangeRows, Layout
from .changed_table import ChangedTable
from .lsn import lsn_of, lsn_text
from .pgoutput import UNCHANGED, Begin, Commit, Delete, Insert, RelationMessage, Texts, Truncate, Update, decode
from .position import Position
from .replication_stream import ReplicationStream, application_name

log = logging.getLogger(__name__)

_WAIT_S = 0.05
"""How long the end of the attempt, or news to confirm, may go unnoticed while nothing comes."""
_AGAIN_S = 0.2
_LOOK_S = 10.0
"""How often to look, while nothing comes, whether it could."""

Emit = Callable[[pa.RecordBatch | None, Position], None]


class ChangeReader:
    """`emit(batch, position)` may wait; it and `pause(seconds)` raise when the attempt has ended."""

    def __init__(
        self,
        table: ChangedTable,
        rows: ChangeRows,
        *,
        takes_all: bool,
        has_snapshot: bool,
        batch_rows: int,
        page_rows: int,
        attempt: tuple[str, int],
        emit: Emit,
        pause: Callable[[float], Any],
    ) -> None:
        self._table, self._rows, self._takes_all, self._has_snapshot = table, rows, takes_all, has_snapshot
        self._relation, self._database = table.relation, table.relation.database
        self._batch_rows, self._page_rows, self._attempt = batch_rows, page_rows, attempt
        self._emit_to, self._pause = emit, pause
        self._position: Position | None = None
        """Behind what was emitted."""
        self._now: Position
        """Behind the last message."""
        self._opened: list[Any] = []
        """psycopg's connections."""
        self._confirmed = 0
        self._stream: ReplicationStream | None = None
        self._control: Any = None

    def run(self, position: Position | None) -> None:
        """Until something is raised. None: from the beginning."""
        import psycopg

        self._position = position
        while True:
            try:
                self._database.patiently(self._connect, f"follow the changes of {self._relation.name}", self._pause)
                self._follow()
            except psycopg.Error as error:
                raise_it = self._database.meaning(error, f"follow the changes of {self._relation.name}")
                if isinstance(error, psycopg.errors.UndefinedObject):
                    raise self._no_publication(error) from error
                if not getattr(raise_it, "may_pass", False):
                    raise raise_it or error from error
                log.warning("%s: the stream of changes has ended: %s", self._database.name, str(error).strip())
            finally:
                self.close()
            self._rows.clear()
            self._pause(_AGAIN_S)

    def confirm(self, lsn: int) -> None:
        """From any thread: nothing before it will be needed again."""
        self._confirmed = max(self._confirmed, lsn)
        if (stream := self._stream) is not None:
            stream.confirm(lsn)

    def tend(self) -> None:
        """While `emit` waits: answer the server."""
        if self._stream is not None:
            self._stream.tend()

    def interrupt(self) -> None:
        """From any thread: whatever waits for the server ends."""
        for connection in list(self._opened):
            shut(connection)

    def close(self) -> None:
        self._stream = self._control = None
        while self._opened:
            self._opened.pop().close()

    # -- connections

    def _connect(self) -> None:
        """Everything up to the first message; begins again from `self._position` when it is called again."""
        import psycopg

        self.close()
        table, (job_id, attempt) = self._table, self._attempt
        self._control = self._connected()
        if in_the_way := table.standby_in_the_way(self._control, is_resumed=self._position is not None):
            raise psycopg.OperationalError(in_the_way)
        table.check(self._control)
        table.settle_publication(self._control)
        self._collations = table.collations(self._control)
        self._qualified = table.qualified(self._control)
        state = table.slot_state(self._control)
        stream = self._new_stream()
        system = str(stream.ask("IDENTIFY_SYSTEM")["systemid"])
        if self._position is None:
            confirmed = self._made_slot(stream) if state is None else state.confirmed
            self._position = Position(system, confirmed, reading=self._has_snapshot)
        else:
            table.check_position(state, system, self._position)
        if self._position.table:
            table.check_same(self._control, self._position.table)
        else:
            self._position = replace(self._position, table=table.oid(self._control))
        if self._position.published:
            table.check_still_published(self._control, self._position.published)
        else:
            self._position = replace(self._position, published=table.published(self._control))
        table.take_over(self._control, state, job_id, attempt, self._pause)
        if self._position.reading:
            self._read_table()
        self._stream = stream
        stream.start(table.slot, table.publication, self._position.lsn)
        stream.confirm(self._confirmed)

    def _connected(self) -> Any:
        import psycopg

        options = "-c timezone=UTC -c datestyle=ISO -c bytea_output=hex -c intervalstyle=postgres"
        self._opened.append(psycopg.connect(self._database.conninfo, autocommit=True, options=options))
        self._database.note_connection()
        return self._opened[-1]

    def _new_stream(self) -> ReplicationStream:
        stream = ReplicationStream(self._database.conninfo, application_name(*self._attempt))
        self._opened.append(stream.connection)
        return stream

    def _made_slot(self, stream: ReplicationStream) -> int:
        log.info(
            "%s: making slot %s, when the transactions that run now have ended", self._database.name, self._table.slot
        )
        made = stream.ask(f"CREATE_REPLICATION_SLOT \"{self._table.slot}\" LOGICAL pgoutput (SNAPSHOT 'nothing')")
        return lsn_of(str(made["consistent_point"]))

    def _no_publication(self, error: BaseException) -> NotReplicable:
        return NotReplicable(
            f"{self._database.name}: {str(error).strip()}: the publication {self._table.publication!r} was "
            "made after slot "
            f"{self._table.slot!r}, or dropped since. Drop the slot, and start the job without state"
        )

    # -- the table

    def _read_table(self) -> None:
        """What is left of the snapshot, under a new one. Exported with a slot of its own, it has exactly the
        transactions whose commits stand before the slot's consistent point: the very rule by which slots send them.
        """
        assert self._position is not None
        position = self._position.interrupted() if self._position.ranges else self._position
        connection, lsn = self._snapshot()
        position = position.reading_at(lsn)
        while True:
            page = copied_page(self._relation, connection, position.last_key, None, self._page_rows)
            for start in range(0, page.num_rows, self._batch_rows):
                rows = page.slice(start, self._batch_rows)
                position = replace(position, last_key=self._relation.key_of(rows, rows.num_rows - 1))
                self._emit(self._rows.read(rows, lsn), position)
            if page.num_rows < self._page_rows:
                break
        connection.close()
        self._emit(None, position.read())

    def _snapshot(self) -> tuple[Any, int]:
        """A connection whose transaction sees the table as of an LSN."""
        import psycopg

        _, attempt = self._attempt
        exporting = self._new_stream()
        name = f"{self._table.slot[:40]}_snapshot_{attempt}"
        made = exporting.ask(f"CREATE_REPLICATION_SLOT \"{name}\" TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')")
        connection = self._connected()
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            connection.execute(f"SET TRANSACTION SNAPSHOT '{made['snapshot_name']}'")
        except psycopg.errors.InvalidParameterValue as error:
            raise psycopg.OperationalError(f"the server ended the connection that exported it: {error}") from error
        exporting.close()
        return connection, lsn_of(str(made["consistent_point"]))

    # -- the changes

    def _follow(self) -> None:
        stream = self._stream
        assert stream is not None
        assert self._position is not None
        self._now = self._position
        self._layout: Layout | None = None
        self._begin: Begin | None = None
        look_at = time.monotonic() + _LOOK_S
        while True:
            received = stream.receive(0.0 if len(self._rows) else _WAIT_S)
            if received is None:
                self._flush()
                self._pause(0.0)
                if time.monotonic() >= look_at:
                    self._table.check_same(self._control, self._now.table)
                    self._table.check_still_published(self._control, self._now.published)
                    look_at = time.monotonic() + _LOOK_S
            elif received.data is None:
                if self._begin is None and received.lsn > self._now.lsn:
                    self._now = replace(self._now, lsn=received.lsn, transaction=0, done=0)
            else:
                self._take(decode(received.data))
                if len(self._rows) >= self._batch_rows:
                    self._flush()

    def _flush(self) -> None:
        if len(self._rows):
            self._emit(self._rows.take(), self._now)
        elif self._now != self._position:
            self._emit(None, self._now)

    def _emit(self, batch: pa.RecordBatch | None, position: Position) -> None:
        self._emit_to(batch, position)
        self._position = position

    def _take(self, message: Any) -> None:
        match message:
            case Begin():
                self._begun(message)
            case Commit():
                self._begin = None
                self._now = replace(self._now, lsn=max(message.end_lsn, self._now.lsn), transaction=0, done=0)
            case RelationMessage():
                is_its_own = message.id == self._now.table
                if is_its_own or (message.schema, message.name) == self._qualified:
                    self._table.check_same(self._control, self._now.table)
                if is_its_own:
                    wanted, now = self._relation.read_schema, self._table.columns(self._control)
                    self._layout = Layout(message, wanted, now, self._takes_all)
            case Truncate(relations):
                if self._now.table in relations:
                    self._change(message)
            case Insert() | Update() | Delete():
                if message.relation == self._now.table:
                    self._change(message)

    def _begun(self, begin: Begin) -> None:
        self._begin, self._place = begin, 0
        position = self._now
        is_known = begin.commit_lsn == position.transaction
        if position.transaction and begin.commit_lsn > position.transaction:
            raise ChangesLost(
                f"{self._database.name}: the transaction that was committed at "
                f"{lsn_text(position.transaction)} does not "
                "come again, and the job has a part of it. Start the job without state: it reads the table again"
            )
        self._skipped = position.done if is_known else 0
        if begin.commit_lsn < position.lsn:
            self._skipped = 1 << 62
        if position.ranges and all(begin.commit_lsn >= each.lsn for each in position.ranges):
            position = replace(position, ranges=())
        self._now = replace(position, transaction=begin.commit_lsn, done=self._skipped if is_known else 0)

    def _change(self, change: Insert | Update | Delete | Truncate) -> None:
        assert self._begin is not None, "a change without a transaction"
        self._place += 1
        if self._place <= self._skipped:
            return
        rows = self._rows
        match change:
            case Insert(new=new):
                if self._counts(new):
                    rows.add(INSERT, new, self._layout)
            case Delete(old=old):
                if self._counts(old):
                    rows.add(DELETE, old, self._layout)
            case Truncate():
                self._check_truncate()
                rows.add(TRUNCATED, None, None)
            case Update(old=old, new=new):
                self._update(old, new)
        rows.commit(self._begin.commit_lsn, self._place - 1, self._begin.commit_us)
        self._now = replace(self._now, done=self._place)

    def _update(self, old: Texts | None, new: Texts) -> None:
        """Where its key has changed, the row may have been read under the one key, and not under the other."""
        after = self._counts(new)
        before = old is not None and self._counts(old)
        if before:
            self._rows.add(BEFORE if after else DELETE, old, self._layout)
        if after:
            self._rows.add(INSERT if old is not None and not before else AFTER, new, self._layout, old)

    def _counts(self, row: Texts) -> bool:
        """Whether what was read of the table does not have the change of this row."""
        position, commit = self._now, self._begin
        assert commit is not None
        if all(commit.commit_lsn >= each.lsn for each in position.ranges):
            return True
        if all(commit.commit_lsn < each.lsn for each in position.ranges):
            return False
        key = self._key_of(row)
        found = next(each for each in position.ranges if each.high is None or self._is_upto(key, each.high))
        return commit.commit_lsn >= found.lsn

    def _check_truncate(self) -> None:
        ranges, commit = self._now.ranges, self._begin
        assert commit is not None
        if any(commit.commit_lsn < each.lsn for each in ranges):
            raise ChangesLost(
                f"{self._database.name}: {self._relation.name} was emptied by TRUNCATE while it was read, and "
                "a restart came "
                "in between: what was read before and after does not fit together. Start the job without state"
            )

    def _key_of(self, row: Texts) -> list[str]:
        assert self._layout is not None
        names = self._relation.read_schema.names
        places = [self._layout.places[names.index(name)] for name in self._relation.key]
        values = [None if place is None else row[place] for place in places]
        assert not any(value is None or value is UNCHANGED for value in values), "a key is never null"
        return values  # type: ignore[return-value]

    def _is_upto(self, key: list[str], high: tuple[Any, ...]) -> bool:
        """Compared by the server, in the order of its types and collations."""
        from psycopg import sql

        def row(values: Any) -> Any:
            parts = []
            for name, kind, value in zip(self._relation.key, self._relation.key_types, values, strict=True):
                collation = f" COLLATE {self._collations[name]}" if name in self._collations else ""
                parts.append(sql.SQL("({}::{}{})").format(sql.Literal(value), sql.SQL(kind), sql.SQL(collation)))
            return sql.SQL("ROW({})").format(sql.SQL(", ").join(parts))

        asked = sql.SQL("SELECT {} <= {}").format(row(key), row(high))
        return bool(self._control.execute(asked).fetchone()[0])
