"""Whether keys of two streams can be equal: said when the program is built, where columns or collections tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from .errors import InvalidProgram
from .samples import samples_of
from .stream_graph import StreamEdge

Kinds = frozenset[str]
"""Of the values of one part of a key; values of two kinds are never equal."""


def kinds_of(keys: Sequence[Any], edges: Sequence[StreamEdge]) -> list[Kinds | None]:
    """By part of the key; None where that is not known before the job runs."""
    known = [each for edge in edges for each in _kinds_along(keys, edge)]
    return [None if None in each else frozenset[str]().union(*each) for each in zip(*known, strict=True)]


def check_same_kinds(method: str, left: Sequence[Kinds | None], right: Sequence[Kinds | None]) -> None:
    """Raises InvalidProgram where no key of the one side equals one of the other."""
    for part, (first, second) in enumerate(zip(left, right, strict=True)):
        if first and second and not first & second:
            raise InvalidProgram(
                f"{method}: key {part + 1} of {len(left)} is {_listed(first)} in the first stream and "
                f"{_listed(second)} in the second, so no two keys would be equal: convert one of them, as with "
                ".map(...) before key_by"
            )


def _listed(kinds: Kinds) -> str:
    return " or ".join(sorted(kinds))


def _kinds_along(keys: Sequence[Any], edge: StreamEdge) -> Iterator[list[Kinds | None]]:
    """Of each stream that comes together in this one."""
    if edge.schema is not None:
        schema = edge.schema
        yield [None if callable(key) else _of_arrow(schema.field(key).type) for key in keys]
        return
    for sample in samples_of([edge]):
        yield [None if sample is None else _of_records(key, sample.records) for key in keys]


def _of_records(key: Any, sample: Sequence[Any]) -> Kinds | None:
    try:
        values = [record[key] if isinstance(key, int) else _item(record, key) for record in sample]
    except (LookupError, TypeError, AttributeError):
        return None
    kinds = {_kind(value) for value in values if value is not None}
    return None if not kinds or "" in kinds else frozenset(kinds)


def _item(record: Any, key: str) -> Any:
    return record[key] if isinstance(record, dict) else getattr(record, key)


_KINDS: Mapping[str, tuple[type, ...]] = {
    "a number": (int, float, Decimal, Fraction, np.number, np.bool_),
    "a str": (str,),
    "bytes": (bytes,),
    "a tuple": (tuple,),
    "a date": (date,),
    "a UUID": (UUID,),
}
"""Subclasses may be equal to what they are a kind of, as members of an IntEnum."""


def _kind(value: Any) -> str:
    return next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "")


def _of_arrow(kind: pa.DataType) -> Kinds | None:
    """Only of those whose values become what the same type in Python is."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or pt.is_decimal(kind):
        return frozenset({"a number"})
    if pt.is_string(kind) or pt.is_large_string(kind):
        return frozenset({"a str"})
    return frozenset({"bytes"}) if pt.is_binary(kind) or pt.is_large_binary(kind) else None
