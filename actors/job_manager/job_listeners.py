"""JobListeners: who is notified of a job's events, as a client that waits for its end. A part of the JobManager.

A listener that has stopped is forgotten. One that cannot be reached may be a client that stands still, or whose network
is down: it is looked for at each beat, and forgotten after GONE_MS; else the JobManager would look for each client that
ever was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..actor import Terminated
from ..context import ActorContext, Ref

GONE_MS = 600_000.0
"""Whoever cannot be reached for so long does not come back."""
THERE_MS = 30_000.0
"""Whoever is not lost again for so long was reached in between: no attempt to connect takes longer."""


@dataclass(slots=True)
class _Listener:
    ref: Ref
    is_watched: bool = False
    away_since_ms: float = -math.inf
    lost_ms: float = -math.inf


class JobListeners:
    """Of one job."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._there: dict[str, _Listener] = {}

    def __len__(self) -> int:
        return len(self._there)

    def add(self, address: str) -> None:
        """Raises ValueError for what is no address. Again, it does nothing."""
        if address not in self._there:
            self._there[address] = _Listener(self._context.actor_of(address))
            self.beat()

    def tell(self, message: Any) -> None:
        for each in self._there.values():
            each.ref.tell(message)

    def lost(self, end: Terminated) -> None:
        """It may be a listener of this job."""
        if (found := self._there.get(end.address)) is None:
            return
        now_ms = self._context.clock.now_ms()
        if now_ms - found.lost_ms > THERE_MS:
            found.away_since_ms = now_ms
        found.lost_ms = now_ms
        found.is_watched = False
        if not end.may_be_there or now_ms - found.away_since_ms >= GONE_MS:
            del self._there[end.address]

    def beat(self) -> None:
        """Look again for those that were lost: not sooner, as one that refuses the connection is lost at once."""
        for each in self._there.values():
            if not each.is_watched:
                each.is_watched = True
                self._context.watch(each.ref)
