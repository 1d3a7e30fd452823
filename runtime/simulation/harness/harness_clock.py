"""HarnessClock: the time of a harness, which stands still until it is moved. Nothing happens because of it here."""

from __future__ import annotations

from typing import Final

from .harness_snapshot import HarnessMisused

EPOCH_MS: Final = 1_700_000_000_000
"""What its wall clock says at time 0."""


class HarnessClock:
    """Time stands still until it is moved."""

    def __init__(self, now_ms: float) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> float:
        return self._now_ms

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._now_ms)

    def advance(self, ms: float) -> None:
        self.check(ms)
        self._now_ms += ms

    @staticmethod
    def check(ms: float) -> None:
        """Raises HarnessMisused for what is no time to let pass."""
        if not ms >= 0:
            raise HarnessMisused(f"time does not go back: wanted at least 0 ms, found {ms!r}")

    def set(self, now_ms: float) -> None:
        self._now_ms = now_ms
