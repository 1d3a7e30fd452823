"""What the API checks of event time before a program is submitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...actors.operators.watermark_generators import WatermarkStrategy
from ...messages import shown
from .errors import InvalidProgram
from .operator_checks import function_of

_STRATEGIES = "bounded_out_of_orderness(5_000), monotonous(), punctuated(function) or a WatermarkStrategy of your own"


def checked_time(time: Any) -> str | Callable[[Any], Any]:
    """The name of a column, or a function. Raises InvalidProgram."""
    if isinstance(time, str):
        return time
    if not callable(time):
        raise InvalidProgram(
            f"assign_timestamps: wanted the name of the time column, or a function of the record, found {shown(time)}"
        )
    return function_of(time, "assign_timestamps")  # type: ignore[no-any-return]


def checked_strategy(watermarks: Any) -> WatermarkStrategy:
    """Something that makes watermark generators. Raises InvalidProgram."""
    if isinstance(watermarks, type) or not callable(getattr(watermarks, "generator", None)):
        raise InvalidProgram(f"assign_timestamps: wanted {_STRATEGIES} as watermarks, found {shown(watermarks)}")
    return watermarks  # type: ignore[no-any-return]
