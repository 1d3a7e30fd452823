"""AggregateColumns: which columns aggregates by key read, and have in partials: those of the keys, and of the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import pyarrow as pa
import pyarrow.types as pt

from ...messages import those_there_are
from ..columns.column_values import plain_type
from ..keys.column_hash import check_no_null
from ..keys.key_hash import InvalidKey
from ..kinds.aggregates import Aggregate, Part
from .exact_arrays import canonical_type
from .part_columns import column_called, input_types, only_column, part_names, partial_types, parts_of


class AggregateColumns:
    """`parts`: with the type of their values."""

    ALWAYS: ClassVar[tuple[Part, ...]] = ()
    """Parts that are there whatever the aggregates are."""

    def __init__(
        self, keys: Mapping[str, pa.DataType], aggregates: Mapping[str, Aggregate], parts: Mapping[Part, pa.DataType]
    ) -> None:
        self.keys, self.aggregates, self.parts = dict(keys), dict(aggregates), dict(parts)
        self.names = part_names(self.keys, parts)
        self.input_columns = list(dict.fromkeys([*keys, *(part.column for part in parts if part.column is not None)]))

    @classmethod
    def of_input(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> Self:
        """For batches with these columns. Raises ValueError for columns that do not fit."""
        return cls(key_types(keys, schema), aggregates, input_types(aggregates, cls._parts_of(aggregates), schema))

    @classmethod
    def of_partials(cls, keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> Self:
        """For partials with these columns. Raises ValueError for a missing column."""
        return cls(key_types(keys, schema), aggregates, partial_types(keys, cls._parts_of(aggregates), schema))

    @classmethod
    def _parts_of(cls, aggregates: Mapping[str, Aggregate]) -> list[Part]:
        return list(dict.fromkeys([*cls.ALWAYS, *parts_of(aggregates)]))

    def readable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are read. Raises InvalidKey for a null key, and ValueError for a missing column."""
        columns = {name: only_column(batch, name) for name in self.input_columns}
        for name in self.keys:
            check_no_null(columns[name], repr(name))
        if not columns:
            return batch
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def key_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Raises InvalidKey for a null key and for one of another type, and ValueError for a missing column."""
        columns = []
        for name, kind in self.keys.items():
            found = plain_type(only_column(batch, name).type)
            if found != kind and _family(found) != _family(kind):
                raise InvalidKey(
                    f"key column {name!r} is {found} now, and was {kind}: cast it before key_by, so that all batches "
                    "have keys of one type"
                )
            column = column_called(batch, name, kind)
            check_no_null(column, repr(name))
            columns.append(column)
        return columns


def _family(kind: pa.DataType) -> object:
    """The same for types that have a value of one in common as the same key: equal, and of the same hash."""
    if pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return "number"
    if pt.is_timestamp(kind):
        return "time without a zone" if kind.tz is None else "time of a zone"
    families = {"date": pt.is_date, "time": pt.is_time, "duration": pt.is_duration}
    return next((name for name, is_one in families.items() if is_one(kind)), canonical_type(kind))


def key_types(keys: Sequence[str], schema: pa.Schema) -> dict[str, pa.DataType]:
    """Raises ValueError for a column that is not there once."""
    for name in keys:
        if schema.names.count(name) != 1:
            known = those_there_are(name, schema.names)
            raise ValueError(f"there is no key column {name!r}, or more than one; there are {known}")
    return {name: plain_type(schema.field(name).type) for name in keys}
