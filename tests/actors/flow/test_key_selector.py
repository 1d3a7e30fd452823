"""Keys of records of all kinds, and of Arrow batches; what has no key says so."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import attrs
import cloudpickle
import numpy as np
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.actors.flow.key_selector import (
    KeySelectionFailed,
    KeySelector,
    NoSuchColumn,
    NullKey,
    UnstableKey,
    UnusableKey,
)
from understudy.actors.flow.records import rows_of
from understudy.messages import DictRow, row_type
from understudy.state.keys.key_groups import InvalidKey, key_group

FLIGHTS = pa.RecordBatch.from_pydict({"origin": ["JFK", "EWR"], "day": [1, 2], "air time": [5.0, 7.5]})


@dataclass
class Flight:
    origin: str
    day: int


FlightTuple = namedtuple("FlightTuple", "origin day")

KINDS: dict[str, list[Any]] = {
    "dict": FLIGHTS.to_pylist(),
    "dataclass": [Flight("JFK", 1), Flight("EWR", 2)],
    "named tuple": [FlightTuple("JFK", 1), FlightTuple("EWR", 2)],
    "row": rows_of(FLIGHTS),
}


@pytest.mark.parametrize("records", [*KINDS.values(), FLIGHTS], ids=[*KINDS, "arrow"])
def test_a_key_by_name(records: Any) -> None:
    assert KeySelector("origin").keys(records) == ["JFK", "EWR"]
    assert KeySelector("origin", "day").keys(records) == [("JFK", 1), ("EWR", 2)]


@pytest.mark.parametrize("records", [rows_of(FLIGHTS), FLIGHTS, FLIGHTS.to_pylist()], ids=["row", "arrow", "dict"])
def test_a_column_whose_name_is_no_identifier(records: Any) -> None:
    assert KeySelector("air time").keys(records) == [5.0, 7.5]


@pytest.mark.parametrize("records", [rows_of(FLIGHTS), FLIGHTS, [("JFK", 1), ("EWR", 2)], [["JFK", 1], ["EWR", 2]]])
def test_a_key_by_position(records: Any) -> None:
    assert KeySelector(0).keys(records) == ["JFK", "EWR"]
    assert KeySelector(1, 0).keys(records) == [(1, "JFK"), (2, "EWR")]


def test_the_columns_of_a_plain_tuple_are_numbered_from_1() -> None:
    assert KeySelector("_2").keys([("JFK", 1), ("EWR", 2)]) == [1, 2]


def test_a_key_by_function_takes_rows_of_an_arrow_batch() -> None:
    selector = cloudpickle.loads(cloudpickle.dumps(KeySelector(lambda flight: flight.origin.lower())))
    assert selector.keys(FLIGHTS) == selector.keys(KINDS["dataclass"]) == ["jfk", "ewr"]
    assert selector.arrays(FLIGHTS) is None


def test_no_records_have_no_keys() -> None:
    assert KeySelector("origin").keys([]) == []
    assert KeySelector("origin", "day").keys([]) == []


def test_the_key_columns_of_an_arrow_batch() -> None:
    assert KeySelector("day", "origin").arrays(FLIGHTS) == [FLIGHTS["day"], FLIGHTS["origin"]]
    assert KeySelector("day").arrays([{"day": 1}]) is None


@given(st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1)), min_size=1), st.integers(1, 1000))
@settings(deadline=None)
def test_key_groups_are_those_of_the_keys(pairs: list[tuple[str, int]], maximum: int) -> None:
    batch = pa.RecordBatch.from_pydict(dict(zip("ab", map(list, zip(*pairs, strict=True)), strict=True)))
    for parts in [("a",), ("b",), ("a", "b"), (1,), (lambda record: (record[0], record[1]),)]:
        selector = KeySelector(*parts)
        expected = [key_group(key, maximum) for key in selector.keys(pairs if callable(parts[0]) else batch)]
        assert selector.key_groups(batch, maximum).tolist() == expected
        assert (
            selector.key_groups(batch.to_pylist() if isinstance(parts[0], str) else pairs, maximum).tolist() == expected
        )


@pytest.mark.parametrize("records", [pa.RecordBatch.from_pydict({"a": [1, None], "b": [1, 1]}), [(1, 1), (None, 1)]])
@pytest.mark.parametrize("parts", [(0,), (1, 0)])
def test_a_key_that_is_none_names_the_record(records: Any, parts: tuple[int, ...]) -> None:
    with pytest.raises(NullKey, match=r"key position 0 is None at record 1 of the batch: .*filter\(") as raised:
        KeySelector(*parts).keys(records)
    assert raised.value.position == 1
    with pytest.raises((NullKey, InvalidKey), match=r"at record 1 of the batch: .*filter"):
        KeySelector(*parts).key_groups(records, 128)


@pytest.mark.parametrize(
    ("records", "there"),
    [
        (FLIGHTS, "the batch has origin, day, air time"),
        (rows_of(FLIGHTS), "there is origin, day, air time"),
        ([{"origin": 1}], "there is origin"),
        ([Flight("JFK", 1)], "there is origin, day"),
        ([("JFK", 1)], r"there is a tuple of 2 items, which go by their positions: key_by\(0\)"),
        ([7], "there is only a value of type int"),
    ],
)
def test_a_missing_column_says_what_there_is(records: Any, there: str) -> None:
    with pytest.raises(NoSuchColumn, match=f"key column 'tail'.*{there}"):
        KeySelector("tail").keys(records)


@pytest.mark.parametrize("records", [FLIGHTS, rows_of(FLIGHTS), [DictRow(origin=1)], [Flight("JFK", 1)]], ids=type)
def test_a_missing_column_says_which_one_is_close(records: Any) -> None:
    with pytest.raises(NoSuchColumn, match=r"key column 'orgin' is not there.*; did you mean 'origin'\?"):
        KeySelector("orgin").keys(records)


def test_a_position_in_rows_of_several_shapes() -> None:
    records = [row_type(("a", "b"))(1, 2), row_type(("b", "c"))(3, 4), (5, 6)]
    assert KeySelector(1).keys(records) == [2, 4, 6]
    assert KeySelector(-1).keys(records[:1]) == [2]
    with pytest.raises(NoSuchColumn, match=r"key position 2 is not there.*; there is a, b$"):
        KeySelector(2).keys(records[:1])


def test_a_missing_column_of_a_later_record_names_that_record() -> None:
    with pytest.raises(NoSuchColumn, match=r"at record 2 of the batch: \{'b': 3\}; there is b") as raised:
        KeySelector("a").keys([{"a": 1}, {"a": 2}, {"b": 3}])
    assert raised.value.position == 2


@pytest.mark.parametrize("error", [ZeroDivisionError, StopIteration])
def test_a_key_function_that_raises_names_the_record(error: type[Exception]) -> None:
    def key(record: int) -> int:
        if record == 12:
            raise error
        return record

    with pytest.raises(KeySelectionFailed, match=f"raised {error.__name__} at record 2 of the batch: 12") as raised:
        KeySelector(key).keys([10, 11, 12, 13])
    assert raised.value.position == 2
    assert isinstance(raised.value.__cause__, error)


@pytest.mark.parametrize("parts", [(), ("a", len), (len, len)])
def test_a_selector_is_made_of_columns_or_of_one_function(parts: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="a key is made of"):
        KeySelector(*parts)


@pytest.mark.parametrize(
    "key", [[1], {}, {1}, 1j, object(), np.longdouble(1), np.array([1]), np.datetime64("NaT", "ns")]
)
def test_a_key_of_a_type_without_a_hash_is_refused_with_its_place(key: Any) -> None:
    selector = KeySelector(lambda record: key if record == 2 else 1)
    for use in (selector.keys, selector.keyed_rows, lambda batch: selector.key_groups(batch, 128)):
        with pytest.raises(
            UnusableKey, match=r"the key function's result at record 2 of the batch.*cannot be a key"
        ) as caught:
            use([0, 1, 2, 3])
        assert isinstance(caught.value, InvalidKey)
        assert caught.value.position == 2


@attrs.define
class Leg:
    origin: str
    delay: int = 0


class Visit(pydantic.BaseModel):
    origin: str


@pytest.mark.parametrize("records", [[Leg("A"), Leg("B")], [Visit(origin="A"), Visit(origin="B")]])
def test_attrs_and_models_are_keyed_by_the_names_of_their_fields(records: list[Any]) -> None:
    assert KeySelector("origin").keys(records) == ["A", "B"]
    with pytest.raises(NoSuchColumn, match="there is origin"):
        KeySelector("destination").keys(records)


def test_a_key_function_that_gives_another_key_each_time_is_refused() -> None:
    keys = iter(range(10))
    said = r"the key function \(\S+test_key_selector.py:\d+\) gave 0 .*and 1 when it was asked again.*before key_by"
    with pytest.raises(UnstableKey, match=said):
        KeySelector(lambda record: next(keys)).keys(["a"])


def test_a_function_is_asked_again_once() -> None:
    asked: list[str] = []
    selector = KeySelector(lambda record: (asked.append(record), float("nan"))[1])
    assert [len(selector.keys(batch)) for batch in ([], ["a", "b"], ["c"])] == [0, 2, 1]
    assert asked == ["a", "b", "a", "c"]
