"""Refusal: why something in `process` cannot be compiled, in our words and before Numba says it at length."""

from __future__ import annotations

from typing import Any, NoReturn

from numba.core import types
from numba.core.errors import TypingError

from .layout import Column, Layout
from .types import Opaque

_KNOWN = {"int64": "int", "float64": "float", "bool": "bool", "none": "None", "unicode_type": "str"}


def refuse(layout: Layout, text: str) -> NoReturn:
    """Give this attempt at typing up. The user gets the refusal only if nothing else fits."""
    layout.refusals.append(text)
    raise TypingError(text)


def only_passed_on(column: Column) -> str:
    return f"column {column.name!r} is of type {column.type}: a compiled function can only pass it on"


def told_type(kind: Any) -> str:
    """A Numba type in words a Python user knows."""
    kind = types.unliteral(kind)
    if isinstance(kind, Opaque):
        return f"column {kind.source.name!r} of type {kind.source.type}"
    if isinstance(kind, types.Optional):
        return f"{told_type(kind.type)} or None"
    if isinstance(kind, types.BaseTuple):
        return f"a tuple ({', '.join(map(told_type, kind.types))})"
    if isinstance(kind, types.List):
        return f"a list of {told_type(kind.dtype)}"
    return _KNOWN.get(str(kind), str(kind))
