"""Map, Filter, FlatMap and KeyedReduce: what they emit, and which record they name when user code raises."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.errors import UserCodeError
from understudy.actors.flow.key_selector import NullKey
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.filter import Filter
from understudy.actors.operators.flat_map import FlatMap
from understudy.actors.operators.keyed_operator import KeyedOperator
from understudy.actors.operators.map import Map
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.reduce import KeyedReduce
from understudy.actors.tasks.operator_chain import OperatorChain
from understudy.testing import OperatorHarness

Opened = Callable[..., Any]
Run = Callable[..., list[Any]]

DELAYS = pa.RecordBatch.from_pydict({"origin": ["JFK", "EWR", "LGA"], "delay": [5, None, 1]})


def test_map_makes_one_of_each(opened: Opened, run: Run) -> None:
    assert run(opened(Map(lambda n: n + 1)), [1, 2], [3]) == [[2, 3], [4]]


def test_flat_map_makes_any_number_of_each(opened: Opened, run: Run) -> None:
    def repeat(n: int) -> Iterator[int]:
        for _ in range(n):
            yield n

    assert run(opened(FlatMap(repeat)), [0, 1, 2], [0]) == [[1, 2, 2]]


def test_filter_keeps_records_in_order(opened: Opened, run: Run) -> None:
    assert run(opened(Filter(lambda n: n % 2)), [1, 2, 3], [4]) == [[1, 3]]


def test_filter_by_function_leaves_an_arrow_batch_columnar(opened: Opened, run: Run) -> None:
    (kept,) = run(opened(Filter(lambda row: row.delay)), DELAYS)
    assert kept == pa.RecordBatch.from_pydict({"origin": ["JFK", "LGA"], "delay": [5, 1]})


def helper_without_return(_record: Any) -> None: ...


@pytest.mark.parametrize("batches", [[[1, 2], [3]], [list(range(500))] * 3, [DELAYS]], ids=["few", "many", "Arrow"])
def test_a_filter_whose_results_are_all_none_is_named_once(
    opened: Opened, run: Run, batches: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    operator = opened(Filter(lambda record: helper_without_return(record)))
    run(operator, *batches)
    operator.on_end(Collector())
    assert len(re.findall(r"filter 'the-operator' \(.*:\d+\) returned None for each of its first", caplog.text)) == 1


@pytest.mark.parametrize(
    "condition", [lambda n: None if n < 4 else True, lambda n: False, lambda n: None if n else 0, pc.field("n") > 9]
)
def test_a_filter_that_gives_anything_else_is_not(
    opened: Opened, run: Run, condition: Any, caplog: pytest.LogCaptureFixture
) -> None:
    operator = opened(Filter(condition))
    records = pa.RecordBatch.from_pydict({"n": [1, 0, 4]}) if isinstance(condition, pc.Expression) else [1, 0, 4]
    run(operator, records)
    operator.on_end(Collector())
    assert "returned None" not in caplog.text


def test_filter_by_expression_takes_columns_and_records(opened: Opened, run: Run) -> None:
    operator = opened(Filter((pc.field("delay") > 1) & (pc.field("origin") != "EWR")))
    expected = pa.RecordBatch.from_pydict({"origin": ["JFK"], "delay": [5]})
    assert run(operator, DELAYS, DELAYS.to_pylist()) == [expected, expected]


def test_filter_by_expression_keeps_order_in_long_batches(opened: Opened, run: Run) -> None:
    batch = pa.RecordBatch.from_pydict({"n": list(range(200_000))})
    kept = pa.Table.from_batches(run(opened(Filter(pc.field("n") >= 3)), batch))
    assert kept["n"].to_pylist() == list(range(3, 200_000))


def test_filter_keeps_the_schema_and_checks_an_expression_against_it() -> None:
    assert Filter(bool).output_schema(DELAYS.schema) == DELAYS.schema
    assert Filter(pc.field("delay") > 1).output_schema(DELAYS.schema) == DELAYS.schema
    assert Filter(pc.field("delay") > 1).output_schema(None) is None
    with pytest.raises(ValueError, match=r"tail.*the stream has origin string, delay int64"):
        Filter(pc.field("tail") > 1).output_schema(DELAYS.schema)
    with pytest.raises(ValueError, match="the stream has"):
        Filter(pc.field("delay")).output_schema(DELAYS.schema)


class Raising(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        out.collect(fail_at_7(record))


def fail_at_7(n: int) -> int:
    if n == 7:
        raise StopIteration("seven")  # the one exception that `map` and `filter` of Python would swallow
    return n


@given(st.lists(st.lists(st.integers(0, 9), min_size=1), min_size=1))
@settings(deadline=None)
def test_an_error_names_the_record_counted_over_the_attempt(opened: Opened, run: Run, batches: list[list[int]]) -> None:
    records = [record for batch in batches for record in batch]
    position = records.index(7) if 7 in records else None
    operators: list[tuple[Operator, tuple[Any, ...]]] = [
        (Map(fail_at_7), ()),
        (Filter(fail_at_7), ()),
        (FlatMap(lambda n: [fail_at_7(n)]), ()),
        (Raising(), (lambda n: -n,)),
        (KeyedReduce(max), (fail_at_7,)),
    ]
    for operator, key in operators:
        error = _error(lambda operator=operator, key=key: run(opened(operator, *key), *batches))
        assert (None if error is None else error.record_position) == position
        assert error is None or error.operator_name == "the-operator"


class Leaving(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        leave_at_7(record)


def leave_at_7(n: int) -> int:
    if n == 7:
        sys.exit("a bad record")
    return n


@pytest.mark.parametrize("times", [None, [1, 2, 3]])
@pytest.mark.parametrize("operator", [Map(leave_at_7), Filter(leave_at_7), Leaving()], ids=["map", "filter", "process"])
def test_so_does_sys_exit(operator: Operator, times: list[int] | None) -> None:
    """Whoever writes it means this record."""
    key = (lambda record: record) if isinstance(operator, KeyedOperator) else None
    with OperatorHarness(operator, key_by=key) as harness, pytest.raises(UserCodeError) as raised:
        harness.process([1, 7, 2], timestamps=times)
    assert raised.value.record_position == 1
    assert isinstance(raised.value.__cause__, SystemExit)


def _error(act: Callable[[], Any]) -> UserCodeError | None:
    try:
        act()
    except UserCodeError as error:
        return error
    return None


def test_an_error_of_a_filter_over_columns_names_the_row(opened: Opened, run: Run) -> None:
    with pytest.raises(UserCodeError, match="at record 4 of this attempt"):
        run(opened(Filter(lambda row: row.delay > 0)), DELAYS.slice(0, 1), DELAYS.slice(2), DELAYS.slice(0, 1), DELAYS)


def test_an_error_in_a_generator_names_its_record(opened: Opened, run: Run) -> None:
    def parts(n: int) -> Iterator[float]:
        yield n
        yield 1 / n

    with pytest.raises(UserCodeError, match="at record 2 of this attempt") as raised:
        run(opened(FlatMap(parts)), [1, 2, 0, 4])
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_reduce_emits_each_new_result_of_its_key(opened: Opened, run: Run) -> None:
    operator = opened(KeyedReduce(lambda held, added: (held[0], held[1] + added[1])), 0)
    batches = [[("a", 1), ("b", 10), ("a", 2)], [("b", 20)]]
    assert run(operator, *batches) == [[("a", 1), ("b", 10), ("a", 3), ("b", 30)]]


def test_a_keyed_operator_names_the_record_without_a_key(opened: Opened, run: Run) -> None:
    with pytest.raises(UserCodeError, match="at record 3 of this attempt") as raised:
        run(opened(KeyedReduce(max), 0), [("a",), ("b",)], [("a",), (None,)])
    assert isinstance(raised.value.__cause__, NullKey)


FLIGHTS = pa.RecordBatch.from_pydict({"origin": ["JFK", "EWR", "JFK"], "delay": [5, 0, 1]})


def test_rows_of_an_arrow_batch_are_made_one_by_one(opened: Opened, run: Run) -> None:
    assert run(opened(Map(lambda row: (row.origin, row[1]))), FLIGHTS) == [[("JFK", 5), ("EWR", 0), ("JFK", 1)]]
    assert run(opened(FlatMap(lambda row: [row.delay] * 2)), FLIGHTS.slice(1)) == [[0, 0, 1, 1]]
    assert run(
        opened(KeyedReduce(lambda held, row: held._replace(delay=held.delay + row.delay)), "origin"), FLIGHTS
    ) == [[("JFK", 5), ("EWR", 0), ("JFK", 6)]]


@pytest.mark.parametrize("operator", [Map(lambda row: 1 / row.delay), FlatMap(lambda row: [1 / row.delay])])
def test_the_row_of_an_arrow_batch_at_fault_is_named(opened: Opened, run: Run, operator: Operator) -> None:
    operator = opened(operator)
    run(operator, FLIGHTS.slice(2))
    with pytest.raises(UserCodeError, match="2"):
        run(operator, FLIGHTS)


class Whole(KeyedOperator):
    def process_batch(self, batch: Any, out: Collector) -> None:
        out.collect(type(batch))


def test_an_operator_of_its_own_batches_gets_lists(opened: Opened) -> None:
    emitted: list[Any] = []
    OperatorChain([opened(Whole(), "origin")], emitted.append).process(FLIGHTS)
    assert emitted == [[list]]
