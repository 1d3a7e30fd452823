"""Where undeliverable messages end: counted by reason, and the last few kept as text to look at."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum

logger = logging.getLogger(__name__)


class DeadLetterReason(Enum):
    """Why a message was not delivered."""

    STOPPED = "the actor has stopped"
    UNKNOWN = "no actor of that name"
    UNREACHABLE = "its process cannot be reached"
    UNSENT = "the connection to its process takes no more"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be delivered."""

    address: str
    message: str
    """The message's `repr`, shortened; the message itself is not kept alive."""
    reason: DeadLetterReason


class DeadLetters:
    """Counts what could not be delivered. Any thread may add."""

    def __init__(self, keep: int = 32) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[DeadLetterReason] = Counter()
        self._recent: deque[DeadLetter] = deque(maxlen=keep)

    @property
    def count(self) -> int:
        """How many there were since the system started."""
        with self._lock:
            return self._counts.total()

    @property
    def by_reason(self) -> dict[DeadLetterReason, int]:
        with self._lock:
            return dict(self._counts)

    @property
    def recent(self) -> tuple[DeadLetter, ...]:
        """The last few, oldest first."""
        with self._lock:
            return tuple(self._recent)

    def add(self, address: str, message: object, reason: DeadLetterReason) -> None:
        letter = DeadLetter(address, _describe(message), reason)
        with self._lock:
            self._counts[reason] += 1
            self._recent.append(letter)
        logger.debug("dead letter for %s (%s): %s", letter.address, reason.value, letter.message)


def _describe(message: object) -> str:
    try:
        return f"{message!r:.200}"
    except Exception:  # noqa: BLE001  (a message's own __repr__ must not turn a tell into an error)
        return f"a {type(message).__name__}"
