"""Tables: many messages of one class as bytes, column by column, for those that come by the hundred each second.

    {"rows": 3, field: column, ...}

Names of fields are written once, not once per message, and a column is checked as a whole: that takes a fifth of the
time of a tuple of messages, and a quarter of its bytes. A column of a field that holds

    a primitive             has its values
    a message or None       is [indexes of the rows that have one, table of those]
    a tuple of messages     is [how many each row has, table of all]
    a tuple of primitives   has a list for each row

Fields that are not there get their defaults and columns that are not known are left out, so two versions can talk. As
everywhere, what comes from outside is trusted in nothing: it is a table of the declared types or a MalformedMessage.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import msgpack

from .errors import MalformedMessage, MessageError, UnsupportedValue
from .fields import PRIMITIVES, arms_of, found, is_tuple, is_union
from .named_types import meant
from .registry import is_message
from .usual_fields import maker

T = TypeVar("T")

MAX_ROWS = 100_000


def pack_table(cls: type, rows: Sequence[Any]) -> bytes:
    """Messages of this class to bytes. Raises UnsupportedValue."""
    try:
        data: bytes = msgpack.packb(_columns_of(cls, rows))
    except MessageError:
        raise
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedValue(f"a table of {cls.__name__} cannot be sent: {error}") from error
    return data


def unpack_table(cls: type[T], data: bytes) -> tuple[T, ...]:
    """The messages of `pack_table`. Raises MalformedMessage, saying in which column what was found."""
    try:
        raw = msgpack.unpackb(data, strict_map_key=False)
        return tuple(_rows_of(cls, raw))
    except MalformedMessage:
        raise
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, MemoryError, msgpack.UnpackException) as error:
        raise MalformedMessage(f"no table of {cls.__name__}: {error or type(error).__name__}") from error


class _Field:
    """One field: how its column is made and read."""

    def __init__(self, cls: type, name: str, hint: Any, default: Callable[[], Any] | None) -> None:
        self.name, self.where, self.default = name, f"{cls.__name__}.{name}", default
        inner = meant(hint)
        self.is_optional = is_union(inner) and len(arms_of(inner)) == 1
        inner = arms_of(inner)[0] if self.is_optional else inner
        self.is_tuple = is_tuple(inner)
        self.holds = meant(typing.get_args(inner)[0]) if self.is_tuple else inner
        self.is_message = is_message(self.holds)
        if not (self.is_message or self.holds in PRIMITIVES) or (self.is_tuple and self.is_optional):
            raise UnsupportedValue(f"{self.where}: tables have no fields of type {hint}")
        types = {self.holds, int} if self.holds is float else {self.holds}
        self._types = types | {type(None)} if self.is_optional and not self.is_message else types

    def column(self, values: Sequence[Any]) -> Any:
        if not self.is_message:
            return values
        if self.is_tuple:
            return [[len(each) for each in values], _columns_of(self.holds, [*chain.from_iterable(values)])]
        at = [row for row, each in enumerate(values) if each is not None]
        return [at, _columns_of(self.holds, [values[row] for row in at])]

    def values(self, column: Any, rows: int) -> Sequence[Any]:
        """Of each row. Raises MalformedMessage, or whatever a wrong column raises."""
        if self.is_message:
            at, raw = column
            inner = _rows_of(self.holds, raw)
            _check(at, {int}, self.where)
            return self._tuples(at, inner, rows) if self.is_tuple else self._placed(at, inner, rows)
        if type(column) is not list or len(column) != rows:
            raise MalformedMessage(f"{self.where}: wanted {rows} values, found {found(column)}")
        if self.is_tuple:
            _check(column, {list}, self.where)
            return [tuple(self._checked(each)) for each in column]
        return self._checked(column)

    def _checked(self, values: list[Any]) -> list[Any]:
        _check(values, self._types, self.where)
        return [*map(float, values)] if self.holds is float and int in set(map(type, values)) else values

    def _placed(self, at: list[int], inner: list[Any], rows: int) -> list[Any]:
        if len(at) != len(inner) or len(set(at)) != len(at) or (at and not 0 <= min(at) <= max(at) < rows):
            raise MalformedMessage(f"{self.where}: {len(inner)} messages do not fit rows {found(at)}")
        if not self.is_optional and len(at) != rows:
            raise MalformedMessage(f"{self.where}: wanted {rows} messages, found {len(at)}")
        values: list[Any] = [None] * rows
        for row, each in zip(at, inner, strict=True):
            values[row] = each
        return values

    def _tuples(self, counts: list[int], inner: list[Any], rows: int) -> list[tuple[Any, ...]]:
        if len(counts) != rows or sum(counts) != len(inner) or (counts and min(counts) < 0):
            raise MalformedMessage(f"{self.where}: {len(inner)} messages do not fit counts {found(counts)}")
        rest = iter(inner)
        return [tuple([next(rest) for _ in range(count)]) for count in counts]


class _Shape:
    """A class of messages as a table."""

    def __init__(self, cls: type) -> None:
        hints = typing.get_type_hints(cls)
        declared = fields(cls)
        self.fields = [_Field(cls, each.name, hints[each.name], _default(each)) for each in declared]
        self.read = attrgetter(*(each.name for each in declared))
        self.make = maker(cls)


def _default(field: Any) -> Callable[[], Any] | None:
    if field.default_factory is not MISSING:
        return field.default_factory  # type: ignore[no-any-return]
    return None if field.default is MISSING else lambda: field.default


@lru_cache(maxsize=256)
def _shape(cls: Any) -> _Shape:
    return _Shape(cls)


def _columns_of(cls: type, rows: Sequence[Any]) -> dict[str, Any]:
    shape = _shape(cls)
    table: dict[str, Any] = {"rows": len(rows)}
    if rows:
        columns = zip(*map(shape.read, rows), strict=True)
        table |= {each.name: each.column(values) for each, values in zip(shape.fields, columns, strict=True)}
    return table


def _rows_of(cls: Any, raw: Any) -> list[Any]:
    shape = _shape(cls)
    rows = raw["rows"] if type(raw) is dict else None
    if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
        raise MalformedMessage(f"wanted a table of {cls.__name__}, found {found(raw)}")
    if not rows:
        return []
    columns: list[Iterable[Any]] = []
    for each in shape.fields:
        if each.name in raw:
            columns.append(each.values(raw[each.name], rows))
        elif each.default is None:
            raise MalformedMessage(f"{each.where} is missing")
        else:
            columns.append([each.default() for _ in range(rows)])
    return shape.make(zip(*columns, strict=True))


def _check(values: Any, types: set[type], where: str) -> None:
    if type(values) is not list:
        raise MalformedMessage(f"{where}: wanted a list, found {found(values)}")
    if not set(map(type, values)) <= types:
        wrong = next(each for each in values if type(each) not in types)
        names = " or ".join(sorted(each.__name__ for each in types))
        raise MalformedMessage(f"{where}: wanted {names}, found {found(wrong)}")
