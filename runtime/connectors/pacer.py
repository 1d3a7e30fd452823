"""Pacer: how many records are due by now. Arithmetic on clock readings: it neither sleeps nor reads a clock."""

from __future__ import annotations

from math import floor

BURST_MS = 1000.0
"""After a stall, as much as this is made up for at once; older time is not made up for."""

MIN_DELAY_MS = 1.0
_BATCHES_PER_SECOND = 200
"""The number of batches a second of a fast source, each with all that is due, rather than record by record."""


class Pacer:
    """Lets `records_per_second` records through, evenly, from the first reading on."""

    def __init__(self, records_per_second: float) -> None:
        if not records_per_second > 0:
            raise ValueError(f"records_per_second: wanted a number above 0, found {records_per_second!r}")
        self._interval_ms = 1000.0 / records_per_second
        self._quantum = max(1, int(records_per_second / _BATCHES_PER_SECOND))
        self._due_ms: float | None = None
        """When the next record is due; None before the first reading."""

    def allowed(self, now_ms: float) -> int:
        """How many records may be emitted now; 0 until enough for a batch are due."""
        due_ms = now_ms if self._due_ms is None else max(self._due_ms, now_ms - BURST_MS)
        self._due_ms = due_ms
        ready = floor((now_ms - due_ms) / self._interval_ms + 1e-6) + 1
        return ready if ready >= self._quantum else 0

    def took(self, records: int) -> None:
        """This number of the allowed records were emitted."""
        assert self._due_ms is not None, "nothing was allowed"
        self._due_ms += records * self._interval_ms

    def delay_ms(self, now_ms: float) -> float:
        """After `allowed` returned 0: in how long it will not."""
        assert self._due_ms is not None, "nothing was asked"
        return max(self._due_ms + (self._quantum - 1) * self._interval_ms - now_ms, MIN_DELAY_MS)
