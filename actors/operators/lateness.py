"""How far behind event time late records are: for the log."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..flow.elements import END_OF_TIME, NO_WATERMARK, Times


def most_late_ms(times: Times, reached: Any) -> int:
    """Of records with these times. `reached`: how far event time was, for all or for each. 0: not known, as of records
    that come when the data has ended.
    """
    marks = np.broadcast_to(np.asarray(reached, np.int64), times.shape)
    is_known = (marks > NO_WATERMARK) & (marks < END_OF_TIME) & (times <= marks)
    return int((marks[is_known] - times[is_known]).max(initial=0))


def late_ms(time_ms: int, reached_ms: int) -> int:
    """The same of one record."""
    return max(0, reached_ms - time_ms) if NO_WATERMARK < reached_ms < END_OF_TIME else 0
