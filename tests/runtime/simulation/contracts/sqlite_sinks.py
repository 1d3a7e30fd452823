"""Sinks into SQLite: one that is right in each of the four ways, and some with one mistake each."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

from understudy import IdempotentSink, LedgerSink, MarkerMoved, TwoPhaseCommitSink
from understudy.actors.operators.marker import Marker


def connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=0.005, check_same_thread=False)
    db.execute("PRAGMA synchronous = OFF")
    return db


class ToSqlite(LedgerSink):
    takes = "records"

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self) -> None:
        self.db = connect(self.path)
        self.db.execute("CREATE TABLE IF NOT EXISTS rows (id, value)")
        self.db.execute("CREATE TABLE IF NOT EXISTS markers (writer PRIMARY KEY, sequence)")

    def close(self) -> None:
        self.db.close()

    def apply(self, batches: list[Any], marker: Marker) -> None:
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            self.move(marker)
            self.insert([row for batch in batches for row in batch])

    def move(self, marker: Marker) -> None:
        if not marker.after:
            self.db.execute("INSERT OR IGNORE INTO markers VALUES (?, 0)", (marker.writer,))
        values = (marker.sequence, marker.writer, marker.after)
        moved = self.db.execute("UPDATE markers SET sequence = ? WHERE writer = ? AND sequence = ?", values)
        if not moved.rowcount:
            raise MarkerMoved(marker.writer, marker.after)

    def insert(self, rows: list[Any]) -> None:
        self.db.executemany("INSERT INTO rows VALUES (:id, :value)", rows)

    def last_marker(self, writer: str) -> int | None:
        self.db.rollback()  # or it would see what an act has written that was not committed
        row = self.db.execute("SELECT sequence FROM markers WHERE writer = ?", (writer,)).fetchone()
        return None if row is None else row[0]


class MarkerNotCompared(ToSqlite):
    def move(self, marker: Marker) -> None:
        self.db.execute("INSERT OR REPLACE INTO markers VALUES (?, ?)", (marker.writer, marker.sequence))


class TwoActs(ToSqlite):
    """Data first, and the marker in a transaction of its own."""

    def apply(self, batches: list[Any], marker: Marker) -> None:
        self.insert([row for batch in batches for row in batch])
        self.move(marker)


class NeverReadsBack(ToSqlite):
    def last_marker(self, writer: str) -> int | None:
        return None


class AtTheBarrier(ToSqlite):
    """Writes with the snapshot, and not when it is complete."""

    def stage(self, batches: list[Any]) -> Any:
        with self.db:
            self.insert([row for batch in batches for row in batch])
        return None


class MarkerOfTheSink(ToSqlite):
    """One row for the sink in place of one for each writer."""

    def move(self, marker: Marker) -> None:
        super().move(replace(marker, writer=marker.sink))

    def last_marker(self, writer: str) -> int | None:
        self.db.rollback()
        found: int | None = self.db.execute("SELECT max(sequence) FROM markers").fetchone()[0]
        return found


class MarkerRemembered(ToSqlite):
    """As it was meant to be, not as it is."""

    def open(self) -> None:
        super().open()
        self.known: dict[str, int] = {}

    def apply(self, batches: list[Any], marker: Marker) -> None:
        self.known[marker.writer] = marker.sequence
        super().apply(batches, marker)

    def last_marker(self, writer: str) -> int | None:
        return self.known.get(writer) or super().last_marker(writer)


class TwoConnections(ToSqlite):
    """Makes two at once, as each of them may take long."""

    def open(self) -> None:
        with ThreadPoolExecutor(2) as threads:
            self.db, self.spare = threads.map(connect, [self.path] * 2)
        self.db.close()
        super().open()


class Prepared(TwoPhaseCommitSink[str]):
    """Transactions are rows of a table of their own until they are committed."""

    takes = "records"

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self) -> None:
        self.db = connect(self.path)
        self.db.execute("CREATE TABLE IF NOT EXISTS rows (id, value)")
        self.db.execute("CREATE TABLE IF NOT EXISTS prepared (name PRIMARY KEY, data)")
        self.begun = 0
        super().open()

    def close(self) -> None:
        super().close()
        self.db.close()

    def begin_transaction(self) -> str:
        self.begun += 1
        self.kept: list[Any] = []
        return f"{self.context.attempt_id}-{self.begun}"

    def write(self, transaction: str, batch: Any) -> None:
        self.kept += batch

    def pre_commit(self, transaction: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO prepared VALUES (?, ?)", (transaction, json.dumps(self.kept)))

    def commit(self, transaction: str) -> None:
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            self.move(transaction)
            self.db.execute("DELETE FROM prepared WHERE name = ?", (transaction,))

    def move(self, transaction: str) -> None:
        for (data,) in self.db.execute("SELECT data FROM prepared WHERE name = ?", (transaction,)).fetchall():
            self.db.executemany("INSERT INTO rows VALUES (:id, :value)", json.loads(data))

    def abort(self, transaction: str) -> None:
        self.kept = []


class NamedByNumber(Prepared):
    """Its transactions have the names of those of other subtasks."""

    def begin_transaction(self) -> str:
        super().begin_transaction()
        return f"transaction-{self.begun}"


class DeletedAfterwards(Prepared):
    """What is prepared goes in an act of its own."""

    def commit(self, transaction: str) -> None:
        self.move(transaction)
        self.db.execute("DELETE FROM prepared WHERE name = ?", (transaction,))


class CommitPassedOver(Prepared):
    def commit(self, transaction: str) -> None:
        with suppress(Exception):
            super().commit(transaction)


class CleansUp(Prepared):
    """Begins with an empty table of what is prepared."""

    def open(self) -> None:
        db = connect(self.path)
        with suppress(sqlite3.OperationalError):
            db.execute("DELETE FROM prepared")
        db.close()
        super().open()


class PreparedInMemory(Prepared):
    """Makes durable with the commit what has to be durable before."""

    def pre_commit(self, transaction: str) -> None:
        self.later = {transaction: self.kept}

    def move(self, transaction: str) -> None:
        rows = getattr(self, "later", {}).pop(transaction, [])
        self.db.executemany("INSERT INTO rows VALUES (:id, :value)", rows)


class Upserting(IdempotentSink):
    takes = "records"
    key = "id"

    def __init__(self, path: str) -> None:
        self.path = path

    def open(self) -> None:
        self.db = connect(self.path)
        self.db.execute("CREATE TABLE IF NOT EXISTS rows (id PRIMARY KEY, value)")

    def close(self) -> None:
        self.db.close()

    def upsert(self, batch: Any) -> None:
        self.db.execute("BEGIN")
        self.db.executemany("INSERT OR REPLACE INTO rows VALUES (:id, :value)", batch)
        self.db.execute("COMMIT")


class Forgetful(Upserting):
    """Lets the barrier pass before it writes."""

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        pass
