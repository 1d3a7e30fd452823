"""TimeToLive: for how long a row is kept, and what measures it. Flink: StateTtlConfig.

By processing time a row lives from when it came. By event time it lives from its own time, and two rows meet if their
times are less than a life apart, whichever came first: so it does not depend on how quickly watermarks and rows arrive.
It may be removed when the watermark has passed the end of its life: only late rows could still meet it, and those do
not either. A row whose life is over is never seen again, whether it has been removed already or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

TimeDomain: TypeAlias = Literal["event", "processing"]


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """`ttl_ms` None: rows live forever. Raises ValueError for anything else that is no time."""

    ttl_ms: int | None = None
    domain: TimeDomain = "processing"

    def __post_init__(self) -> None:
        if self.ttl_ms is not None and (type(self.ttl_ms) is not int or not 0 < self.ttl_ms < 2**60):
            raise ValueError(f"wanted a whole number of ms above 0, found {self.ttl_ms!r}")
        if self.domain not in get_args(TimeDomain):
            raise ValueError(f"wanted 'event' or 'processing' time, found {self.domain!r}")

    @property
    def rule(self) -> str:
        """By which time rows live, as text. How long they live is not a part of it."""
        return "for ever" if self.ttl_ms is None else f"by {self.domain} time"

    @property
    def goes_by_event_time(self) -> bool:
        return self.ttl_ms is not None and self.domain == "event"

    def are_near(self, times: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Pair by pair, whether two rows of these times meet, by event time."""
        assert self.ttl_ms is not None, "rows without a ttl_ms live forever"
        near: npt.NDArray[np.bool_] = np.abs(times - others) < self.ttl_ms
        return near

    def is_over(self, since_ms: npt.NDArray[np.int64], now_ms: int) -> npt.NDArray[np.bool_]:
        """Of rows that live since these times, with a `ttl_ms`."""
        assert self.ttl_ms is not None, "rows without a ttl_ms live forever"
        return since_ms <= max(now_ms, -(2**62)) - self.ttl_ms
