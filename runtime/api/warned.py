"""Warnings that point at the line of the user's program from which ours was called."""

from __future__ import annotations

import sys
import warnings

from ..library_code import is_our_frame


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning with the first line outside this library, however deep it is called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and is_our_frame(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
