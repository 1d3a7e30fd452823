"""The server of these tests, with a table `t`, and how sources are driven without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ....systems.postgresql import pg_url, postgresql

__all__ = ["pg_url", "postgresql"]


@pytest.fixture
def db(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, b text)")
        yield connection
