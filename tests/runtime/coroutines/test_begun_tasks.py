"""LeftTasks: whoever waits for what records have left running is woken, or does not wait."""

from __future__ import annotations

import asyncio
from typing import Any

from understudy.runtime.coroutines.begun_tasks import BegunTask, LeftTasks
from understudy.state.backends.unit_of_work import UnitOfWork


class EndsAsItIsLookedAt(set[BegunTask]):
    """Holds one that ends on the loop's thread right after the task's thread has first seen that it runs."""

    end: Any = None

    def __bool__(self) -> bool:
        was_there, end = len(self) > 0, self.end
        if end is not None:
            self.end = None
            end()
        return was_there


def test_one_that_ends_as_it_is_looked_at_is_not_waited_for_without_a_wake() -> None:
    async def look() -> tuple[bool, int]:
        wakes: list[None] = []
        left = LeftTasks(asyncio.get_running_loop(), "Test.process", lambda: wakes.append(None))
        begun = BegunTask(asyncio.create_task(asyncio.sleep(0)), UnitOfWork(0), look.__code__, 0)
        left._left = found = EndsAsItIsLookedAt()
        left.add([begun])
        found.end = lambda: left._is_done(begun, None)
        return left.awaits(60_000), len(wakes)

    awaits, wakes = asyncio.run(look())
    assert not awaits or wakes
