"""Attempt numbers: those of a subtask's attempts increase, also over the leaders of a job.

A sink knows by them what of earlier attempts it may remove, and what a later one has begun. So the attempts of a leader
that is deposed, which may go on without knowing it, must stay below those of the next one. Each leader begins behind
all numbers that its predecessors had reserved; a deposed one can reserve none.
"""

from __future__ import annotations

from typing import Protocol

NO_ATTEMPT = -1
"""In the place of a number: the subtask has had no attempt under this leader."""


class AttemptNumbers(Protocol):
    """Of one job, under one leader."""

    def next_after(self, previous: int) -> int:
        """The number of an attempt that is about to begin, of a subtask whose attempt before had the number `previous`,
        or NO_ATTEMPT: above that, and above all that began under earlier leaders. Raises LostLeadership.
        """
        ...


class StandaloneAttemptNumbers:
    """There is one leader: from 0."""

    def next_after(self, previous: int) -> int:
        return previous + 1
