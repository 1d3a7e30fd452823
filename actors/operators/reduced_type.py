"""What the function of `reduce` makes of two records must be one, as it is the function's first argument next time.

A sum of a column is none: `reduce(lambda total, sale: total["price"] + sale["price"])` gives a number at a key's second
record, and at the third one asks that number for its column. So it is refused at the second.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ...messages import Row, shape_of
from ...messages.code_steps import steps
from ...messages.shown import place_of_function, shown
from ..errors import UnwantedResult

_SINGLE = (bool, int, float, complex, str, bytes, Decimal, Fraction, date, time, timedelta, np.generic)
_WITH_PARTS = (dict, Row, list, tuple, set, frozenset)
_TELLING_APART = frozenset({"isinstance", "issubclass", "type", "hasattr", "getattr"})


def check_reduced(function: Callable[[Any, Any], Any], held: Any, record: Any, result: Any) -> None:
    """Raises UnwantedResult for a single value in place of a record that has parts, if the function does not look
    which of the two it is given.
    """
    made: Any = type(result)
    given: tuple[Any, Any] = (type(held), type(record))
    if _is_single(made) and all(map(_has_parts, given)) and not _tells_apart(function):
        kind, wanted = made.__qualname__, given[1].__qualname__
        raise UnwantedResult(
            f"the function of reduce{place_of_function(function)} returned {shown(result)}, of type {kind}, for two "
            f"records of type {wanted}: wanted a {wanted}, as the function gets it in place of a record next time: "
            "return a record with the new value, or use aggregate, as in aggregate(total=Sum('price'))",
            None,
        )


@lru_cache(maxsize=256)
def _is_single(kind: Any) -> bool:
    return issubclass(kind, _SINGLE) and not _has_parts(kind)


@lru_cache(maxsize=256)
def _has_parts(kind: Any) -> bool:
    return issubclass(kind, _WITH_PARTS) or shape_of(kind) is not None


def _tells_apart(function: Callable[[Any, Any], Any]) -> bool:
    """Whether its code may look at what it is given, or try it."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    is_tried = bool(code.co_exceptiontable)
    tells = not _TELLING_APART.isdisjoint(code.co_names)
    return is_tried or tells or any(step.name == "MATCH_CLASS" for step in steps(code))
