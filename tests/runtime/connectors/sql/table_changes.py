"""A table whose changes are read, and what tests do with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from understudy.runtime.connectors.sql.changes.lsn import lsn_of
from understudy.runtime.connectors.sql.changes.postgres_changes import PostgresChanges

from .driving import Driven


def source(url: str, table: str = "t", **settings: Any) -> PostgresChanges:
    return PostgresChanges(url, table, **{"slot": url.rpartition("/")[2], **settings})


def short(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["kind"], row["id"], row["b"]) for row in rows]


def confirmed(db: psycopg.Connection[Any]) -> int:
    asked = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = current_database()"
    row = db.execute(asked).fetchone()
    return 0 if row is None or row[0] is None else lsn_of(row[0])  # a slot that is being made has none yet


def streaming(driven: Driven) -> None:
    """The table, in which there is nothing yet, was read."""
    driven.until(lambda: (driven.source.offset() or {}).get("reading") is False, "the end of the snapshot")


def run(db: psycopg.Connection[Any], *statements: str) -> None:
    """One transaction."""
    with db.transaction():
        for statement in statements:
            db.execute(statement)  # type: ignore[arg-type, unused-ignore]


@contextmanager
def reading(url: str, db: psycopg.Connection[Any], **settings: Any) -> Iterator[Driven]:
    """A source of the table, which has given its first row."""
    with Driven(source(url, **settings)) as driven:
        run(db, "INSERT INTO t VALUES (1, 'a')")
        driven.take(1)
        yield driven
