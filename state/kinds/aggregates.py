"""Aggregates of columns: what users ask for (`Sum("distance")`), and the running values, or parts, that it is made of.

A part is one number per key with a neutral value and an operation that is associative and commutative; so parts can
be kept up to date batch by batch, merged after a rescale, and computed in two phases. Parts that several aggregates
need are kept once. As in SQL, nulls do not count, and the result over no values is null. Sums of integers are exact
within 64 bits, and beyond them an OverflowError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ...messages import those_there_are
from ...messages.absent import name_absent
from ...messages.known_names import known_names
from ..columns.column_values import Numbers, column_of, is_number, is_ordered, number_dtype, plain_type
from ..errors import WrongColumn

Operation: TypeAlias = Literal["count", "sum", "min", "max"]


@dataclass(frozen=True, slots=True)
class Part:
    """One running value per key: an operation over the values of a column that are not null, or over all rows."""

    operation: Operation
    column: str | None = None

    @property
    def name(self) -> str:
        return f"{self.operation}({self.column or '*'})"

    def type_of(self, schema: pa.Schema) -> pa.DataType:
        """The type of this part of a stream with these columns; its values were checked to fit."""
        if self.operation == "count":
            return pa.int64()
        kind = _value_type(schema, self.column)
        return _sum_type(kind) if self.operation == "sum" else kind

    @property
    def adds_up(self) -> bool:
        """Whether it is a sum or a count, which begins at 0; else it is one of the values, at first none."""
        return self.operation in ("count", "sum")

    @property
    def combine(self) -> Callable[[Any, Any], Any]:
        """The operation on two values as Python has them; the first is None where there was none yet."""
        return _COMBINE[self.operation]


class Running:
    """The values of one part, by slot."""

    def __init__(self, part: Part, kind: pa.DataType) -> None:
        dtype = number_dtype(kind)
        self.kind = kind
        self._limit = _limit_of(part, dtype)
        self._name, self._most = part.name, 0
        self._neutral, self._operation = _neutral(part, dtype), _ufunc(part, dtype)
        self.values: Numbers = np.empty(0, dtype)

    def reserve(self, slots: int) -> None:
        """Have room for this many slots; new ones hold the neutral value."""
        if slots > len(self.values):
            size, dtype = max(slots, 2 * len(self.values)), self.values.dtype
            # Memory of zeros costs nothing until it is used.
            grown = np.zeros(size, dtype) if self._neutral == 0 else np.full(size, self._neutral, dtype)
            grown[: len(self.values)] = self.values
            self.values = grown

    def take_in(self, slots: Any, numbers: Any) -> None:
        """Add numbers, or one number, to the values of these slots, of which there may be several alike."""
        if self._limit is not None:
            self._check(self._limit, slots, numbers, len(numbers))
        self._operation.at(self.values, slots, numbers)

    def take_in_once(self, slots: Any, numbers: Numbers) -> None:
        """The same for slots that are all different, which is quicker."""
        if self._limit is not None:
            self._check(self._limit, slots, numbers, 1)
        taken = self.values[slots]  # a view, if the slots are a slice
        self._operation(taken, numbers, out=taken)
        if not isinstance(slots, slice):
            self.values[slots] = taken

    def put(self, slots: Any, values: Numbers) -> None:
        """Let these slots hold these values, whatever they held."""
        self.values[slots] = values
        if self._limit is not None:
            self._most = max(self._most, _most_of(values))

    def _check(self, limit: int, slots: Any, numbers: Numbers, most_alike: int) -> None:
        """Raises OverflowError for sums that do not fit. No value is further from 0 than `_most`, so a look at the
        greatest number is nearly always enough. `most_alike`: how many may be of the same slot.
        """
        added = _most_of(numbers) * most_alike
        if self._most + added > limit:
            self._most = _most_of(self.values)
            if self._most + added > limit:
                self._check_each(limit, slots, numbers)
        self._most = min(self._most + added, limit)

    def _check_each(self, limit: int, slots: Any, numbers: Numbers) -> None:
        all_slots = np.arange(len(self.values))[slots]
        known, places = np.unique(all_slots, return_inverse=True)
        near = self.values[known].astype(np.float64) + np.bincount(places, numbers.astype(np.float64), len(known))
        for place in np.flatnonzero(np.abs(near) > limit * 0.999).tolist():
            total = int(self.values[known[place]]) + sum(numbers[places == place].tolist())
            if not (-limit - 1 if self.values.dtype.kind == "i" else 0) <= total <= limit:
                raise OverflowError(beyond_64_bits(self._name, total))

    def at(self, slots: Any) -> Numbers:
        """A copy of the values of these slots."""
        return self.values[slots].copy() if isinstance(slots, slice) else self.values.take(slots)

    def reset(self, slots: Any) -> None:
        self.values[slots] = self._neutral


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A column of the result. `column` is what it is computed of."""

    column: str | None

    wants: ClassVar[str] = "any column"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The accumulators it is computed from; `result` gets the values of these."""
        raise NotImplementedError(f"{type(self).__name__}.parts is not defined")  # abstract

    def check(self, schema: pa.Schema) -> None:
        """Raises WrongColumn for a column that is not there or of a wrong type."""
        if self.column is None:
            return
        if schema.names.count(self.column) != 1:
            known = those_there_are(self.column, schema.names)
            raise WrongColumn(f"{self}: there is no such column, or more than one; there are {known}")
        kind = _value_type(schema, self.column)
        if not self._takes(kind):
            raise WrongColumn(
                f"{self}: wanted {self.wants}, found a column of type {kind}{_conversion(self.column, kind)}"
            )

    def result(self, values: Sequence[Numbers], kinds: Sequence[pa.DataType]) -> pa.Array:
        """The column of results from the values of the parts, which are of these types."""
        return column_of(values[0], kinds[0], values[1] > 0)

    def result_type(self, kinds: Sequence[pa.DataType]) -> pa.DataType:
        return kinds[0]

    def result_of_one(self, values: Sequence[Any]) -> Any:
        """The same of one key, from values of the parts as Python has them; None where there was no value."""
        value, count = values
        return value if count else None

    def _takes(self, kind: pa.DataType) -> bool:
        return True

    def __str__(self) -> str:
        return f"{type(self).__name__}({'' if self.column is None else repr(self.column)})"


name_absent(Aggregate, "an aggregate", {"alias": "its name comes before it, as in aggregate(total=Sum('n'))"})


@known_names
@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    """The number of rows, or of values that are not null in a column."""

    column: str | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("count", self.column),)

    def result(self, values: Sequence[Numbers], kinds: Sequence[pa.DataType]) -> pa.Array:
        return pa.array(values[0])

    def result_of_one(self, values: Sequence[Any]) -> Any:
        return values[0]


class _OfValues(Aggregate):
    """Computed from one operation, and from how many values there were."""

    __slots__ = ()
    operation: ClassVar[Operation]

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part(self.operation, self.column), Part("count", self.column))


@known_names
@dataclass(frozen=True, slots=True)
class Sum(_OfValues):
    """The sum: int64 of integers, uint64 of unsigned ones, else float64."""

    column: str
    operation: ClassVar[Operation] = "sum"
    wants = "a column of integers or floats"

    def _takes(self, kind: pa.DataType) -> bool:
        return is_number(kind)


@known_names
@dataclass(frozen=True, slots=True)
class Avg(Sum):
    """The mean, a float64."""

    column: str

    def result(self, values: Sequence[Numbers], kinds: Sequence[pa.DataType]) -> pa.Array:
        total, count = values
        return column_of(total / np.maximum(count, 1), pa.float64(), count > 0)

    def result_type(self, kinds: Sequence[pa.DataType]) -> pa.DataType:
        return pa.float64()

    def result_of_one(self, values: Sequence[Any]) -> Any:
        total, count = values
        return total / count if count else None


@known_names
@dataclass(frozen=True, slots=True)
class Min(_OfValues):
    """The least value, of the column's own type. A NaN counts only where there is nothing else."""

    column: str
    operation: ClassVar[Operation] = "min"
    wants = "a column of numbers, booleans, dates or times"

    def _takes(self, kind: pa.DataType) -> bool:
        return is_ordered(kind)


