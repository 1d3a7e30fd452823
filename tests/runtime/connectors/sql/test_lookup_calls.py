"""SqlLookupJoin without a task around it: what its calls share."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.operators.collector import Collector
from understudy.runtime.connectors.sql.lookup import SqlLookupJoin, SqlTable

from ..harness import make_context
from .databases import asked, lite


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = lite(tmp_path)
    asked(url, "CREATE TABLE goods (id integer, name varchar(9))", "INSERT INTO goods VALUES (1, 'tea')")
    return url


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[SqlLookupJoin]:
    join = SqlLookupJoin(SqlTable(url, "goods", **settings), ["id"], ["id"], "inner", "_right")
    join.context = make_context()
    await join.open()
    try:
        yield join
    finally:
        await join.close()


async def names_of(join: SqlLookupJoin, *ids: int) -> list[str]:
    out = Collector()
    await join.process_batch([{"id": each} for each in ids], out)
    return [row.name for batch in out.drain() for row in batch]


def test_what_is_not_kept_is_asked_for_again(url: str) -> None:
    async def twice() -> list[str]:
        async with opened(url, cache_rows=0) as join:
            before = await names_of(join, 1, 1)
            asked(url, "UPDATE goods SET name = 'milk'")
            return before + await names_of(join, 1)

    assert asyncio.run(twice()) == ["tea", "tea", "milk"]


class TakenByOthers(queue.SimpleQueue[Any]):
    """Whose last connection another thread takes behind a look at it."""

    def empty(self) -> bool:
        return False

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert not block, "it would wait for a connection that nobody may give back"
        return super().get(block, timeout)


def test_a_call_whose_idle_connection_another_one_has_taken_makes_its_own(url: str) -> None:
    async def once() -> list[str]:
        async with opened(url) as join:
            join._idle = TakenByOthers()
            return await names_of(join, 1)

    assert asyncio.run(once()) == ["tea"]
