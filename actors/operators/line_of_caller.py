"""Which line of the user's has called the library, for what is logged of that call."""

from __future__ import annotations

import sys
from types import FrameType

from ...messages.whose_code import PACKAGE


def line_of_caller() -> str:
    """As `file:line`; empty if it is not in sight."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == PACKAGE:
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
