"""Rounding: whether two outputs differ in the last digits of their floats alone, as sums do in another order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ....messages.row import Row
from ...oracles import multiset
from .committed_output import Output

_DIGITS = 9

ROUNDING = (
    "found and wanted are the same but for the last digits of floats: a sum of floats depends on the order in which "
    "they are added. Add up whole numbers (cents), or Decimals; or round what is compared"
)


def differ_by_rounding(found: Output, wanted: Output) -> bool:
    """Whether the sinks of `wanted` hold the same, as soon as floats are rounded; and not before."""
    return _same(found, wanted, _rounded) and not _same(found, wanted, _unchanged)


def _same(found: Output, wanted: Output, each: Any) -> bool:
    return all(multiset(map(each, found.get(name, []))) == multiset(map(each, wanted[name])) for name in wanted)


def _unchanged(value: Any) -> Any:
    return value


def _rounded(value: Any) -> Any:
    match value:
        case float() if math.isfinite(value):
            return float(f"{value:.{_DIGITS}g}")
        case Row():
            return _rounded(value.asdict())
        case Mapping():
            return tuple((name, _rounded(each)) for name, each in value.items())
        case str() | bytes():
            return value
        case Iterable():
            return tuple(map(_rounded, value))
        case _:
            return value
