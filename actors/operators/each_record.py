"""A batch, one record at a time, of an operator that has no key. What it collects has the time of its record.

Operators by key have loops of their own, with a key and state for each record. Flink: ProcessOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import repeat
from operator import length_hint
from typing import Any, Protocol

import numpy as np

from ..errors import UserCodeError
from ..flow.elements import Times
from ..unrun import refuse
from .collector import Collector
from .operator_context import OperatorContext


class HasTimes(Protocol):
    """What this needs of the operator."""

    context: OperatorContext
    timestamps: Times | None
    timestamp: int
    split_watermarks: Times | None
    watermark: int


def process_each(
    operator: HasTimes, process: Callable[[Any, Collector], Any], batch: list[Any], out: Collector, taken: int
) -> int:
    """How many records it has taken in all, after `taken` before. Raises UserCodeError with the record's position."""
    left = iter(batch)
    times: Iterable[int | None] = repeat(None) if operator.timestamps is None else operator.timestamps.tolist()
    marks, watermark = operator.split_watermarks, operator.watermark
    by_record = repeat(watermark) if marks is None else np.maximum(marks, watermark).tolist()
    try:
        for record, time_ms, own in zip(left, times, by_record):  # noqa: B905 - may repeat
            if time_ms is not None:
                operator.timestamp = out.time_ms = time_ms
            if marks is not None:
                operator.watermark = own
            if (result := process(record, out)) is not None:
                refuse(f"{type(operator).__name__}.process", result)
            out.stamp()
    except (Exception, SystemExit) as error:
        raise UserCodeError(operator.context.name, taken + len(batch) - length_hint(left) - 1) from error
    finally:
        if marks is not None:
            operator.watermark = watermark
        if operator.timestamps is not None:
            out.time_ms = None
            with suppress(AttributeError):
                del operator.timestamp
    return taken + len(batch)
