"""The keys of a batch as columns, whatever they were selected from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..flow.elements import Batch
from ..operators.keyed_operator import KeyedOperator
from .errors import CannotCompile


def key_columns(operator: KeyedOperator, batch: Batch, columns: pa.RecordBatch) -> list[pa.Array]:
    """The parts of the keys. Raises KeySelectionFailed, or CannotCompile for keys that are no columns."""
    (selector,) = operator._selectors
    keys = selector.arrays(columns) if isinstance(batch, pa.RecordBatch) else None
    if keys is not None and not any(key.null_count for key in keys):
        return keys
    return keys_as_columns(operator.context.name, selector.keys(batch))


def keys_as_columns(operator_name: str, keys: Sequence[Any]) -> list[pa.Array]:
    """Of Python objects. Raises CannotCompile."""
    kinds = set(map(type, keys))
    if tuple not in kinds:
        try:
            return [pa.array(keys)]
        except (pa.ArrowException, TypeError, OverflowError) as error:
            told = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise CannotCompile(f"{operator_name}: keys of type {told} make no column: {error}") from error
    if kinds == {tuple} and len(keys[0]) > 1 and len(set(map(len, keys))) == 1:
        return [pa.array(part) for part in zip(*keys, strict=True)]
    raise CannotCompile(f"{operator_name}: a compiled operator's keys are all of one type, or tuples of two or more")
