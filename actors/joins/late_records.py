"""Late records of a join: those whose time the watermark has passed when they come. They are counted, and go to a side
output.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..flow.elements import Times
from ..operators.collector import Collector, OutputTag
from ..operators.lateness import late_ms, most_late_ms
from ..operators.operator import Operator

LATE: Final = (OutputTag("late"), OutputTag("late-right"))
"""The side outputs of the late records of the first and of the second input."""


class CountsLate(Operator):
    """A part of operators that take no late records."""

    late_records: int = 0
    """How many records were late in this attempt."""

    late_tag: OutputTag = LATE[0]


class CountsLateColumns(CountsLate):
    """Of batches of columns."""

    def _in_time(
        self, batch: pa.RecordBatch, times: Times, tag: OutputTag, out: Collector
    ) -> tuple[pa.RecordBatch, Times]:
        """The records that are not late; the others go to the side output."""
        marks = self.split_watermarks
        reached = self.watermark if marks is None else np.maximum(marks, self.watermark)
        late: npt.NDArray[np.bool_] = times <= reached
        if not late.any():
            return batch, times
        self.late_records += int(late.sum())
        self.most_late_ms = max(
            self.most_late_ms, most_late_ms(times[late], np.broadcast_to(reached, late.shape)[late])
        )
        out.emit_to(tag, batch.filter(pa.array(late)), times[late])
        return batch.filter(pa.array(~late)), times[~late]


class CountsLateRecords(CountsLate):
    """Record by record."""

    def _is_late(self, record: Any, time_ms: int, tag: OutputTag, out: Collector) -> bool:
        """Then it has gone to the side output."""
        if time_ms > self.watermark:
            return False
        self.late_records += 1
        self.most_late_ms = max(self.most_late_ms, late_ms(time_ms, self.watermark))
        out.collect_to(tag, record)
        return True


def of_columns(tag: OutputTag, schema: pa.Schema | None) -> OutputTag:
    """The side output of records with these columns."""
    return replace(tag, schema=schema)
