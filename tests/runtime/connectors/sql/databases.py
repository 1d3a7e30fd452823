"""The databases of these tests, asked from outside: SQLite's in a file, PostgreSQL's of the fixture `pg_url`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg


def asked(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last one of these statements, each a transaction of its own."""
    is_lite = url.startswith("sqlite:///")
    connection: Any = (
        sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        if is_lite
        else psycopg.connect(url, autocommit=True)
    )
    rows = []
    with closing(connection):
        for statement in statements:
            cursor = connection.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
    return rows


def lite(folder: Path, *statements: str) -> str:
    """The URL of the SQLite database of this folder, in which these statements were run."""
    url = f"sqlite:///{folder / 'db'}"
    asked(url, *statements)
    return url
