"""JoinedColumns: the columns of a join's results, and how a batch of them is made from rows of both sides.

First all columns of the left side, then those of the right. A key column that has the same name on both sides is there
once. Any other column of the right whose name is taken gets the suffix. Where a side may be missing its columns may be
null.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...messages import those_there_are
from ...state.columnar.exact_arrays import canonical_type
from ...state.columnar.row_columns import RowNumbers
from ...state.columnar.row_store import RowReader, plain_schema
from ...state.columnar.rows_format import KeptRows
from ...state.columnar.slot_keys import check_key_types
from ...state.keys.key_groups import InvalidKey
from ..flow.changelog import KIND, KINDS

How = Literal["inner", "left", "right", "full"]


@cache
def _kind_texts() -> pa.Array:
    """Made when it is wanted: with its first array Arrow imports pandas, if installed, which takes half a second."""
    return pa.array(KINDS)


def checked_how(how: str) -> How:
    """Raises ValueError."""
    if how not in get_args(How):
        raise ValueError(f"how: wanted one of {', '.join(map(repr, get_args(How)))}, found {how!r}")
    return how  # type: ignore[return-value]


def kinds_column(codes: npt.NDArray[np.int8]) -> pa.Array:
    """The column `kind` from places in KINDS."""
    return _kind_texts().take(pa.array(codes))


class JoinedColumns:
    """Made once both schemas are known. Raises ValueError for sides that do not go together."""

    def __init__(self, left: KeptRows, right: KeptRows, how: How, suffix: str, *, is_changelog: bool) -> None:
        check_same_keys(left, right)
        self._left_may_miss, self._right_may_miss = how in ("right", "full"), how in ("left", "full")
        shared = {name for name, other in zip(left.keys, right.keys, strict=True) if name == other}
        self._right_places = [place for place, name in enumerate(right.schema.names) if name not in shared]
        self._shared = {
            left.schema.get_field_index(name): right.schema.get_field_index(name)
            for name in left.schema.names
            if name in shared
        }
        fields = [pa.field(KIND, pa.string())] if is_changelog else []
        for field in plain_schema(left.schema):
            may_miss = self._left_may_miss and field.name not in shared
            _add(fields, field.with_nullable(True) if may_miss else field, suffix)
        for place in self._right_places:
            field = plain_schema(right.schema).field(place)
            taken = field.name in {each.name for each in fields}
            named = field.with_name(field.name + suffix) if taken else field
            _add(fields, named.with_nullable(True) if self._right_may_miss else named, suffix)
        self.schema = pa.schema(fields)

    def batch(
        self,
        left: RowReader,
        left_rows: RowNumbers,
        right: RowReader,
        right_rows: RowNumbers,
        kinds: npt.NDArray[np.int8] | None = None,
    ) -> pa.RecordBatch:
        """A result for each of these pairs of rows; -1 for a side that is missing. `kinds`: places in KINDS."""
        columns = [kinds_column(kinds)] if kinds is not None else []
        own = left.columns(left_rows, range(len(left.schema)))
        if self._left_may_miss and (left_rows < 0).any():
            for place, other in self._shared.items():
                (found,) = right.columns(right_rows, [other])
                own[place] = pc.coalesce(own[place], found.cast(own[place].type))
        columns += own
        columns += right.columns(right_rows, self._right_places)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def check_same_keys(left: KeptRows, right: KeptRows) -> None:
    """Whether equal keys of both sides are found equal. Raises ValueError."""
    if len(left.keys) != len(right.keys):
        raise ValueError(
            f"the left side is keyed by {_listed(left.keys)} and the right by {_listed(right.keys)}: key both by as "
            "many columns"
        )
    for name, other in zip(left.keys, right.keys, strict=True):
        kinds = key_type(left.schema, name), key_type(right.schema, other)
        if canonical_type(kinds[0]) != canonical_type(kinds[1]):
            raise ValueError(
                f"the key column {name!r} of the left side has type {kinds[0]} and {other!r} of the right has "
                f"{kinds[1]}, so no two keys would be equal: cast one of them before key_by"
            )


def key_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Raises ValueError for a column that is not there, or cannot be a key."""
    if schema.names.count(name) != 1:
        raise ValueError(
            f"there is no key column {name!r}, or more than one; there is {those_there_are(name, schema.names)}"
        )
    kind = schema.field(name).type
    try:
        check_key_types([kind])
    except InvalidKey as error:
        raise ValueError(f"key column {name!r}: a column of type {kind} cannot be a key") from error
    return kind


def _add(fields: list[pa.Field], field: pa.Field, suffix: str) -> None:
    if field.name in {each.name for each in fields}:
        raise ValueError(
            f"the results would have two columns {field.name!r}: rename one before the join, or give another suffix "
            f"than {suffix!r}"
        )
    fields.append(field)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
