"""Permits: how many calls one subtask may begin, of those that its operator's rate allows over all subtasks.

The JobManager deals them out (actors/jobs/rate_limits). A subtask keeps a few ahead, so that it asks for them about ten
times a second and not with each record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...messages import GrantPermits

LOOK_AHEAD_MS: Final = 100
"""It keeps at most what its share of the rate gives in this time, besides what is wanted."""


class Permits:
    """Of one attempt; on its task's thread. It has none at first."""

    def __init__(self, request: Callable[[int], None], throttled: Callable[[float], None]) -> None:
        """`request` sends a RequestPermits for this many, `throttled` a ReportThrottled with these ms."""
        self._request = request
        self._throttled = throttled
        self._held = 0
        self._ahead = 0
        self._requested = 0
        """How many it has asked for, and not got an answer."""

    def take(self, wanted: int) -> int:
        """How many of `wanted` calls may begin now. When there are too few, now or soon, it requests more, unless a
        request is under way: call it again when `granted` was.
        """
        taken = min(wanted, self._held)
        self._held -= taken
        missing = wanted - taken
        if (missing or self._held < self._ahead / 2) and not self._requested:
            self._requested = missing + self._ahead - self._held
            self._request(self._requested)
        return taken

    @property
    def are_requested(self) -> bool:
        """Whether a request is under way: `granted` comes."""
        return bool(self._requested)

    def say_again(self) -> None:
        """Request once more what is under way: who was asked is not there any more."""
        if self._requested:
            self._request(self._requested)

    def granted(self, message: GrantPermits) -> None:
        """The answer to its request."""
        self._requested = 0
        self._held += message.count
        self._ahead = int(message.rate_per_second * LOOK_AHEAD_MS / 1000)

    def throttled(self, retry_after_ms: float | None) -> None:
        """The other end said that there are too many calls, and how long it wants none, if it said that. Those held
        are of a rate that was too high, and lost.
        """
        self._held = 0
        self._throttled(retry_after_ms or 0.0)

    def give_back(self, count: int) -> None:
        """This many calls were not begun after all."""
        self._held += count
