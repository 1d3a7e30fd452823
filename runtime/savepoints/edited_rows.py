"""Rows that an edit puts into a state: from a table of any library, a Spark DataFrame, a mapping, dicts or pairs.

`(key, value)` pairs are what comes of it. A struct of `_1`, `_2`, ... becomes the tuple that it was in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...actors.flow.map_columns import with_dicts
from ...messages.numpy_scalars import python_value
from ..connectors.frames import table_of
from .errors import InvalidEdit

Columns: TypeAlias = "str | Sequence[str] | None"

_AT_ONCE = 65_536


def pairs_of(rows: Any, key: Columns, value: Columns, what: str) -> Iterator[tuple[Any, Any]]:
    """`key` and `value` name a column, or several: a key of several is a tuple, and such a value a dict. `value` None:
    all columns but the key's. Raises InvalidEdit.
    """
    if isinstance(rows, Mapping):
        yield from rows.items()
        return
    for row in _each(rows, what):
        if isinstance(row, Mapping):
            yield _key_in(row, key, what), _value_in(row, key, value, what)
        elif isinstance(row, tuple) and len(row) == 2:
            yield row
        else:
            raise InvalidEdit(f"{what}: wanted rows that are dicts or (key, value) pairs, found {row!r:.80}")


def _each(rows: Any, what: str) -> Iterator[Any]:
    if hasattr(rows, "toArrow"):  # a Spark DataFrame
        rows = rows.toArrow()
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__dataframe__"):
        for batch in table_of(rows, what).to_batches(max_chunksize=_AT_ONCE):
            yield from with_dicts(batch)
        return
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise InvalidEdit(f"{what}: wanted a table, a mapping, or rows, found {type(rows).__name__}")
    yield from rows


def _key_in(row: Mapping[str, Any], key: Columns, what: str) -> Any:
    if key is None or isinstance(key, str):
        return plain(_column(row, key or "key", what))
    return tuple(plain(_column(row, name, what)) for name in key)


def _value_in(row: Mapping[str, Any], key: Columns, value: Columns, what: str) -> Any:
    if isinstance(value, str):
        return plain(_column(row, value, what))
    own = {key} if isinstance(key, str) else set(key or ())
    names = [name for name in row if name not in own] if value is None else value
    return {name: plain(_column(row, name, what)) for name in names}


def _column(row: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in row:
        raise InvalidEdit(
            f"{what}: there is no column {name!r}; there are: {', '.join(map(repr, row))}. Name them: "
            "put(rows, key='...', value='...')"
        )
    return row[name]


def plain(value: Any) -> Any:
    """What a table has made of it, as Python's own."""
    if isinstance(value, np.generic):
        return python_value(value)
    if isinstance(value, dict):
        if value and list(value) == [f"_{at}" for at in range(1, len(value) + 1)]:
            return tuple(map(plain, value.values()))
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value
