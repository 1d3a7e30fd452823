"""The databases of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ....systems.postgresql import pg_url, postgresql
from .databases import lite

__all__ = ["pg_url", "postgresql"]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database of each kind."""
    return lite(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("pg_url"))


@pytest.fixture
def db(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to PostgreSQL's, with a table."""
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, b text)")
        yield connection
