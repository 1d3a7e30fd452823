"""What a newcomer writes in the first hour says what to write in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    DuplicateName,
    InvalidProgram,
    InvalidState,
    KeyedOperator,
    LocalCluster,
    SchemaMismatch,
    StreamEnvironment,
    UnknownOperator,
    ValueState,
    bounded_out_of_orderness,
    tumbling,
)

PRODUCTS = pa.schema([("product", pa.string()), ("origin", pa.string())])
ORDERS = [{"product": "tea", "cents": 3}, {"product": "milk", "cents": 4}]


def _orders() -> Any:
    return StreamEnvironment().from_collection(ORDERS, name="orders")


def _as_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def test_a_lookup_join_of_records_names_the_side_and_how_it_gets_columns() -> None:
    env = StreamEnvironment()
    orders, products = env.from_collection(ORDERS), env.from_collection([{"product": "tea", "origin": "Assam"}])
    with pytest.raises(SchemaMismatch) as left:
        orders.lookup_join(products, on="product", name="join")
    assert "the columns of the stream are not known before the job runs" in str(left.value)
    assert ".map_batches(lambda batch: batch, schema=pa.schema([...]))" in str(left.value)
    columns = orders.map_batches(_as_columns, schema=pa.schema([("product", pa.string()), ("cents", pa.int64())]))
    with pytest.raises(SchemaMismatch, match="the columns of the table are not known"):
        columns.lookup_join(products, on="product", name="join")
    table = products.map_batches(_as_columns, schema=PRODUCTS)
    assert columns.lookup_join(table, on="product").schema.names == ["product", "cents", "origin"]  # type: ignore[union-attr]


def test_a_generator_that_was_read_before_is_warned_of() -> None:
    def rows() -> Iterator[int]:
        yield from (1, 2)

    used = rows()
    list(used)
    env = StreamEnvironment()
    with pytest.warns(
        UserWarning, match=r"from_collection: the generator rows gave no record.*make it again, or give a list"
    ):
        env.from_collection(used)


@pytest.mark.filterwarnings("error")
def test_what_is_empty_on_purpose_is_not_warned_of() -> None:
    env = StreamEnvironment()
    env.from_collection([])
    env.from_collection(number for number in range(2))


@pytest.mark.parametrize(
    ("written", "error", "told"),
    [
        (
            lambda: _orders().side_output("late"),
            InvalidProgram,
            r"found 'late': write side_output\(OutputTag\('late'\)\)",
        ),
        (
            lambda: _orders().key_by(lambda order: order["product"], "cents"),
            InvalidProgram,
            r"found a function beside 1 more: write one function of a record, which returns a tuple",
        ),
        (
            lambda: bounded_out_of_orderness("5s"),  # type: ignore[arg-type]
            ValueError,
            r"wanted a whole number of milliseconds or a timedelta, found '5s': write timedelta\(seconds=5\)",
        ),
        (
            lambda: tumbling("1 min"),  # type: ignore[arg-type]
            ValueError,
            r"found '1 min': write timedelta\(minutes=1\)",
        ),
        (
            lambda: tumbling("soon"),  # type: ignore[arg-type]
            ValueError,
            r"wanted a whole number of milliseconds or a timedelta, found 'soon'$",
        ),
        (
            lambda: ValueState("int"),
            InvalidState,
            r"ValueState: wanted a type such as int, found 'int': write the type itself",
        ),
    ],
)
def test_what_is_meant_is_written_out(written: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        written()


def test_a_name_that_a_loop_has_is_told_by_the_call_that_made_it() -> None:
    labels = StreamEnvironment().from_collection([{"vertex": 1, "label": 1}], name="labels")
    found = labels.delta_iterate(lambda changed: changed, key="vertex", improve=min, name="paths")
    with pytest.raises(DuplicateName, match=r"'paths' is taken by another operator, the delta-iterate of 'labels'"):
        found.collect(name="paths")


class Totals(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, order: Any, out: Any) -> None:
        out.collect(self.total.value())


def test_results_without_a_name_say_which_there_are() -> None:
    env = StreamEnvironment()
    env.from_collection(ORDERS).key_by("product").process(Totals).collect(name="totals")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        with pytest.raises(
            TypeError, match=r"results: name is missing: write job.results\(\"delays\"\), the name of a collect"
        ):
            job.results()  # type: ignore[call-arg]
        with pytest.raises(UnknownOperator, match="did you mean 'totals'"):
            job.results("total")
