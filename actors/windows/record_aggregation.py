"""RecordAggregation: named aggregates, as in `aggregate(bids=Count(), best=Max("price"))`, over records one by one.

Its results are those of the columnar operators, as Python values: nulls do not count, and there is no sum, mean, least
or greatest of no values, and a sum of integers that has more than 64 bits is an OverflowError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...messages import row_type
from ...state.kinds.aggregates import Aggregate, Part, beyond_64_bits, misgiven
from ..errors import UnusableRecord
from ..flow.key_selector import getter_of
from ..operators.collector import Collector
from .errors import InvalidWindow
from .window import Window
from .window_contents import AggregateFunction
from .window_function import ProcessWindowFunction

WINDOW_COLUMNS = ("window_start", "window_end")

Values = list[Any]


class RecordAggregation(AggregateFunction):
    """The accumulator is a list of the values of all parts; the result, a tuple of the aggregates'."""

    def __init__(self, aggregates: Mapping[str, Aggregate]) -> None:
        self._aggregates = tuple(aggregates.values())
        self._parts: tuple[Part, ...] = tuple(dict.fromkeys(part for each in self._aggregates for part in each.parts))
        self._places = [[self._parts.index(part) for part in each.parts] for each in self._aggregates]
        self._columns = tuple(dict.fromkeys(part.column for part in self._parts if part.column is not None))
        self._steps = [
            (
                place,
                None if part.operation == "count" else part.combine,
                None if part.column is None else self._columns.index(part.column),
            )
            for place, part in enumerate(self._parts)
        ]
        """Of each part: its place, what combines two values (None: they are counted), and its column's place."""
        self._getters: tuple[type | None, Sequence[Callable[[Any], Any]]] = (None, ())
        """How records of this type give the columns."""

    @property
    def rule(self) -> str:
        """The parts, in their order: other names for results, or a mean in place of a sum, are the same."""
        return ", ".join(part.name for part in self._parts)

    def create_accumulator(self) -> Values:
        return [0 if part.adds_up else None for part in self._parts]

    def add(self, accumulator: Values, record: Any) -> Values:
        values = self._values_of(record)
        for place, combine, column in self._steps:
            value = None if column is None else values[column]
            if combine is None:
                accumulator[place] += column is None or value is not None
            elif value is not None:
                try:
                    accumulator[place] = combine(accumulator[place], value)
                except TypeError as error:
                    raise UnusableRecord(f"{self._parts[place].name} of {value!r:.80}: {error}") from error
        return accumulator

    def get_result(self, accumulator: Values) -> tuple[Any, ...]:
        for part, value in zip(self._parts, accumulator, strict=True):
            if part.operation == "sum" and isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise OverflowError(beyond_64_bits(part.name, value))
        return tuple(
            aggregate.result_of_one([accumulator[place] for place in places])
            for aggregate, places in zip(self._aggregates, self._places, strict=True)
        )

    def merge(self, one: Values, other: Values) -> Values:
        parts = zip(self._parts, one, other, strict=True)
        return [b if a is None else a if b is None else part.combine(a, b) for part, a, b in parts]

    def _values_of(self, record: Any) -> list[Any]:
        kind, getters = self._getters
        if kind is not type(record):
            getters = [getter_of(column, record) for column in self._columns]
            self._getters = (type(record), getters)
        try:
            return [get(record) for get in getters]
        except (AttributeError, KeyError, IndexError) as error:
            names = ", ".join(self._columns)
            raise UnusableRecord(f"aggregate: wanted a record with {names}, found {record!r:.120}: {error}") from error


class AggregatedRows(ProcessWindowFunction):
    """Emits a Row for each firing: the key columns, `window_start` and `window_end` if the window has them, and the
    aggregates.
    """

    def __init__(self, keys: Sequence[str], aggregates: Mapping[str, Aggregate], *, has_times: bool) -> None:
        self._has_times, self._keys = has_times, len(keys)
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise InvalidWindow(f"aggregate: {name}: {misgiven(aggregate, name)}")
        names = (*keys, *(WINDOW_COLUMNS if has_times else ()), *aggregates)
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidWindow(f"aggregate: two columns of the result are called {twice[0]!r}: choose another name")
        self._names, self._aggregates = names, dict(aggregates)

    def _check_columns(self, schema: pa.Schema) -> None:
        for aggregate in self._aggregates.values():
            aggregate.check(schema)

    def process(self, window: Window, records: Sequence[Any], out: Collector) -> None:
        (results,) = records
        key = self.operator.key
        keys = (key,) if self._keys == 1 else key if self._keys else ()
        times = (window.start, window.end) if self._has_times else ()
        out.collect(row_type(self._names)(*keys, *times, *results))
