"""Which declared types no state can hold: found at submit, before there is a value.

A type is refused only where it tells: a class of which neither an instance nor one of a known subclass travels. `Any`,
`object`, unions of several types, protocols, abstract classes and annotations that cannot be resolved here say nothing.
"""

from __future__ import annotations

import types
import typing
from abc import ABCMeta
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from ...messages import ADVICE, ALLOWED, RecordShape, Row, one_of_kind, serializer_for, shape_of
from ...messages.named_types import meant_by
from .record_serializer import hints_of

_CARRIED: tuple[type, ...] = (
    types.NoneType,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    memoryview,
    list,
    tuple,
    dict,
    set,
    frozenset,
    datetime,
    date,
    time,
    timedelta,
    Decimal,
    Fraction,
    UUID,
    Row,
    Enum,
    np.ndarray,
    np.generic,
)


def unstorable(hint: Any) -> str:
    """Why values of this type cannot be stored: the class, where in the type it stands, and what to do; empty if they
    can be, or if the type does not say.
    """
    found = _refused_in(hint, ())
    if found is None:
        return ""
    path, cls = found
    where = f" (in {path})" if path else ""
    return f"{one_of_kind(cls)}{where} cannot be stored; allowed are {ALLOWED}; {ADVICE}"


def _refused_in(hint: Any, within: tuple[Any, ...]) -> tuple[str, type] | None:
    """The class at fault, and the field that leads to it."""
    if (meant := meant_by(hint)) is not hint:
        return None if hint in within else _refused_in(meant, (*within, hint))
    origin = typing.get_origin(hint)
    if origin is None:
        return _refused_class(hint, within) if isinstance(hint, type) else None
    for argument in _arguments(hint, origin):
        if (found := _refused_in(argument, within)) is not None:
            return found
    return _refused_class(origin, within) if isinstance(origin, type) and origin is not types.UnionType else None


def _arguments(hint: Any, origin: Any) -> Iterator[Any]:
    """The types of what a value of a generic type holds."""
    arguments = typing.get_args(hint)
    if origin is typing.Annotated:
        yield arguments[0]
    elif origin in (typing.Union, types.UnionType):
        arms = [argument for argument in arguments if argument is not types.NoneType]
        if len(arms) == 1:
            yield arms[0]
    elif isinstance(origin, type) and issubclass(origin, (list, tuple, dict, set, frozenset)):
        yield from (argument for argument in arguments if argument is not Ellipsis)


def _refused_class(cls: type, within: tuple[type, ...]) -> tuple[str, type] | None:
    if cls in within or cls is object or cls.__module__ == "typing" or serializer_for(cls) is not None:
        return None
    shape = shape_of(cls)
    if shape is not None:
        return _refused_field(cls, shape, (*within, cls))
    if issubclass(cls, _CARRIED) or isinstance(cls, ABCMeta) or any(map(_travels, _subclasses(cls))):
        return None
    return "", cls


def _refused_field(cls: type, shape: RecordShape, within: tuple[type, ...]) -> tuple[str, type] | None:
    hints = hints_of(cls)
    for name in shape.fields:
        if (found := _refused_in(hints.get(name, Any), within)) is not None:
            path, refused = found
            return path or f"field {name!r} of {cls.__qualname__}", refused
    return None


def _travels(cls: type) -> bool:
    return shape_of(cls) is not None or issubclass(cls, _CARRIED) or serializer_for(cls) is not None


def _subclasses(cls: type) -> Iterator[type]:
    below: list[type] = type.__subclasses__(cls)
    for subclass in below:
        yield subclass
        yield from _subclasses(subclass)
