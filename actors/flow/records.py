"""Records and columns: turns Arrow batches into Rows and lists of records into Arrow batches.

A Row, dict, dataclass, named tuple, attrs instance or Pydantic model has its columns by name; a plain
tuple has columns `_1` to `_n`, as in Spark, or, when a schema is given, that schema's columns in order; anything else
is one column, `value`. All records of a list are of one kind. Nothing here knows where batches come from or go to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import repeat
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from ...messages import Row, make_rows, shape_of, shown
from ..errors import RecordMismatch as RecordMismatch
from .cut_times import refuse_cut_times
from .map_columns import nested_values

B = TypeVar("B")
"""A list of records or a `pa.RecordBatch`."""

_NUMBERS = frozenset(kind.id for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()))
"""By the numbers of types: a user's own extension type has no hash."""
_TIMES = frozenset({pa.timestamp("ns").id, pa.duration("ns").id})
_TIME_OF_DAY = pa.time64("ns").id


def rows_of(batch: pa.RecordBatch) -> list[Any]:
    """One Row per row, in order."""
    return list(rows_one_by_one(batch, [values_of(column) for column in batch.columns]))


def rows_one_by_one(batch: pa.RecordBatch, columns: Sequence[Iterable[Any]]) -> Iterator[Any]:
    """The same, each made when it is asked for: a row that nobody keeps costs no memory and no work to collect it.

    `columns` holds the `values_of` the batch's columns.
    """
    tuples = zip(*columns, strict=True) if columns else repeat((), batch.num_rows)
    return make_rows(tuple(batch.schema.names), tuples)


def values_of(array: pa.Array) -> list[Any]:
    """The same as `to_pylist`, but a map is a dict, and times in nanoseconds that have none are Python's, not pandas'.

    Numbers without nulls take half the time. Raises RecordMismatch for a time of day that would lose nanoseconds.
    """
    if array.null_count == 0 and array.type.id in _NUMBERS:
        return array.to_numpy().tolist()  # type: ignore[no-any-return]
    if array.type.num_fields:
        return nested_values(array)
    if array.type.id in _TIMES and array.type.unit == "ns":
        array = _in_microseconds(array)
    if array.type.id == _TIME_OF_DAY:
        refuse_cut_times(array)
    return array.to_pylist()  # type: ignore[no-any-return]


