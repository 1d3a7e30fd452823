"""Inbox: what waits for one actor, and what only this process says to it.

Urgent envelopes (about its children) pass the ordinary ones; both kinds keep their order.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

import pykka
from pykka import messages
from pykka._envelope import Envelope

from ...actors.context import Timer

__all__ = ["INTERNAL", "ChildStopped", "Envelope", "Escalated", "Inbox", "Piped", "TimerFired"]


@dataclass(frozen=True, slots=True)
class ChildStopped:
    """A child's cell -> its parent's."""

    name: str


@dataclass(frozen=True, slots=True)
class Escalated:
    """A child's cell -> its parent's: it failed, and that is for your own supervisor to judge."""

    name: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer of this actor is due."""

    timer: Timer
    message: Any


@dataclass(frozen=True, slots=True)
class Piped:
    """A future that this actor waits for is done."""

    future: pykka.Future[Any]
    success: Any
    failure: Any


INTERNAL = (
    ChildStopped,
    Escalated,
    TimerFired,
    Piped,
    messages._ActorStop,
    messages.ProxyCall,
    messages.ProxyGetAttr,
    messages.ProxySetAttr,
)
"""What is said inside one process only."""


class Inbox:
    """Two queues and a door. Any thread may `put`; only the dispatcher takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urgent: deque[Envelope[Any]] = deque()
        self._ordinary: deque[Envelope[Any]] = deque()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    def put(self, envelope: Envelope[Any], *, urgent: bool = False) -> bool:
        """False when the inbox is closed: nobody will ever take it."""
        with self._lock:
            if not self._closed:
                (self._urgent if urgent else self._ordinary).append(envelope)
            return not self._closed

    @property
    def is_empty(self) -> bool:
        """Nothing waits just now."""
        return not (self._ordinary or self._urgent)

    def take(self, *, only_urgent: bool = False) -> Envelope[Any] | None:
        if self._urgent:
            return self._urgent.popleft()
        return self._ordinary.popleft() if self._ordinary and not only_urgent else None

    def close(self) -> list[Envelope[Any]]:
        """Shut the door; what was still waiting."""
        with self._lock:
            self._closed = True
            left = [*self._urgent, *self._ordinary]
            self._urgent.clear()
            self._ordinary.clear()
        return left
