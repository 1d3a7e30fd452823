"""ValueKinds: which NumPy columns hold a state's values, one per field, and how a value becomes fields and back.

Such a state is a ValueState or a ReducingState whose value is an int, a float or a bool, or a tuple of these. The kinds
of the fields are those of the declared type (`tuple[int, float]`, a named tuple), or where that does not say, those of
the default. Integers have 64 bits.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...messages.named_types import meant
from ..errors import InvalidState
from ..kinds.descriptors import ReducingState, ValueState
from ..kinds.state_declaration import KeyedStateDeclaration

Kind: TypeAlias = "type[int] | type[float] | type[bool]"
Columns: TypeAlias = "tuple[npt.NDArray[Any], ...]"
"""One per field, all of one length."""

DTYPES: Final[dict[Kind, np.dtype[Any]]] = {
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    bool: np.dtype(np.bool_),
}

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_UNTYPED = (tuple, object, Any)


@dataclass(frozen=True, slots=True)
class ValueKinds:
    """The fields of one state's values."""

    fields: tuple[Kind, ...]
    is_tuple: bool
    """If not, the value is its one field."""
    record: type | None
    """The named tuple that values are, if they are."""
    default: tuple[Any, ...] | None
    """The fields of the value of an absent one, each of its kind; None if there is no such value."""

    @classmethod
    def of(cls, declaration: KeyedStateDeclaration) -> ValueKinds:
        """Raises InvalidState for a declaration whose values columns cannot hold."""
        if declaration.ttl is not None:
            raise InvalidState(
                f"state {declaration.name!r} has a TTL, and the columns of a compiled operator keep no times: leave "
                "out `ttl=`, or `compiled = True`"
            )
        if not isinstance(declaration, ValueState | ReducingState) or declaration.serializer is not None:
            raise _refused(declaration, "")
        default = declaration.default if isinstance(declaration, ValueState) else None
        fields, is_tuple, record = _fields_of(declaration, default)
        kinds = cls(fields, is_tuple, record, None)
        if default is None:
            return kinds
        row = kinds.row(default)
        if row is None:
            raise _refused(declaration, f" with the default {default!r:.60}, which does not fit")
        return cls(fields, is_tuple, record, row)

    def row(self, value: Any) -> tuple[Any, ...] | None:
        """The fields of a value, each of its kind; None for a value that these columns cannot hold exactly."""
        if not self.is_tuple:
            items: Sequence[Any] = (value,)
        elif isinstance(value, tuple) and len(value) == len(self.fields):
            items = value
        else:
            return None
        row = tuple(map(exactly, items, self.fields))
        return None if None in row else row

    def value(self, items: Sequence[Any]) -> Any:
        """The value of these fields, which are Python's own objects."""
        if self.record is not None:
            return self.record(*items)
        return tuple(items) if self.is_tuple else items[0]

    def empty(self, size: int) -> Columns:
        return tuple(np.zeros(size, DTYPES[kind]) for kind in self.fields)

    def __str__(self) -> str:
        names = [kind.__name__ for kind in self.fields]
        return f"tuple of {', '.join(names)}" if self.is_tuple else names[0]


def exactly(value: Any, kind: Kind) -> Any:
    """The same number as this kind of Python object; None if there is none. A bool is an int, an int may be a float."""
    if isinstance(value, np.generic):
        value = value.item()
    if kind is bool or value is None:
        return value if type(value) is bool else None
    if kind is int:
        return int(value) if isinstance(value, int) and _LEAST <= value <= _GREATEST else None
    if isinstance(value, float):
        return float(value)
    try:
        return float(value) if isinstance(value, int) and float(value) == value else None
    except OverflowError:
        return None


def _fields_of(
    declaration: ValueState[Any] | ReducingState[Any], default: Any
) -> tuple[tuple[Kind, ...], bool, type | None]:
    hint = meant(declaration.type)
    if hint in DTYPES:
        return (hint,), False, None
    record = hint if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields") else None
    if record is not None:
        hints: Sequence[Any] = tuple(_hints_of(record).get(name) for name in record._fields)
    elif typing.get_origin(hint) is tuple:
        hints = typing.get_args(hint)
    elif hint in _UNTYPED and type(default) is tuple:
        hints = tuple(map(type, default))
    elif hint is not tuple and hint in _UNTYPED and type(default) in DTYPES:
        return (type(default),), False, None
    else:
        raise _refused(declaration, "" if default is None else f" with the default {default!r:.60}")
    hints = tuple(map(meant, hints))
    if not hints or any(kind not in DTYPES for kind in hints):
        raise _refused(declaration, "" if default is None else f" with the default {default!r:.60}")
    return tuple(hints), True, record


def _hints_of(record: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(record)
    except NameError:  # annotations that only a type checker can resolve
        return {}


def _refused(declaration: KeyedStateDeclaration, more: str) -> InvalidState:
    return InvalidState(
        f"state {declaration.name!r} is a {declaration.describe()}{more}: the state of a compiled operator is a "
        "ValueState, or a ReducingState, of an int, float or bool, or of a tuple of these with the fields given by its "
        "type (tuple[int, float], a NamedTuple) or by its default"
    )
