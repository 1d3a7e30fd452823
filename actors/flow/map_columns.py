"""Maps of Arrow as dicts of Python: Arrow itself makes lists of pairs of them.

A map whose keys are lists or structs stays a list of pairs, as no dict can have such keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import RecordMismatch
from .cut_times import refuse_cut_times

_Change: TypeAlias = "Callable[[Any], Any]"
"""Of a value that is not None, as Arrow makes it."""


def with_dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The same as `to_pylist`, with dicts for maps."""
    for column in batch.columns:
        refuse_cut_times(column)
    rows: list[dict[str, Any]] = batch.to_pylist()
    for field in batch.schema:
        if field.type.num_fields and (change := _change_of(field.type)) is not None:
            for row in rows:
                if (value := row[field.name]) is not None:
                    row[field.name] = change(value)
    return rows


def nested_values(array: pa.Array) -> list[Any]:
    """The same of one column."""
    refuse_cut_times(array)
    values: list[Any] = array.to_pylist()
    change = _change_of(array.type)
    return values if change is None else _each(change)(values)


def _change_of(kind: pa.DataType) -> _Change | None:
    """None: no map is in it."""
    if pa.types.is_map(kind):
        return _of_map(kind)
    if pa.types.is_struct(kind):
        changes = {field.name: change for field in kind if (change := _change_of(field.type)) is not None}
        return _of_struct(changes) if changes else None
    if kind.num_fields == 1 and hasattr(kind, "value_type"):
        change = _change_of(kind.value_type)
        return None if change is None else _each(change)
    return None


def _of_map(kind: pa.MapType) -> _Change:
    key, item = _change_of(kind.key_type), _change_of(kind.item_type)
    keys = _unchanged if key is None else _each(key)
    items = _unchanged if item is None else _each(item)

    def as_pairs(pairs: list[Any]) -> Any:
        return list(zip(keys([key for key, _ in pairs]), items([value for _, value in pairs]), strict=True))

    def as_dict(pairs: list[Any]) -> Any:
        found = dict(pairs if item is None else as_pairs(pairs))
        if len(found) < len(pairs):
            seen = [key for key, _ in pairs]
            twice = next(key for place, key in enumerate(seen) if key in seen[:place])
            raise RecordMismatch(
                f"a map has the key {twice!r:.60} twice, and a dict of it would lose one value: read it as a list of "
                "pairs, as map_entries(column) of Spark makes it"
            )
        return found

    return as_pairs if pa.types.is_nested(kind.key_type) else as_dict


def _of_struct(changes: dict[str, _Change]) -> _Change:
    def change_fields(value: dict[str, Any]) -> Any:
        for name, change in changes.items():
            if (own := value[name]) is not None:
                value[name] = change(own)
        return value

    return change_fields


def _each(change: _Change) -> _Change:
    return lambda values: [None if value is None else change(value) for value in values]


def _unchanged(values: Any) -> Any:
    return values
