"""StandaloneHighAvailability passes the contract."""

from __future__ import annotations

from itertools import count

from understudy.messages import LeaderSessionId
from understudy.state.checkpoints.high_availability import StandaloneHighAvailability

from ...contracts.high_availability import HighAvailabilityContract

_numbers = count(1)


class TestStandalone(HighAvailabilityContract):
    def make(self) -> StandaloneHighAvailability:
        return StandaloneHighAvailability(LeaderSessionId(f"session-{next(_numbers)}"))
