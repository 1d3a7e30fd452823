"""Does a value fit the type that its state is declared with?

A Fit answers for one declared type in two ways. `takes` looks at the value from the outside: it is asked at each
`update` or `add`, where the type's own class has been compared already, which is all that most values need. `all_fit`
looks at everything inside many values, and is asked when a snapshot is written, as a list or a dataclass may have been
changed in place since; `misfit` then says what is wrong with one of them.

An int may be a bool, and a float an int or a bool; NumPy's scalars are what Python's are. A record is of its very
class, as that is what a snapshot restores. Any other class takes its subclasses, and what a snapshot makes of them: of
a Counter a dict. What is no class (Any, a TypeVar) takes all.
"""

from __future__ import annotations

import reprlib
import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import chain
from operator import attrgetter, countOf, itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...messages import serializer_for
from ...messages.named_types import meant_by
from .record_serializer import hints_of, type_name


class Misfit(NamedTuple):
    """What does not fit, and where in the value: "[2].name", or "" for the value itself."""

    wanted: str
    found: Any
    where: str

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        shown = "None" if self.found is None else f"{type(self.found).__qualname__} {reprlib.repr(self.found)}"
        return f"wanted {self.wanted}, found {shown}{at}"

    def inside(self, where: str) -> Misfit:
        return self._replace(where=where + self.where)


class Fit(Protocol):
    """One declared type."""

    @property
    def text(self) -> str:
        """The type's name in messages."""

    @property
    def kind(self) -> type | None:
        """Values of this very class fit, as seen from the outside, and most are; None where anything fits."""

    @property
    def kinds(self) -> frozenset[type]:
        """The same for several classes."""

    @property
    def has_contents(self) -> bool:
        """Whether `all_fit` sees more than `takes`."""

    def takes(self, value: Any) -> bool:
        """Whether it fits, as seen from the outside."""

    def all_fit(self, values: Sequence[Any]) -> bool:
        """Whether all of these fit, with all that is in them."""

    def fits_column(self, column: Any) -> bool:
        """Whether a column of packed_columns.py tells by itself that all its values fit."""

    def misfit(self, value: Any) -> Misfit | None:
        """What does not fit of this value, or in it."""