@known_names
@dataclass(frozen=True, slots=True)
class Max(Min):
    """The greatest value, of the column's own type. A NaN counts only where there is nothing else."""

    column: str
    operation: ClassVar[Operation] = "max"


_MEANT = {
    "count": "Count()",
    "sum": "Sum('column')",
    "min": "Min('column')",
    "max": "Max('column')",
    "avg": "Avg('column')",
    "mean": "Avg('column')",
}
"""What a name in place of an aggregate says, as other libraries have it."""


def misgiven(found: Any, name: str = "") -> str:
    """The text about something that is no named aggregate, and how one is written; `name`: of the result's column."""
    if isinstance(found, Aggregate):
        return f"{found} has no name: write aggregate({type(found).__name__.lower()}={found})"
    written, what = ("Sum('column')", f"{found!r:.80}")
    if isinstance(found, str):
        written = _MEANT.get(found.lower(), f"Sum({found!r})")
    elif isinstance(found, type) and issubclass(found, Aggregate):
        written = "Count()" if found is Count else f"{found.__name__}('column')"
        what = f"the class {found.__name__}"
    example = f"{name}={written}" if name else f"aggregate({written.partition('(')[0].lower()}={written})"
    return f"wanted an aggregate such as Count() or Sum('column') with a name, found {what}: write {example}"


