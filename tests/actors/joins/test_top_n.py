"""`top_n` and keeping the last, over columns and per record: applied, the changes give what sorting all gives."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.joins.record_top_n import RecordTopN
from understudy.actors.joins.top_n import TopN, TopRows
from understudy.actors.operators.operator import Operator
from understudy.runtime.simulation.harness.harness import OperatorHarness

from ...examples import examples
from .join_stage import Arrive, Step, play, scripts


def operators(n: int, is_descending: bool, is_columnar: bool, rank: str | None = "rank") -> Callable[[], Operator]:
    if is_columnar:
        return lambda: TopN(["key"], TopRows(n, ("a",), (is_descending,), rank))
    return lambda: RecordTopN(n, lambda record: record["a"], is_descending, ranked=rank is not None)


def keeping_the_last(is_columnar: bool) -> Callable[[], Operator]:
    if is_columnar:
        return lambda: TopN(["key"], TopRows(1, (), (), None, newest_first=True))
    return lambda: RecordTopN(1, None, True, ranked=False)


def applied(changes: list[Any], *, ranked: bool = True) -> dict[Any, Any]:
    """By key the records by rank; each change must fit what was there."""
    there: dict[Any, dict[int, Any]] = defaultdict(dict)
    for kind, *row in changes:
        key, number, rank = (*row, 1)[:3]
        if kind in ("+I", "+U"):
            assert rank not in there[key], f"rank {rank} of {key} is taken by {there[key]}"
            there[key][rank] = number
        else:
            assert there[key].pop(rank) == number
    return {key: [held[rank] for rank in sorted(held)] for key, held in there.items() if held}


def flat(result: Any) -> Any:
    kind, record, *rank = result
    return (kind, *record, *rank)


def by_key(script: list[Step]) -> dict[int, list[tuple[int, int]]]:
    found = defaultdict(list)
    for key, number, at in (row for step in script if isinstance(step, Arrive) for row in step.rows):
        found[key].append((number, at))
    return found


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts(inputs=1), n=st.integers(1, 3), is_descending=st.booleans(), is_timed=st.booleans())
@examples(80)
def test_the_changes_give_the_first_n_of_each_key(
    is_columnar: bool, script: list[Step], n: int, is_descending: bool, is_timed: bool
) -> None:
    played = play(operators(n, is_descending, is_columnar), script, is_columnar=is_columnar, is_timed=is_timed)
    changes = played.records() if is_columnar else list(map(flat, played.records()))
    found = applied(changes)
    for key, several in by_key(script).items():
        ordered = sorted((number for number, _ in several), reverse=is_descending)
        assert found.pop(key) == ordered[:n]
    assert not found


@pytest.mark.parametrize("is_columnar", [True, False])
@given(script=scripts(inputs=1), is_timed=st.booleans())
@examples(80)
def test_keeping_the_last_goes_by_event_time_and_then_by_arrival(
    is_columnar: bool, script: list[Step], is_timed: bool
) -> None:
    played = play(keeping_the_last(is_columnar), script, is_columnar=is_columnar, is_timed=is_timed)
    changes = played.records() if is_columnar else list(map(flat, played.records()))
    found = applied(changes, ranked=False)
    for key, several in by_key(script).items():
        last = max(enumerate(several), key=lambda item: ((item[1][1] if is_timed else 0), item[0]))
        assert found.pop(key) == [last[1][0]]
    assert not found


@pytest.mark.parametrize("is_columnar", [True, False])
def test_of_equal_records_the_first_that_came_is_better(is_columnar: bool) -> None:
    schema = pa.schema([("key", pa.int64()), ("price", pa.int64()), ("who", pa.string())])
    operator: Operator = TopN(["key"], TopRows(2, ("price",), (True,)))
    if not is_columnar:
        operator = RecordTopN(2, lambda record: record["price"], True)
    with OperatorHarness(operator, key_by="key", schemas=[schema] if is_columnar else []) as harness:
        for several in (["ann"], ["bob", "cy"], ["dan"]):
            records: Any = [{"key": 1, "price": 7, "who": who} for who in several]
            harness.process(pa.RecordBatch.from_pylist(records, schema) if is_columnar else records)
        found = harness.output()
    whose = [(each[0], each.who, each.rank) if is_columnar else (each[0], each[1]["who"], each[2]) for each in found]
    assert whose == [("+I", "ann", 1), ("+I", "bob", 2)]


def test_nulls_come_last_whichever_way_the_order_is() -> None:
    schema = pa.schema([("key", pa.int64()), ("price", pa.float64())])
    prices = [None, 2.0, float("nan"), 5.0]
    batch = pa.RecordBatch.from_pydict({"key": [1] * 4, "price": prices}, schema)
    for is_descending, wanted in ((True, [5.0, 2.0]), (False, [2.0, 5.0])):
        make = TopN(["key"], TopRows(4, ("price",), (is_descending,)))
        with OperatorHarness(make, key_by="key", schemas=[schema]) as harness:
            for start in (0, 2):
                harness.process(batch.slice(start, 2))
            ranks = {each.rank: each.price for each in harness.output() if each.kind in ("+I", "+U")}
        assert [ranks[1], ranks[2]] == wanted
        assert math.isnan(ranks[3])
        assert ranks[4] is None


def test_a_column_without_an_order_is_refused() -> None:
    schema = pa.schema([("key", pa.int64()), ("who", pa.string())])
    with pytest.raises(ValueError, match="wanted columns of numbers or times to sort by, found 'who' of type string"):
        TopN(["key"], TopRows(1, ("who",), (True,))).output_schema(schema)


def test_many_changes_of_one_key_leave_little_behind() -> None:
    schema = pa.schema([("key", pa.int64()), ("a", pa.int64())])
    with OperatorHarness(operators(3, True, True)(), key_by="key", schemas=[schema]) as harness:
        for number in range(0, 40_000, 100):
            values = list(range(number, number + 100))
            harness.process(pa.RecordBatch.from_pydict({"key": [1] * 100, "a": values}, schema))
        store = harness.operator.keyed_state.stores[0]
        assert store.live_count == 3
        changes = [tuple(each) for each in harness.output()]
    assert applied(changes) == {1: [39_999, 39_998, 39_997]}


@pytest.mark.parametrize("is_descending", [True, False])
@given(numbers=st.lists(st.sampled_from([None, math.nan, 1.0, 2.0, -3.0, math.inf]), min_size=1, max_size=8))
@examples(50)
def test_nulls_come_last_and_nans_before_them_over_columns_and_per_record(
    is_descending: bool, numbers: list[float | None]
) -> None:
    schema = pa.schema({"key": pa.int64(), "a": pa.float64()})
    records = [{"key": 1, "a": number} for number in numbers]
    found = []
    for is_columnar in (True, False):
        with OperatorHarness(operators(5, is_descending, is_columnar)(), key_by="key", schemas=[schema]) as harness:
            for record in records:
                harness.process(pa.RecordBatch.from_pylist([record], schema) if is_columnar else [record])
            rows = harness.output()
        changes = [row if is_columnar else (row[0], *row[1].values(), row[2]) for row in map(tuple, rows)]
        found.append([(kind, key, repr(number), rank) for kind, key, number, rank in changes])
    assert applied(found[0]) == applied(found[1])


def test_values_that_are_several_are_compared_one_by_one() -> None:
    with OperatorHarness(RecordTopN(2, lambda record: record, False), key_by=lambda _: 0) as harness:
        harness.process([(1.0, None), (1.0, 2.0), (math.nan, 1.0), (1.0, math.nan)])
        assert applied([(kind, 0, repr(record), rank) for kind, record, rank in harness.output()]) == {
            0: ["(1.0, 2.0)", "(1.0, nan)"]
        }