def _in_microseconds(array: pa.Array) -> pa.Array:
    """The same times, or the very column where one of them is not of whole microseconds."""
    kind = array.type
    try:
        return array.cast(pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us", kind.tz))
    except pa.ArrowInvalid:
        return array


def batch_of(records: Sequence[Any], schema: pa.Schema | None = None) -> pa.RecordBatch:
    """The records as columns, of the types in `schema` or, without one, of inferred types. Raises RecordMismatch.

    With a schema a dict may leave out a nullable column; any other missing or extra column does not fit.
    """
    if not records:
        if schema is None:
            raise RecordMismatch("no records and no schema: the columns cannot be known")
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    names, columns = _columns_of(records, schema)
    if schema is None:
        arrays = [_array(name, column, None, records) for name, column in zip(names, columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(names))
    if isinstance(records[0], dict):
        names, columns = _with_absent(names, columns, schema, len(records))
    if problem := column_problem(names, schema):
        raise RecordMismatch(f"record {_shown(records[0])} does not fit: {problem}")
    by_name = dict(zip(names, columns, strict=True))
    return pa.RecordBatch.from_arrays([_array(f.name, by_name[f.name], f, records) for f in schema], schema=schema)


def merged(batches: Sequence[B]) -> list[B]:
    """The same records in as few batches as can be, in their order: lists become one, and columns of one schema."""
    runs: list[list[Any]] = []
    schemas: list[pa.Schema | None] = []
    for batch in batches:
        schema = batch.schema if isinstance(batch, pa.RecordBatch) else None
        if not runs or schemas[-1] != schema:
            runs.append([])
            schemas.append(schema)
        runs[-1].append(batch)
    return [_joined(run) for run in runs]


def _joined(run: Sequence[Any]) -> Any:
    if len(run) == 1:
        return run[0]
    if isinstance(run[0], pa.RecordBatch):
        return pa.concat_batches(run)
    return [record for batch in run for record in batch]


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with exactly these columns, reordered and cast without loss. Raises RecordMismatch."""
    if batch.schema.equals(schema):
        return batch
    if problem := column_problem(batch.schema.names, schema):
        raise RecordMismatch(problem)
    arrays = [_cast(field, batch.column(batch.schema.get_field_index(field.name))) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def schema_problem(found: pa.Schema, wanted: pa.Schema) -> str | None:
    """Why batches of schema `found` can never become `wanted`; None when they can, or when it depends on the values."""
    if problem := column_problem(found.names, wanted):
        return problem
    for field in wanted:
        kind = found.field(field.name).type
        try:
            pa.nulls(0, kind).cast(field.type)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            return f"column {field.name!r}: found {kind}, wanted {field.type}"
    return None


def column_problem(found: Collection[str], wanted: pa.Schema) -> str | None:
    """Which columns are missing, too many or there twice; None when the names are the same, in whatever order."""
    missing = [name for name in wanted.names if name not in found]
    extra = [name for name in found if name not in wanted.names]
    if not missing and not extra and len(found) == len(wanted.names) == len(set(found)):
        return None
    told = [f"missing {', '.join(missing)}"] * bool(missing) + [f"extra {', '.join(extra)}"] * bool(extra)
    return (
        f"{'; '.join(told) or 'a column is there twice'} "
        f"(found columns {', '.join(found) or 'none'}; wanted {', '.join(wanted.names) or 'none'})"
    )


def mapping_of(record: Any) -> dict[str, Any]:
    """One record as column name to value, by the same rules as `batch_of` without a schema."""
    if isinstance(record, dict):
        return record
    if isinstance(record, tuple):
        return dict(zip(_tuple_names(record), record, strict=True))
    if (shape := shape_of(type(record))) is not None:
        return shape.values(record)
    return {"value": record}


def _columns_of(records: Sequence[Any], schema: pa.Schema | None) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    first = records[0]
    if isinstance(first, dict):
        _check_kind(records, dict)
        names: Sequence[str] = list(dict.fromkeys(name for record in records for name in record))
        return names, [[record.get(name) for record in records] for name in names]
    if isinstance(first, tuple):
        _check_kind(records, tuple)
        _check_lengths(records)
        positional = schema is not None and not hasattr(first, "_fields") and len(first) == len(schema)
        return schema.names if positional and schema else _tuple_names(first), list(zip(*records, strict=True))
    if (shape := shape_of(type(first))) is not None:
        _check_kind(records, type(first))
        return shape.fields, [[getattr(record, name) for record in records] for name in shape.fields]
    return [schema.names[0] if schema is not None and len(schema) == 1 else "value"], [records]


def _tuple_names(record: tuple[Any, ...]) -> Sequence[str]:
    if isinstance(record, Row):
        return record._columns
    return getattr(record, "_fields", None) or [f"_{position}" for position in range(1, len(record) + 1)]


def _check_kind(records: Sequence[Any], wanted: type) -> None:
    if all(issubclass(kind, wanted) for kind in set(map(type, records))):
        return
    for position, record in enumerate(records):
        if not isinstance(record, wanted):
            found = type(record).__name__
            raise RecordMismatch(
                f"record {position} is a {found}, the ones before it are {wanted.__name__}: {_shown(record)}"
            )


def _check_lengths(records: Sequence[tuple[Any, ...]]) -> None:
    wanted = len(records[0])
    if set(map(len, records)) == {wanted}:
        return
    for position, record in enumerate(records):
        if len(record) != wanted:
            raise RecordMismatch(
                f"record {position} has {len(record)} columns, the ones before it have {wanted}: {_shown(record)}"
            )


def _with_absent(
    names: Sequence[str], columns: Sequence[Sequence[Any]], schema: pa.Schema, rows: int
) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    absent = [field.name for field in schema if field.nullable and field.name not in names]
    return [*names, *absent], [*columns, *([None] * rows for _ in absent)]


_NOT_CONVERTED = (ValueError, TypeError, OverflowError, NotImplementedError)
"""What Arrow raises for a value it cannot take; its own errors derive from these."""


def _array(name: str, column: Sequence[Any], wanted: pa.Field | None, records: Sequence[Any]) -> pa.Array:
    kind = None if wanted is None else wanted.type
    try:
        array = _convert(column, kind)
    except _NOT_CONVERTED as error:
        _raise_misfit(name, column, kind, records, error)
    if wanted is not None and not wanted.nullable and array.null_count:
        position = array.is_null().index(True).as_py()
        raise RecordMismatch(
            f"record {position}: column {name!r} is None, wanted {kind} not null: {_shown(records[position])}"
        )
    return array


def _raise_misfit(
    name: str, column: Sequence[Any], kind: pa.DataType | None, records: Sequence[Any], error: Exception
) -> NoReturn:
    """Name the first record at fault: the shortest prefix of the column that cannot be converted ends with it."""
    position = bisect_left(range(len(column)), True, key=lambda last: not _converts(column[: last + 1], kind))
    value = column[position]
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise RecordMismatch(
            f"record {position}: column {name!r} holds an array of {value.ndim} dimensions, wanted one: make a "
            f"column of it with ravel(), or nested lists with tolist(): {_shown(records[position])}"
        ) from error
    wanted = kind if kind is not None else _as_before(column[:position])
    raise RecordMismatch(
        f"record {position}: column {name!r} holds the {type(value).__name__} {_shown(value)}, wanted {wanted} "
        f"({error}{_remedy(name, value)}): {_shown(records[position])}"
    ) from error


def _remedy(name: str, value: Any) -> str:
    if isinstance(value, Enum):
        return f"; put its name or value there with a map before, as {{**row, {name!r}: row[{name!r}].name}}"
    return "; pairs of a map want a schema with pa.map_(...), or dict(...)" if _is_map(value) else ""


def _is_map(value: Any) -> bool:
    """Whether it is what a map of Arrow is as a Python value."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, tuple) and len(each) == 2 for each in value)


def _as_before(column: Sequence[Any]) -> str:
    kind = pa.array(column).type
    return "what a column of Arrow can hold" if pa.types.is_null(kind) else f"{kind}, as in the records before it"


def _convert(column: Sequence[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is not None and pa.types.is_integer(kind) and _has_floats(column):
        return pa.array(column).cast(kind)  # refuses a fraction, which `pa.array` would cut off without an error
    return pa.array(column, kind)


def _has_floats(column: Sequence[Any]) -> bool:
    return any(issubclass(kind, float | np.floating) for kind in set(map(type, column)))


def _converts(column: Sequence[Any], kind: pa.DataType | None) -> bool:
    try:
        _convert(column, kind)
    except _NOT_CONVERTED:
        return False
    return True


def _cast(field: pa.Field, array: pa.Array) -> pa.Array:
    if array.null_count and not field.nullable:
        raise RecordMismatch(f"column {field.name!r} holds null, wanted {field.type} not null")
    try:
        return array.cast(field.type)
    except _NOT_CONVERTED as error:
        raise RecordMismatch(
            f"column {field.name!r}: found {array.type}, which does not become {field.type}: {error}"
        ) from error


def _shown(value: Any) -> str:
    return shown(value, 120)
