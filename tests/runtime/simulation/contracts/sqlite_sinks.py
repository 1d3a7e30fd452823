"""Sinks into SQLite: one that is right in each of the three ways, and some with one mistake each."""

from __future__ import annotations

import sqlite3
from typing import Any

from understudy import IdempotentSink, LedgerSink, MarkerMoved
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
