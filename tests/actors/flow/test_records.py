"""Records to columns and back, and what is told about a record that does not fit."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from enum import Enum
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.flow.map_columns import with_dicts
from understudy.actors.flow.records import (
    RecordMismatch,
    batch_of,
    conform,
    mapping_of,
    merged,
    rows_of,
    schema_problem,
    values_of,
)
from understudy.messages import row_type

from ..extension_types import Code

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
Named = namedtuple("Named", "a b")


class Kind(Enum):
    ONE = 1


@dataclass
class Record:
    a: int
    b: str


@pytest.mark.parametrize(
    "record", [row_type(("a", "b"))(1, "x"), Named(1, "x"), Record(1, "x"), {"a": 1, "b": "x"}], ids=type
)
def test_records_with_names_become_columns_by_name(record: Any) -> None:
    assert batch_of([record]).to_pylist() == [{"a": 1, "b": "x"}]
    reversed_schema = pa.schema([SCHEMA.field("b"), SCHEMA.field("a")])
    assert batch_of([record], reversed_schema).to_pylist() == [{"b": "x", "a": 1}]


def test_tuples_are_named_as_in_spark_or_by_the_schema() -> None:
    assert batch_of([(1, "x"), (2, None)]).to_pydict() == {"_1": [1, 2], "_2": ["x", None]}
    assert batch_of([(1, "x")], SCHEMA).to_pylist() == [{"a": 1, "b": "x"}]


def test_anything_else_is_one_column() -> None:
    assert batch_of([1, None]).to_pydict() == {"value": [1, None]}
    assert batch_of(["x"], pa.schema([("word", pa.string())])).to_pydict() == {"word": ["x"]}


def test_dicts_may_leave_out_what_is_nullable() -> None:
    assert batch_of([{"a": 1}, {"b": "x"}]).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
    assert batch_of([{"a": 1}], SCHEMA).to_pylist() == [{"a": 1, "b": None}]


def test_no_records_have_columns_only_by_schema() -> None:
    assert batch_of([], SCHEMA).schema == SCHEMA
    with pytest.raises(RecordMismatch, match="no schema"):
        batch_of([])


@pytest.mark.parametrize(
    ("records", "schema", "told"),
    [
        ([(1, "x"), (2, 3)], SCHEMA, r"record 1: column 'b' holds the int 3, wanted string .*\(2, 3\)"),
        (
            [{"a": 1}, {"a": 1.5}],
            pa.schema([("a", pa.int64())]),
            "record 1: column 'a' holds the float 1.5, wanted int64",
        ),
        ([1, 2, "x"], None, "record 2: column 'value' holds the str 'x', wanted int64, as in the records before it"),
        (
            [None, "\ud800"],
            None,
            "record 1: column 'value' holds the str '.ud800', wanted what a column of Arrow can hold",
        ),
        ([1 << 63, 1], None, "record 0: column 'value' holds the int 9223372036854775808, wanted what a column"),
        ([(1, 2), (1,)], None, "record 1 has 1 columns, the ones before it have 2"),
        ([(1, 2), {"a": 1}], None, "record 1 is a dict, the ones before it are tuple"),
        ([(1, 2, 3)], SCHEMA, r"missing a, b; extra _1, _2, _3 \(found columns _1, _2, _3; wanted a, b\)"),
        ([Record(1, "x")], pa.schema([("a", pa.int64())]), "extra b"),
        ([{"a": None}], pa.schema([pa.field("a", pa.int64(), nullable=False)]), "record 0: column 'a' is None"),
        (
            [{"kind": Kind.ONE}],
            None,
            r"holds the Kind .* before, as {\*\*row, 'kind': row\['kind'\]\.name}",
        ),
        ([2**70], None, "record 0: column 'value' holds the int"),
    ],
)
def test_a_record_that_does_not_fit_is_told(records: list[Any], schema: pa.Schema | None, told: str) -> None:
    with pytest.raises(RecordMismatch, match=told):
        batch_of(records, schema)


def test_batches_are_reordered_and_cast_without_loss() -> None:
    batch = pa.record_batch({"b": ["x"], "a": pa.array([1], pa.int8())})
    assert conform(batch, SCHEMA).schema == SCHEMA
    with pytest.raises(RecordMismatch, match=r"column 'a'.*double.*int64"):
        conform(pa.record_batch({"a": [1.5], "b": ["x"]}), SCHEMA)
    with pytest.raises(RecordMismatch, match="missing b"):
        conform(pa.record_batch({"a": [1]}), SCHEMA)


def test_schemas_are_compared_before_there_is_data() -> None:
    assert schema_problem(pa.schema([("b", pa.large_string()), ("a", pa.int32())]), SCHEMA) is None
    assert schema_problem(pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int8()))]), SCHEMA) == (
        "column 'b': found list<item: int8>, wanted string"
    )
    assert "missing b; extra c" in (schema_problem(pa.schema([("a", pa.int64()), ("c", pa.int64())]), SCHEMA) or "")


rows = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text() | st.none(), st.booleans()))


@given(rows.filter(bool))
def test_rows_come_back_as_they_went(records: list[tuple[Any, ...]]) -> None:
    schema = pa.schema([("n", pa.int64()), ("text", pa.string()), ("flag", pa.bool_())])
    assert [tuple(row) for row in rows_of(batch_of(records, schema))] == records
    assert batch_of(rows_of(batch_of(records, schema)), schema).equals(batch_of(records, schema))


def test_a_row_has_its_columns_by_name() -> None:
    (row,) = rows_of(pa.record_batch({"at": pa.array([datetime(2024, 1, 2)]), "odd name": [1]}))
    assert (row.at, row[1], row._columns) == (datetime(2024, 1, 2), 1, ("at", "odd name"))


def test_a_batch_without_columns_still_has_rows() -> None:
    assert len(rows_of(pa.table({"a": [1, 2]}).select([]).to_batches()[0])) in (0, 2)


@attrs.define
class AttrsLeg:
    origin: str
    _delay: int = 0


class ModelLeg(pydantic.BaseModel):
    origin: str
    delay: int = 0


@pytest.mark.parametrize(
    ("kind", "names"), [(AttrsLeg, ["origin", "_delay"]), (ModelLeg, ["origin", "delay"])], ids=["attrs", "pydantic"]
)
def test_attrs_and_models_have_their_fields_as_columns(kind: Any, names: list[str]) -> None:
    records = [kind(origin="A"), kind(origin="B")]
    batch = batch_of(records)
    assert batch.schema.names == names
    assert batch.to_pylist() == [{names[0]: origin, names[1]: 0} for origin in "AB"]
    assert [mapping_of(record) for record in records] == batch.to_pylist()
    with pytest.raises(RecordMismatch, match="record 1 is a str"):
        batch_of([records[0], "text"])


def test_arrays_of_one_dimension_become_lists() -> None:
    batch = batch_of([{"a": np.arange(2)}, {"a": np.arange(3)}])
    assert batch.to_pylist() == [{"a": [0, 1]}, {"a": [0, 1, 2]}]
    assert batch_of([np.arange(2.0)]).to_pylist() == [{"value": [0.0, 1.0]}]


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.array(1)], ids=["matrix", "scalar"])
def test_an_array_of_other_dimensions_is_refused_with_a_hint(array: Any) -> None:
    with pytest.raises(RecordMismatch, match=rf"record 1: column 'a' holds an array of {array.ndim} dimensions.*ravel"):
        batch_of([{"a": np.arange(2)}, {"a": array}])


def test_merged_batches_are_the_same_records_in_their_order() -> None:
    ones, empty = pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": pa.array([], pa.int64())})
    other = pa.record_batch({"m": [3]})
    found = merged([["a"], ["b"], ones, empty, ones, other, ["c"], empty, empty])
    assert [each if isinstance(each, list) else each.to_pydict() for each in found] == [
        *(["a", "b"], {"n": [1, 2, 1, 2]}, {"m": [3]}, ["c"], {"n": []}),
    ]


def test_columns_of_a_users_own_extension_type_have_records() -> None:
    column = pa.ExtensionArray.from_storage(Code(), pa.array(["x", "y"]))
    with pytest.raises(TypeError, match="unhashable"):
        hash(column.type)
    assert [tuple(row) for row in rows_of(pa.record_batch({"code": column}))] == [("x",), ("y",)]


def test_the_pairs_of_a_map_want_its_schema() -> None:
    records = [{"prices": [("lamp", 3)]}]
    with pytest.raises(RecordMismatch, match=r"column 'prices' holds the list .*want a schema with pa.map_"):
        batch_of(records)
    schema = pa.schema([("prices", pa.map_(pa.string(), pa.int64()))])
    assert batch_of(records, schema).to_pylist() == records


@pytest.mark.parametrize(
    ("kind", "us"),
    [
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("ns", tz="Europe/Berlin"), pa.timestamp("us", tz="Europe/Berlin")),
        (pa.duration("ns"), pa.duration("us")),
    ],
)
def test_a_column_of_nanoseconds_that_has_none_holds_pythons_times(kind: pa.DataType, us: pa.DataType) -> None:
    """As pandas' own columns are; Arrow makes pandas' times of it, which do not travel where they have nanoseconds."""
    whole = pa.array([-1_000, None, 1_767_225_600_123_456_000], pa.int64()).cast(kind)
    assert list(map(repr, values_of(whole))) == list(map(repr, whole.cast(us).to_pylist()))
    finer = pa.array([-1_000, None, 1], pa.int64()).cast(kind)
    assert values_of(finer) == finer.to_pylist()
    assert values_of(pa.array([], kind)) == []


FINE = pa.array([1_000, None, 2_001], pa.int64()).cast(pa.time64("ns"))
IN_OTHERS = [
    lambda array: array,
    lambda array: pa.ListArray.from_arrays([0, *range(1, len(array) + 1)], array),
    lambda array: pa.StructArray.from_arrays([array], ["at"]),
    lambda array: pa.MapArray.from_arrays([*range(len(array) + 1)], pa.array(range(len(array))), array),
]


@pytest.mark.parametrize("inside", IN_OTHERS, ids=["itself", "list", "struct", "map"])
def test_a_time_of_day_that_would_lose_nanoseconds_is_refused(inside: Callable[[pa.Array], pa.Array]) -> None:
    """Arrow cuts them off without a word."""
    for read in (values_of, lambda array: with_dicts(pa.record_batch([array], ["at"]))):
        with pytest.raises(RecordMismatch, match=r"has nanoseconds.*lose data: 2001.*cast its column to pa.time64"):
            read(inside(FINE))
        assert len(read(inside(FINE)[:2])) == 2
    assert values_of(FINE[:2]) == [time(microsecond=1), None]
