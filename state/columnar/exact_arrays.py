"""Python objects as Arrow columns of a given type, if the columns would hold values equal to them and nothing else.

`1`, `1.0` and `True` are equal to Python, so a column of integers holds any of them as 1; a text is never a number, and
1.5 is no integer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from ..columns.column_values import plain_type
from ..keys.text_index import is_text

_NOT_CONVERTED = (ValueError, TypeError, OverflowError, NotImplementedError)
"""What Arrow raises for a value it cannot take; its own errors derive from these."""


class NoSuchValue(ValueError):
    """A value that no column of the type holds. `position` is its index."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def canonical_type(kind: pa.DataType) -> pa.DataType:
    """A type that holds the values of this one as the same Python objects: the widest of its family."""
    kind = plain_type(kind)
    if pt.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if pt.is_floating(kind):
        return pa.float64()
    if is_text(kind):
        is_bytes = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
        return pa.large_binary() if is_bytes else pa.large_string()
    return kind


def exact_columns(keys: Sequence[Any], kinds: Sequence[pa.DataType]) -> list[pa.Array]:
    """The columns of these keys: bare values for one column, tuples for several. Raises NoSuchValue."""
    if len(kinds) == 1:
        return [exact_array(keys, kinds[0])]
    for position, key in enumerate(keys):
        if not isinstance(key, tuple) or len(key) != len(kinds):
            raise NoSuchValue(position)
    return [exact_array([key[at] for key in keys], kind) for at, kind in enumerate(kinds)]


def exact_array(items: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The items as a column without nulls. Raises NoSuchValue."""
    try:
        array = pa.array(items, kind)
        if not array.null_count and array.to_pylist() == items:
            return array
    except _NOT_CONVERTED:
        pass
    for position, item in enumerate(items):
        if not _is_held(item, kind):
            raise NoSuchValue(position)
    return pa.array([_as_kind(item, kind) for item in items], kind)


def _is_held(item: Any, kind: pa.DataType) -> bool:
    try:
        found = pa.array([_as_kind(item, kind)], kind)[0].as_py()
    except _NOT_CONVERTED:
        return False
    return bool(found == item or (found != found and item != item))


def _as_kind(item: Any, kind: pa.DataType) -> Any:
    """A number as the Python type of such a column; what is lost by that shows in a comparison."""
    convert: Callable[[Any], Any] | None = None
    if pt.is_boolean(kind):
        convert = bool
    elif pt.is_integer(kind):
        convert = int
    elif pt.is_floating(kind):
        convert = float
    return item if convert is None or isinstance(item, str | bytes) else convert(item)
