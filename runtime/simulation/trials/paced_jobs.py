"""PacedJobs: a user's job as its histories run it, by parallelism and pace. Each is made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....messages import VertexId
from ...api.translation import Translation
from .pacing import paced


@dataclass(frozen=True, slots=True)
class Pace:
    """How a job is paced in one history."""

    ahead: VertexId | None = None
    """The source that runs ahead of the others, if one does."""
    is_uneven: bool = False
    """Whether batches of slowed sources end at other records in each history."""


EVEN = Pace()
"""Of runs without faults, which are compared with each other."""


class PacedJobs:
    """`plain(parallelism, number)`: the job as it is, with this parallelism (0: its own). In a history several may be
    submitted, one after the other; it is the one of this number, from 1.
    """

    def __init__(self, plain: Callable[[int, int], Translation]) -> None:
        self._plain = plain
        self._made: dict[tuple[int, int, Pace], Translation] = {}
        self.pause_ms = 0.0

    def slow_down(self, pause_ms: float) -> None:
        """From now on sources pause for so much virtual time after each batch; the job may be another one, too."""
        self.pause_ms = pause_ms
        self._made.clear()

    def job(self, parallelism: int, number: int, pace: Pace = EVEN) -> Translation:
        """One that lasts as long as with the parallelism of its own."""
        key = parallelism, number, pace
        if key not in self._made:
            plain, reference = self._plain(parallelism, number), self._plain(0, 1)
            self._made[key] = paced(plain, self.pause_ms, reference, pace.ahead, is_uneven=pace.is_uneven)
        return self._made[key]
