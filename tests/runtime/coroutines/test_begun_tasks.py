"""Tasks that a record has begun: where that was, and who waits for them at the end of the data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from understudy.runtime.coroutines.begun_tasks import BegunTask, LeftTasks


class Ending(set[Any]):
    """Tasks that end as soon as somebody has looked whether there are any."""

    end: Callable[[], None]

    def __len__(self) -> int:
        count = super().__len__()
        if count:
            self.end()
        return count


def test_a_task_that_ends_while_it_is_asked_for_wakes() -> None:
    """On the event loop's thread, between two steps of the task's."""
    wakes: list[None] = []

    async def ask() -> bool:
        left = LeftTasks(asyncio.get_running_loop(), "Test.process", lambda: wakes.append(None))
        begun = BegunTask(asyncio.create_task(asyncio.sleep(3600)), ask.__code__, 0)
        left.add([begun])
        left._left = tasks = Ending(left._left)
        tasks.end = lambda: left._is_done(begun, None)
        said = left.awaits(60_000)
        left.close()
        return said

    is_awaited = asyncio.run(ask())
    assert wakes or not is_awaited
