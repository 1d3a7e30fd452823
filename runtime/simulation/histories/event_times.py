"""Event times of the numbers of our own jobs: what jobs with event time share.

Times are out of order, but by no more than the watermarks of `timed` allow for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....actors.operators.watermark_generators import bounded_out_of_orderness

TICK_MS = 1_000
"""From one number to the next, but for the disorder."""

DISORDER_MS = 2_800
"""How far a record may be behind the newest one."""

APART_MS = 20_000
"""How far the times of one source are behind those of another."""

WINDOW_MS = 6_000


def time_of(number: int) -> int:
    """In ms. In the order of numbers, but for a disorder of at most DISORDER_MS."""
    return TICK_MS * number - 700 * (7 * number % 5)


def time_behind(number: int) -> int:
    """That of a source whose clock is behind."""
    return time_of(number) - APART_MS


def timed(stream: Any, time: Callable[[int], int] = time_of, delay_ms: int = DISORDER_MS, **options: Any) -> Any:
    """With event times, and watermarks so far behind the newest one. `options`: of `assign_timestamps`."""
    return stream.assign_timestamps(time, watermarks=bounded_out_of_orderness(delay_ms), **options)
