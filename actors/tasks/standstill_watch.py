"""StandstillWatch: notices that event time stands still in a task although records keep coming.

A value machine, looked at between two batches. Where nothing comes, nothing is wrong: it counts from the first records
that came after the watermark moved last.
"""

from __future__ import annotations

from enum import Enum


class Standstill(Enum):
    """What is new."""

    BEGINS = "begins"
    ENDS = "ends"


class StandstillWatch:
    """`warn_ms`: how long event time may stand while records come."""

    def __init__(self, warn_ms: int) -> None:
        self._warn_ms = warn_ms
        self._watermark_ms: int | None = None
        self._records = 0
        self._first_ms: float | None = None
        self._is_said = False
        self.stood_ms = 0.0
        """For how long, when it was noticed, or had ended."""

    def look(self, now_ms: float, watermark_ms: int, records: int) -> Standstill | None:
        """`records`: how many have come in all. Each standstill is said once, and its end."""
        if watermark_ms != self._watermark_ms:
            was_said, self._is_said = self._is_said, False
            self.stood_ms = 0.0 if self._first_ms is None else now_ms - self._first_ms
            self._watermark_ms, self._records, self._first_ms = watermark_ms, records, None
            return Standstill.ENDS if was_said else None
        if records > self._records and not self._is_said:
            self._records = records
            if self._first_ms is None:
                self._first_ms = now_ms
            self.stood_ms = now_ms - self._first_ms
            if self.stood_ms >= self._warn_ms:
                self._is_said = True
                return Standstill.BEGINS
        return None