def _conversion(column: str, kind: pa.DataType) -> str:
    """What to do about such a column."""
    if pt.is_decimal(kind):
        return f": map it to float(record[{column!r}]), or to whole cents (int) where the result must be exact"
    if pt.is_string(kind) or pt.is_large_string(kind):
        return f": map it to float(record[{column!r}]) first, if it holds numbers"
    return ""


def columns_read(keys: Sequence[str], aggregates: Mapping[str, Aggregate]) -> tuple[str, ...]:
    """The columns of the input that aggregates by these keys are computed from, each once."""
    used = (aggregate.column for aggregate in aggregates.values() if aggregate.column is not None)
    return tuple(dict.fromkeys((*keys, *used)))


def _value_type(schema: pa.Schema, column: str | None) -> pa.DataType:
    """The type of a column's values. A column of nothing but nulls counts as floats, which any number becomes."""
    kind = plain_type(schema.field(column).type)
    return pa.float64() if pt.is_null(kind) else kind


def _sum_type(kind: pa.DataType) -> pa.DataType:
    return pa.from_numpy_dtype(number_dtype(kind))


def beyond_64_bits(part: str, total: int) -> str:
    return (
        f"{part}: the sum of a key would be {total}, and sums of integers have 64 bits: sum a column of floats, or of "
        "larger units"
    )


def _limit_of(part: Part, dtype: np.dtype[Any]) -> int | None:
    """The greatest sum of integers there can be; None for what cannot overflow."""
    return int(np.iinfo(dtype).max) if part.operation == "sum" and dtype.kind in "iu" else None


def _most_of(numbers: Numbers) -> int:
    return max(int(numbers.max()), -int(numbers.min())) if len(numbers) else 0


def _least(held: Any, value: Any) -> Any:
    if held is None or held != held:  # a NaN counts only where there is nothing else
        return value
    return value if value < held else held


def _greatest(held: Any, value: Any) -> Any:
    if held is None or held != held:
        return value
    return value if value > held else held


_COMBINE: Mapping[Operation, Callable[[Any, Any], Any]] = {
    "count": operator.add,
    "sum": operator.add,
    "min": _least,
    "max": _greatest,
}


def _neutral(part: Part, dtype: np.dtype[Any]) -> Any:
    if part.adds_up:
        return 0
    if dtype.kind == "f":
        return np.nan
    return np.iinfo(dtype).max if part.operation == "min" else np.iinfo(dtype).min


def _ufunc(part: Part, dtype: np.dtype[Any]) -> np.ufunc:
    if part.adds_up:
        return np.add
    floats = dtype.kind == "f"  # fmin and fmax give way to the other value where one is NaN, the neutral one
    if part.operation == "min":
        return np.fmin if floats else np.minimum
    return np.fmax if floats else np.maximum
