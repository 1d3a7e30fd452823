"""`math.hypot` of two numbers as Python computes it, whose last bit is often right where that of C's `hypot` is not.

CPython: vector_norm in Modules/mathmodule.c. The squares are summed up with what each rounding loses (Dekker),
and the root is corrected by what is left. The larger number is scaled to [0.5, 1), so that no square leaves the range.
"""

from __future__ import annotations

import math

from numba import njit
from numba.extending import register_jitable

_SPLIT = 134217729.0
"""2^27 + 1: halves the 53 bits of a float."""
_LEAST_NORMAL = 2.2250738585072014e-308
_LEAST_EXPONENT = -1023
"""2 to the opposite of a smaller one is no float."""


def hypotenuse(a: float, b: float) -> float:
    """The length of (a, b); infinite for an infinite side, whatever the other is, and where it leaves the range."""
    a, b = abs(a), abs(b)
    if math.isinf(a) or math.isinf(b):
        return math.inf
    if math.isnan(a) or math.isnan(b):
        return math.nan
    longer, shorter = max(a, b), min(a, b)
    if shorter == 0.0:
        return longer
    unit = 1.0
    if math.frexp(longer)[1] < _LEAST_EXPONENT:
        unit = _LEAST_NORMAL
    scale = math.ldexp(1.0, -math.frexp(longer / unit)[1])
    length: float = _length(longer / unit * scale, shorter / unit * scale)
    return unit * (length / scale)


@register_jitable(error_model="numpy")
def _length(a: float, b: float) -> float:
    """`total` begins at 1, above every square, so that what an addition loses is exact; `lost_*` sum that up."""
    total, lost_1, lost_2, lost_3 = 1.0, 0.0, 0.0, 0.0
    for side in (a, b):
        high, low = _halves(side)
        before, total = total, total + high * high
        lost_1 += (before - total) + high * high
        before, total = total, total + 2.0 * high * low
        lost_2 += (before - total) + 2.0 * high * low
        lost_3 += low * low
    root = math.sqrt(total - 1.0 + (lost_1 + lost_2 + lost_3))
    high, low = _halves(root)
    before, total = total, total - high * high
    lost_1 += (before - total) - high * high
    before, total = total, total - 2.0 * high * low
    lost_2 += (before - total) - 2.0 * high * low
    before, total = total, total - low * low
    lost_3 += (before - total) - low * low
    corrected: float = root + (total - 1.0 + (lost_1 + lost_2 + lost_3)) / (2.0 * root)
    return corrected


@register_jitable
def _halves(number: float) -> tuple[float, float]:
    high = number * _SPLIT
    high = high - (high - number)
    return high, number - high


compiled_hypotenuse = njit(error_model="numpy")(hypotenuse)
"""Compiled when it is first called. A product and a sum stay two instructions: Numba joins them only when asked."""
