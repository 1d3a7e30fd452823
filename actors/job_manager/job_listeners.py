"""JobListeners: who is notified of a job's events, as a client that waits for its end. A part of the JobManager.

A listener that has stopped is forgotten. One that cannot be reached may be a client that stands still, or whose network
is down: it is tried again, and forgotten after GONE_MS; else the JobManager would look for each client that ever was.
"""

from __future__ import annotations

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
    away_since_ms: float
    lost_ms: float


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
            ref = self._context.actor_of(address)
            self._there[address] = _Listener(ref, float("-inf"), float("-inf"))
            self._context.watch(ref)

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
        if end.may_be_there and now_ms - found.away_since_ms < GONE_MS:
            self._context.watch(found.ref)
        else:
            del self._there[end.address]
