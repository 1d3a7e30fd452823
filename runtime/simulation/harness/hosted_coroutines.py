"""HostedCoroutines: the event loop of one attempt of a harness. Coroutines run when the attempt lets them, in its time.

It is the loop of a simulated process, alone in a world of its own: `asyncio.sleep`, timeouts and tasks work, sockets
and threads do not. Who waits for time that does not pass waits for ever.
"""

from __future__ import annotations

import heapq
from collections.abc import Coroutine
from typing import Any, Final

from ..world.call_loop import SimulatedCallLoop
from ..world.world import World
from .harness_clock import HarnessClock

_MOST_EVENTS: Final = 1_000_000
"""A batch may be large; what needs more events than these within a millisecond repeats itself without end."""


class _World(World):
    """One process, and nobody who lets time pass."""

    def next_ms(self) -> float | None:
        """When something can happen; None: never, by itself."""
        if self._soon:
            return self.now_ms
        while self._later and self._later[0][2].is_cancelled:
            heapq.heappop(self._later)
        return self._later[0][0] if self._later else None


class HostedCoroutines(SimulatedCallLoop):
    """A CallLoop on the harness's thread, which nothing else runs on meanwhile."""

    def __init__(self, clock: HarnessClock) -> None:
        self._clock = clock
        self._world = _World(seed=0, stuck_events=_MOST_EVENTS)
        self._world.now_ms = clock.now_ms()
        super().__init__(self._world.process("harness"))
        self.chance = self._world.chance("coroutines")

    def _complete(self, coroutine: Coroutine[Any, Any, None], within_ms: float) -> bool:
        """Time passes until it has ended."""
        task = self._process.loop.create_task(coroutine)
        self._run_until(task.done, within_ms)
        self._clock.set(self._world.now_ms)
        if not task.done():
            task.cancel()
            self.run_ready()
            return False
        task.result()
        return True

    def run_ready(self) -> None:
        """Run all that can run at this time."""
        self._run_until(lambda: False, 0)

    def next_ms(self) -> float | None:
        """When more can run, by the harness's clock; None: never, by itself."""
        return self._world.next_ms()

    def discard(self) -> None:
        """The process is gone, with whatever it was doing."""
        self._process.kill("the attempt is over")

    def _run_until(self, is_over: Any, within_ms: float) -> None:
        world = self._world
        world.now_ms = max(world.now_ms, self._clock.now_ms())
        world.run_until(is_over, world.now_ms + within_ms)
