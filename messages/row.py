"""Row: one record of a columnar batch, seen by a per-record operator.

A Row is a named tuple made for a list of column names. A column is read as `flight["dep_delay"]`, `flight.dep_delay` or
`flight[3]`; unpacking, `dict(flight)`, `{**flight}` and `flight.asdict()` work too. The attribute is the quickest. The
class of a given list of names is made once, so rows of equal columns have equal types.

Brackets reach a column of any name. As an attribute a column comes before a method of its name; one whose name is no
Python identifier, or begins with an underscore, is `_3` for the fourth column. Of two columns of one name the brackets
give the first. `in`, `len` and iteration are those of a tuple: they take the values.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from operator import attrgetter
from typing import Any, NoReturn

from .missing_column import MissingColumn

_SHOWN_BYTES = 90
"""An AttributeError shows so much of a class's name, and that is where it tells the columns."""


class Row:
    """What all classes made by `row_type` share; `isinstance(record, Row)` holds for their instances."""

    __slots__ = ()
    _columns: tuple[str, ...]
    _fields: tuple[str, ...]
    __iter__: Callable[[], Iterator[Any]]

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self._columns, self, strict=True))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _row_of, (self._columns, tuple(self))

    def keys(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self._columns

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a column; the default if there is no such column."""
        return self[name] if name in self._columns else default  # type: ignore[index]

    def __setitem__(self, name: Any, value: Any) -> NoReturn:
        """Raises TypeError: there is none."""
        raise TypeError(_unchangeable(name))

    def asdict(self) -> dict[str, Any]:
        """A dict of column name to value. Values that are records stay what they are."""
        return dict(zip(self._columns, self, strict=True))


@lru_cache(maxsize=1024)
def row_type(names: tuple[str, ...]) -> type[Any]:
    """The Row class with these columns, in this order.

    No `__getattr__`: with one, each attribute would take a third longer. The class's name tells the columns instead.
    """
    base = namedtuple("Row", names, rename=True)  # type: ignore[misc]
    own = {
        "__slots__": (),
        "__module__": __name__,
        "__qualname__": "Row",
        "__getitem__": _item_getter(names, base._fields),
        "__repr__": Row.__repr__,
        "_columns": names,
    }
    return type(_class_name(names), (base, Row), own)


def make_rows(names: tuple[str, ...], tuples: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Rows with these columns, made one at a time from tuples of as many values; nobody counts them again."""
    return map(tuple.__new__, repeat(row_type(names)), tuples)


def _item_getter(names: tuple[str, ...], fields: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    """`__getitem__` by name and by position: one look into a dict of getters that are written in C."""
    getters = _Getters(names)
    for place, field in reversed(list(enumerate(fields))):
        getter = attrgetter(field)
        getters.update({names[place]: getter, place: getter, place - len(fields): getter})

    def __getitem__(row: Any, item: Any) -> Any:
        try:
            return getters[item](row)
        except TypeError:  # a slice, which cannot be looked up
            return tuple.__getitem__(row, item)

    return __getitem__


class _Getters(dict[Any, Callable[[Any], Any]]):
    """By column name and by position."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, item: Any) -> Callable[[Any], Any]:
        if isinstance(item, str):
            raise MissingColumn(item, self._names)
        return lambda row: tuple.__getitem__(row, item)  # a slice, or no position of a column


def _unchangeable(name: Any) -> str:
    return f"a Row cannot be changed: make a new record, {{**row, {name!r}: ...}}, which is a dict"


def _row_of(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return row_type(names)._make(values)


def _class_name(names: tuple[str, ...]) -> str:
    told = ", ".join(names).encode(errors="replace").replace(b"\0", b"?")
    shown = told if len(told) <= _SHOWN_BYTES else told[: _SHOWN_BYTES - 3] + b"..."
    return f"Row({shown.decode(errors='ignore')})"