def plain_scalar(value: Any) -> Any:
    """A NumPy scalar as the Python value that a snapshot makes of it; anything else as it is."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        return value.item()
    return value


def first_misfit(fit: Fit, values: Sequence[Any]) -> tuple[int, Misfit] | None:
    """The position of the first value that does not fit, and why."""
    if fit.all_fit(values):
        return None
    found = ((position, fit.misfit(value)) for position, value in enumerate(values))
    return next(((position, misfit) for position, misfit in found if misfit is not None), None)


class _Anything:
    text = "Any"
    kind: type | None = None
    kinds: frozenset[type] = frozenset()
    has_contents = False

    def takes(self, value: Any) -> bool:
        return True

    def all_fit(self, values: Sequence[Any]) -> bool:
        return True

    def fits_column(self, column: Any) -> bool:
        return True

    def misfit(self, value: Any) -> Misfit | None:
        return None


ANYTHING: Fit = _Anything()


class _Outside:
    """What a class by itself says."""

    has_contents = False

    def __init__(self, text: str, kinds: Sequence[type], classes: tuple[type, ...]) -> None:
        self.text, self.kind, self.kinds, self._classes = text, kinds[0], frozenset(kinds), classes

    def takes(self, value: Any) -> bool:
        return type(value) in self.kinds or isinstance(plain_scalar(value), self._classes)

    def all_fit(self, values: Sequence[Any]) -> bool:
        return self.kinds.issuperset(map(type, values)) or all(map(self.takes, values))

    def fits_column(self, column: Any) -> bool:
        return isinstance(column, np.ndarray) and _OF_DTYPE.get(column.dtype.kind) in self.kinds

    def misfit(self, value: Any) -> Misfit | None:
        return None if self.takes(value) else Misfit(self.text, value, "")


class _Parts(_Outside):
    """A class whose values consist of others: for each kind of part, how to get it out of many values, and of one."""

    def __init__(self, text: str, kind: type, *, exactly: bool = False) -> None:
        super().__init__(text, (kind,), () if exactly else (kind,))

    def columns(self, values: Sequence[Any]) -> Iterable[tuple[Fit, Sequence[Any]]]:
        """All parts, by their type; the values are of the right class."""
        raise NotImplementedError(self.text)  # abstract

    def parts(self, value: Any) -> Iterable[tuple[str, Fit, Any]]:
        """Where each part of a value is, with its type."""
        raise NotImplementedError(self.text)  # abstract

    def all_fit(self, values: Sequence[Any]) -> bool:
        return super().all_fit(values) and all(fit.all_fit(parts) for fit, parts in self.columns(values))

    def fits_column(self, column: Any) -> bool:
        return False

    def misfit(self, value: Any) -> Misfit | None:
        if outside := super().misfit(value):
            return outside
        found = ((where, fit.misfit(part)) for where, fit, part in self.parts(value))
        return next((misfit.inside(where) for where, misfit in found if misfit is not None), None)


class Items(_Parts):
    """A list, a set, or a tuple of any length."""

    def __init__(self, kind: type, item: Fit, text: str = "") -> None:
        super().__init__(text or f"{kind.__name__}[{item.text}]", kind)
        self._item, self.has_contents = item, item is not ANYTHING

    def columns(self, values: Sequence[Any]) -> Iterable[tuple[Fit, Sequence[Any]]]:
        return [(self._item, list(chain.from_iterable(values)))]

    def parts(self, value: Any) -> Iterable[tuple[str, Fit, Any]]:
        return ((f"[{index}]", self._item, item) for index, item in enumerate(value))


class Pairs(_Parts):
    """A dict."""

    def __init__(self, key: Fit, value: Fit, kind: type = dict) -> None:
        super().__init__(f"{kind.__name__}[{key.text}, {value.text}]", kind)
        self._key, self._value = key, value
        self.has_contents = key is not ANYTHING or value is not ANYTHING

    def columns(self, values: Sequence[Any]) -> Iterable[tuple[Fit, Sequence[Any]]]:
        return [
            (self._key, list(chain.from_iterable(values))),
            (self._value, list(chain.from_iterable(map(dict.values, values)))),
        ]

    def parts(self, value: Any) -> Iterable[tuple[str, Fit, Any]]:
        for key, held in value.items():
            yield f"the key {key!r:.60}", self._key, key
            yield f"[{key!r:.60}]", self._value, held


class _Fixed(_Parts):
    """A tuple of a fixed length, by position."""

    def __init__(self, text: str, positions: Sequence[Fit]) -> None:
        super().__init__(text, tuple)
        self._positions, self.has_contents = positions, True

    def all_fit(self, values: Sequence[Any]) -> bool:
        if not _Outside.all_fit(self, values) or countOf(map(len, values), len(self._positions)) != len(values):
            return False
        return all(fit.all_fit(parts) for fit, parts in self.columns(values))

    def fits_column(self, column: Any) -> bool:
        if not isinstance(column, tuple) or len(column) != len(self._positions):
            return False
        return all(fit.fits_column(part) for fit, part in zip(self._positions, column, strict=True))

    def misfit(self, value: Any) -> Misfit | None:
        if not self.takes(value) or len(value) != len(self._positions):
            return Misfit(self.text, value, "")
        return super().misfit(value)

    def columns(self, values: Sequence[Any]) -> Iterable[tuple[Fit, Sequence[Any]]]:
        if len(set(map(id, self._positions))) == 1:
            return [(self._positions[0], list(chain.from_iterable(values)))]
        return [(fit, list(map(itemgetter(at), values))) for at, fit in enumerate(self._positions)]

    def parts(self, value: Any) -> Iterable[tuple[str, Fit, Any]]:
        return ((f"[{at}]", fit, value[at]) for at, fit in enumerate(self._positions))


class _Record(_Parts):
    """A dataclass or a named tuple."""

    def __init__(self, kind: type, fields: dict[str, Fit]) -> None:
        super().__init__(type_name(kind), kind, exactly=True)
        self._fields = {name: fit for name, fit in fields.items() if fit is not ANYTHING}
        self.has_contents = bool(self._fields)

    def columns(self, values: Sequence[Any]) -> Iterable[tuple[Fit, Sequence[Any]]]:
        return ((fit, list(map(attrgetter(name), values))) for name, fit in self._fields.items())

    def parts(self, value: Any) -> Iterable[tuple[str, Fit, Any]]:
        return ((f".{name}", fit, getattr(value, name)) for name, fit in self._fields.items())


class _Either:
    """A union. Each value is of one of the types."""

    def __init__(self, text: str, members: Sequence[Fit]) -> None:
        self.text, self._members = text, members
        self.kind = members[0].kind
        self.kinds = frozenset(chain.from_iterable(member.kinds for member in members))
        self.has_contents = any(member.has_contents for member in members)

    def takes(self, value: Any) -> bool:
        return type(value) in self.kinds or any(member.takes(value) for member in self._members)

    def all_fit(self, values: Sequence[Any]) -> bool:
        if not self.has_contents:
            return self.kinds.issuperset(map(type, values)) or all(map(self.takes, values))
        of_class: dict[type, list[Any]] = {}
        for value in values:
            of_class.setdefault(type(value), []).append(value)
        return all(map(self._fit_one_class, of_class.values()))

    def fits_column(self, column: Any) -> bool:
        return any(member.fits_column(column) for member in self._members)

    def misfit(self, value: Any) -> Misfit | None:
        found = [member.misfit(value) for member in self._members if member.takes(value)]
        if any(misfit is None for misfit in found):
            return None
        return found[0] if len(found) == 1 else Misfit(self.text, value, "")

    def _fit_one_class(self, values: Sequence[Any]) -> bool:
        """Members of one class, as list[int] | list[str], are tried value by value."""
        return any(member.all_fit(values) for member in self._members) or not any(map(self.misfit, values))


_OF_DTYPE: dict[str, type] = {"i": int, "f": float}
"""What the values of a column of numbers are, by the kind of its dtype."""

_NUMBERS: dict[Any, Fit] = {
    bool: _Outside("bool", (bool,), (bool,)),
    int: _Outside("int", (int, bool), (int,)),
    float: _Outside("float", (float, int, bool), (float, int)),
}
_PLAIN_BASES = (dict, list, tuple, set, frozenset, str, bytes, int, float)
"""What a snapshot makes of instances of their subclasses, but for records and enums."""


def fit_of(hint: Any, serializer: object = None, within: tuple[Any, ...] = ()) -> Fit:
    """The Fit of a type as in an annotation. `within`: the records and names around it; one in itself is not looked
    into.

    Of a type with a serializer, the content is not checked: its serializer does that.
    """
    if serializer is None and (meant := meant_by(hint)) is not hint:
        return fit_of(Any if hint in within else meant, within=(*within, hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and hint in _NUMBERS:
        return _NUMBERS[hint]
    if hint is None:
        return fit_of(type(None))
    if serializer is not None or (isinstance(hint, type) and origin is None and serializer_for(hint) is not None):
        return _of_class(hint if origin is None else origin, type_name(hint))
    if origin in (typing.Union, types.UnionType):
        return _either(type_name(hint), [fit_of(argument, within=within) for argument in arguments])
    if origin is typing.Annotated:
        return fit_of(arguments[0], within=within)
    if origin is typing.Literal:
        return _either(type_name(hint), [fit_of(type(value)) for value in arguments])
    if origin in (list, set, frozenset) and arguments:
        return Items(origin, fit_of(arguments[0], within=within))
    if origin is dict and arguments:
        key, value = (fit_of(argument, within=within) for argument in arguments)
        return Pairs(key, value)
    if origin is tuple and arguments:
        return _of_tuple(hint, arguments, within)
    if isinstance(hint, type) and origin is None and _is_record(hint) and hint not in within:
        return _of_record(hint, (*within, hint))
    return _of_class(hint if origin is None else origin, type_name(hint))


def _of_record(kind: Any, within: tuple[type, ...]) -> Fit:
    """Each field also takes its default, as None in `name: str = None`."""
    hints = hints_of(kind)
    if is_dataclass(kind):
        defaults = {field.name: field.default for field in fields(kind)}
    else:
        defaults = {name: kind._field_defaults.get(name, ...) for name in kind._fields}
    found = {name: fit_of(hints.get(name, Any), within=within) for name in defaults}
    for name, default in defaults.items():
        if default is None and not found[name].takes(None):
            found[name] = _either(f"{found[name].text} | None", [found[name], fit_of(None)])
    return _Record(kind, found)


def _of_tuple(hint: Any, arguments: tuple[Any, ...], within: tuple[type, ...]) -> Fit:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return Items(tuple, fit_of(arguments[0], within=within), type_name(hint))
    return _Fixed(type_name(hint), [fit_of(argument, within=within) for argument in arguments])


def _either(text: str, members: list[Fit]) -> Fit:
    return ANYTHING if ANYTHING in members else _Either(text, members)


def _of_class(kind: Any, text: str) -> Fit:
    """That of a class which is no record. Of what no `isinstance` can be asked, as of a Protocol, anything goes."""
    if kind is object or kind is Any or not isinstance(kind, type):
        return ANYTHING
    if typing.is_typeddict(kind):
        return _Outside(text, (dict,), (dict,))
    try:
        isinstance(None, kind)
    except TypeError:
        return ANYTHING
    base = None if issubclass(kind, Enum) else next((base for base in _PLAIN_BASES if issubclass(kind, base)), None)
    return _Outside(text, (kind,), (kind,) if base is None else (kind, base))


def _is_record(kind: type) -> bool:
    return not issubclass(kind, Enum) and (is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")))
