"""Named aggregates over records come to what they come to over columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Avg, Count, InvalidWindow, Max, Min, Row, Sum, global_window, sliding, tumbling
from understudy.actors.errors import UnusableRecord, UserCodeError
from understudy.actors.windows.record_aggregation import AggregatedRows, RecordAggregation
from understudy.actors.windows.window_contents import Aggregated
from understudy.actors.windows.window_operator import WindowOperator
from understudy.actors.windows.window_settings import WindowSettings
from understudy.state.columnar.columnar_table import ColumnarTable
from understudy.state.columns.column_values import Numbers, column_of
from understudy.state.kinds.aggregates import Aggregate, Part

from .window_stage import WindowStage


@dataclass(frozen=True, slots=True)
class Spread(Aggregate):
    """An aggregate that no operator knows by its class."""

    column: str

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(operation, self.column) for operation in ("max", "min", "count"))

    def result(self, values: Sequence[Numbers], kinds: Sequence[pa.DataType]) -> pa.Array:
        most, least, count = values
        return column_of(most - least, kinds[0], count > 0)

    def result_of_one(self, values: Sequence[Any]) -> Any:
        most, least, count = values
        return most - least if count else None


ALL = {
    "rows": Count(),
    "values": Count("x"),
    "total": Sum("x"),
    "mean": Avg("x"),
    "least": Min("x"),
    "most": Max("x"),
    "last": Max("y"),
    "spread": Spread("y"),
}
integers = st.none() | st.integers(-100, 100)
floats = st.none() | st.sampled_from([math.nan, -1.5, 0.0, 2.25, 1e10])


def plain(results: Any) -> list[str]:
    """NaNs are equal."""
    return [repr(value) for value in results]


@given(st.sampled_from([integers, floats]).flatmap(lambda xs: st.lists(st.tuples(xs, integers), min_size=1)), st.data())
def test_records_come_to_what_their_columns_come_to(rows: list[tuple[Any, Any]], data: Any) -> None:
    kind = pa.float64() if any(isinstance(x, float) for x, _ in rows) else pa.int64()
    batch = pa.record_batch(
        {
            "k": [1] * len(rows),
            "x": pa.array([x for x, _ in rows], kind),
            "y": pa.array([y for _, y in rows], pa.int64()),
        }
    )
    table = ColumnarTable.for_input(["k"], ALL, batch.schema)
    table.update(batch)
    (wanted,) = table.results(table.all_slots()).to_pylist()
    aggregation = RecordAggregation(ALL)
    cut = data.draw(st.integers(0, len(rows)))
    parts = [aggregation.create_accumulator(), aggregation.create_accumulator()]
    for position, (x, y) in enumerate(rows):
        half = position >= cut
        parts[half] = aggregation.add(parts[half], {"x": x, "y": y})
    found = aggregation.get_result(aggregation.merge(*parts))
    assert plain(found) == plain(wanted[name] for name in ALL)


@dataclass
class Bid:
    auction: str
    price: int


@pytest.mark.parametrize("make", [Bid, lambda auction, price: {"auction": auction, "price": price}])
def test_rows_have_the_key_the_window_and_the_aggregates(make: Any) -> None:
    aggregates = {"bids": Count(), "best": Max("price")}
    rows = AggregatedRows(["auction"], aggregates, has_times=True)
    operator = WindowOperator(WindowSettings.of(sliding(20, 10)), Aggregated(RecordAggregation(aggregates)), rows)
    stage = WindowStage(operator, key_by="auction")
    stage.put(make("a", 3), make("a", 5), at=[12, 25])
    found = stage.advance(100)
    assert all(isinstance(row, Row) for row in found)
    assert [row.asdict() for row in found] == [
        {"auction": "a", "window_start": 0, "window_end": 20, "bids": 1, "best": 3},
        {"auction": "a", "window_start": 10, "window_end": 30, "bids": 2, "best": 5},
        {"auction": "a", "window_start": 20, "window_end": 40, "bids": 1, "best": 5},
    ]


def test_windows_that_go_by_no_time_have_no_such_columns() -> None:
    aggregates = {"n": Count()}
    settings = WindowSettings.of(global_window(), tumbling(1).default_trigger())
    rows = AggregatedRows([], aggregates, has_times=False)
    stage = WindowStage(WindowOperator(settings, Aggregated(RecordAggregation(aggregates)), rows))
    stage.put(("a", 1))
    assert [row.asdict() for row in stage.end()] == [{"n": 1}]


def test_a_record_without_the_column_is_named() -> None:
    operator = WindowOperator(WindowSettings.of(tumbling(1)), Aggregated(RecordAggregation({"n": Sum("price")})))
    with pytest.raises(UserCodeError) as refused:
        WindowStage(operator, key_by="k").feed({"k": 1, "prize": 2}, at=[0])
    assert "wanted a record with price, found {'k': 1, 'prize': 2}" in str(refused.value.__cause__)


def test_a_value_that_cannot_be_added_is_named() -> None:
    aggregation = RecordAggregation({"n": Sum("price")})
    with pytest.raises(UnusableRecord, match=r"sum\(price\) of 'ten'"):
        aggregation.add(aggregation.create_accumulator(), {"price": "ten"})


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidWindow, match="two columns of the result are called 'window_end'"):
        AggregatedRows(["k"], {"window_end": Count()}, has_times=True)
    with pytest.raises(InvalidWindow, match=r"n: wanted an aggregate such as Count\(\)"):
        AggregatedRows(["k"], {"n": Count}, has_times=True)  # type: ignore[dict-item]
