"""Several wait for one future; one of them gives up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from understudy.runtime.system.shared_outcome import outcome_of


def test_one_who_gives_up_cancels_nothing_and_the_error_goes_to_the_other() -> None:
    complaints: list[dict[str, Any]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, complaint: complaints.append(complaint))
        asked: asyncio.Future[int] = loop.create_future()
        first, second = (asyncio.ensure_future(outcome_of(asked)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        asked.set_exception(OSError("no database"))
        with pytest.raises(OSError, match="no database"):
            await second
        assert first.cancelled()
        await asyncio.sleep(0)

    asyncio.run(work())
    assert complaints == []


def test_all_get_the_result() -> None:
    async def work() -> list[int]:
        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = [asyncio.ensure_future(outcome_of(asked)) for _ in range(3)]
        asked.set_result(7)
        return await asyncio.gather(*waiting)

    assert asyncio.run(work()) == [7, 7, 7]
