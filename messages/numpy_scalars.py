"""NumPy's scalars as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

_FINER_THAN_PYTHON = frozenset({"ns", "ps", "fs", "as"})
"""Units of NumPy's times; Python's go to microseconds."""


def python_value(scalar: np.generic[Any]) -> Any:
    """The Python value that holds as much; None for a time that is NaT. The very scalar where there is none, as for a
    number of more than 64 bits, and a time with nanoseconds, of months, or far off.
    """
    item = scalar.item()
    if not isinstance(scalar, np.datetime64 | np.timedelta64) or type(item) is not int:
        return item
    if np.datetime_data(scalar.dtype)[0] in _FINER_THAN_PYTHON:
        whole = scalar.astype("M8[us]" if isinstance(scalar, np.datetime64) else "m8[us]")
        if whole == scalar and not isinstance(item := whole.item(), int):
            return item
    return scalar
