"""Row: one record of a columnar batch, seen by a per-record operator.

A Row is a named tuple made for a list of column names: `flight.dep_delay`, `flight[3]`, `flight._asdict()`, and
unpacking all work. The class of a given list of names is made once, so rows of equal columns have equal types."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any


class Row:
    """Mixin that marks the classes made by `row_type`; `isinstance(record, Row)` holds for their instances."""

    __slots__ = ()
    _columns: tuple[str, ...]
    _fields: tuple[str, ...]


@lru_cache(maxsize=1024)
def row_type(names: tuple[str, ...]) -> type[Any]:
    """The Row class with these columns, in this order.

    A name that is no Python identifier is reached by position, or by `getattr(row, "_3")` for the fourth column.
    """
    base = namedtuple("Row", names, rename=True)  # type: ignore[misc]
    return type("Row", (base, Row), {"__slots__": (), "_columns": names, "__module__": __name__})


def make_rows(names: tuple[str, ...], tuples: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Rows with these columns, made one at a time from tuples of as many values; nobody counts them again."""
    return map(tuple.__new__, repeat(row_type(names)), tuples)
