"""The second input of a KeyedOperator when it is a broadcast stream: it comes to every subtask, and its records have no
key.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..errors import UserCodeError
from ..flow.elements import Batch
from ..flow.records import rows_of
from ..unrun import refuse
from .collector import Collector

if TYPE_CHECKING:
    from .keyed_operator import KeyedOperator


def process_broadcast(operator: KeyedOperator, batch: Batch, out: Collector) -> None:
    """Call `process_2` with each record, without a current key. Records may have times, and watermarks between them.

    Raises UserCodeError with the position of the record at which `process_2` raised.
    """
    operator._input_index = 1
    left = iter(rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch)
    times: Iterable[int | None] = repeat(None) if operator.timestamps is None else operator.timestamps.tolist()
    marks, watermark = operator.split_watermarks, operator.watermark
    by_record = repeat(watermark) if marks is None else np.maximum(marks, watermark).tolist()
    try:
        for record, time_ms, operator.watermark in zip(left, times, by_record):  # noqa: B905 - may repeat
            if time_ms is not None:
                operator.timestamp = out.time_ms = time_ms
            if (result := operator.process_2(record, out)) is not None:
                refuse(f"{type(operator).__name__}.process_2", result)
            if operator._loop is not None:  # an iterator of self.keys() was kept
                operator._leave_key()
            if time_ms is not None and len(out) != len(out.stamps):
                out.stamp()
    except Exception as error:
        at = operator._taken + len(batch) - length_hint(left) - 1
        raise UserCodeError(operator.context.name, at, hook="process_2") from error
    finally:
        operator.watermark = watermark
        operator._leave_time(out)
        operator._leave_key()
    operator._taken += len(batch)
