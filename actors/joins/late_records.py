"""Late records of a join: those whose time the watermark has passed when they come. They are counted, and go to a side
output.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..flow.elements import Times
from ..operators.collector import Collector, OutputTag

LATE: Final = (OutputTag("late"), OutputTag("late-right"))
"""The side outputs of the late records of the first and of the second input."""


class LateRecords:
    """Those of one attempt of one operator."""

    def __init__(self) -> None:
        self.count = 0

    def taken_out(
        self, batch: pa.RecordBatch, times: Times, watermark_ms: int, tag: OutputTag, out: Collector
    ) -> tuple[pa.RecordBatch, Times]:
        """The records that are not late; the others go to the side output."""
        late: npt.NDArray[np.bool_] = times <= watermark_ms
        if not late.any():
            return batch, times
        self.count += int(late.sum())
        out.emit_to(tag, batch.filter(pa.array(late)), times[late])
        return batch.filter(pa.array(~late)), times[~late]

    def take_out(self, record: Any, time_ms: int, watermark_ms: int, tag: OutputTag, out: Collector) -> bool:
        """Whether the record is late; then it goes to the side output."""
        if time_ms > watermark_ms:
            return False
        self.count += 1
        out.collect_to(tag, record)
        return True
