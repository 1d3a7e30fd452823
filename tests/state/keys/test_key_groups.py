"""Key groups: the vectorised form against the scalar one. Flink's own figures are played in tests/conformance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.state.keys.key_groups import (
    InvalidKey,
    KeyGroupRange,
    java_hash,
    key_group,
    key_group_range,
    key_groups_of,
    mix,
    operator_index_of,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): INT64,
    pa.uint8(): st.integers(0, 255),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | INT64.map(float),
    pa.bool_(): st.booleans(),
    pa.string(): st.text() | st.text("abc", max_size=3),
    pa.large_string(): st.text(),
    pa.string_view(): st.text(),
    pa.dictionary(pa.int32(), pa.string()): st.text(max_size=2),
    pa.dictionary(pa.int8(), pa.int64()): st.integers(0, 5),
    pa.binary(): st.binary(),
    pa.decimal32(7, 2): st.decimals(-(10**4), 10**4, places=2),
    pa.decimal64(12, 2): st.decimals(-(10**9), 10**9, places=2),
    pa.uuid(): st.uuids(),
    pa.json_(pa.string()): st.text(),
    pa.decimal128(20, 3): st.decimals(-(10**12), 10**12, places=3),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("s"): st.datetimes().map(lambda value: value.replace(microsecond=0)),
    pa.timestamp("ns", "Europe/Vienna"): st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
        lambda value: value.replace(tzinfo=UTC)
    ),
    pa.time64("us"): st.times(),
    pa.time32("ms"): st.times().map(lambda value: value.replace(microsecond=0)),
    pa.duration("us"): st.timedeltas(timedelta(-(10**6)), timedelta(10**6)),
}


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    kind = draw(st.sampled_from(list(COLUMNS)))
    return pa.array(draw(st.lists(COLUMNS[kind], min_size=rows, max_size=rows)), kind)


@given(st.integers(1, 300), st.data())
@settings(deadline=None)
def test_the_owner_of_a_group_has_it_in_its_range(maximum: int, data: st.DataObject) -> None:
    parallelism = data.draw(st.integers(1, maximum))
    group = data.draw(st.integers(0, maximum - 1))
    owner = operator_index_of(group, maximum, parallelism)
    assert group in key_group_range(maximum, parallelism, owner).groups


@pytest.mark.parametrize(("maximum", "parallelism", "index"), [(4, 5, 0), (0, 1, 0), (2**15 + 1, 1, 0), (4, 2, 2)])
def test_a_range_that_cannot_be_is_refused(maximum: int, parallelism: int, index: int) -> None:
    with pytest.raises(ValueError, match="wanted"):
        key_group_range(maximum, parallelism, index)


def test_a_range_is_a_pair() -> None:
    assert key_group_range(10, 3, 1) == KeyGroupRange(first=4, last=6) == (4, 6)


@given(st.integers(1, 2**15), st.integers(1, 20).flatmap(columns))
@settings(deadline=None)
def test_a_column_has_the_groups_of_its_values(maximum: int, column: pa.Array) -> None:
    expected = [key_group(key, maximum) for key in column.to_pylist()]
    assert key_groups_of(column, maximum).tolist() == expected
    assert key_groups_of([column.slice(1)], maximum).tolist() == expected[1:]


@given(st.integers(1, 8).flatmap(lambda rows: st.tuples(columns(rows), columns(rows), columns(rows))))
@settings(deadline=None)
def test_several_columns_have_the_groups_of_their_tuples(keys: tuple[pa.Array, ...]) -> None:
    rows = zip(*(column.to_pylist() for column in keys), strict=True)
    assert key_groups_of(keys, 128).tolist() == [key_group(row, 128) for row in rows]


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
@settings(deadline=None)
def test_mixing_words_together_is_mixing_each(codes: list[int]) -> None:
    assert key_groups_of(np.array(codes), 2**15).tolist() == [mix(code) % 2**15 for code in codes]


NUMBERS = st.one_of(
    INT64, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False), st.booleans()
)


@given(NUMBERS)
@settings(deadline=None)
def test_equal_numbers_are_one_key(number: Any) -> None:
    for convert in (int, float, Decimal, Fraction, np.int64, np.float64, bool):
        try:
            other = convert(number)
        except (OverflowError, ValueError, TypeError):
            continue
        if other == number and hash(other) == hash(number):
            assert java_hash(other) == java_hash(number)


def test_numbers_of_any_size_and_scale() -> None:
    assert java_hash(10**400) == java_hash(Decimal("1E+400"))
    assert java_hash(Decimal("0.10")) == java_hash(Decimal("0.1")) == java_hash(Fraction(1, 10))
    assert java_hash(-0.0) == java_hash(0) == java_hash(False) == 0
    assert java_hash(2**63) == java_hash(2.0**63)
    assert java_hash(float("nan")) == java_hash(-float("nan"))


@given(st.datetimes(timezones=st.timezones()))
@settings(deadline=None)
def test_one_moment_is_one_key_in_every_time_zone(moment: datetime) -> None:
    assert java_hash(moment) == java_hash(moment.astimezone(timezone(timedelta(hours=5))))


@dataclass(frozen=True)
class Route:
    origin: str
    destination: str


@pytest.mark.parametrize(
    ("key", "java"),
    [
        ((1, "a"), 31 * (31 * 1 + 1) + 97),
        ((None, "a"), 31 * 31 + 97),
        ((), 1),
        (b"\x01\xff", 31 * (31 + 1) - 1),
        (frozenset((1, 2)), 3),
        (UUID("00000000-0000-0001-0000-000000000002"), 3),
        (date(1970, 1, 2), 1),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
        (time(0, 0, 1), 1_000_000),
        (1.5, 0x3FF80000),
        (Route("a", "b"), (31 + 97) * 31 + 98),
    ],
)
def test_other_keys_hash_as_documented(key: Any, java: int) -> None:
    assert java_hash(key) == java


@pytest.mark.parametrize("key", [None, [1], {"a": 1}, object(), (1, [2])])
def test_what_cannot_be_a_key_says_so(key: Any) -> None:
    with pytest.raises(InvalidKey, match=r"is not a key|cannot be a key"):
        java_hash(key)


def test_a_null_in_a_key_column_names_the_column_and_the_row() -> None:
    with pytest.raises(InvalidKey, match="key column 'tail' is None at record 1 of the batch; every record"):
        key_groups_of([pa.array([1, 2]), pa.array(["a", None])], 128, ["origin", "tail"])
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with pytest.raises(InvalidKey, match="key column 0 is None at record 1 of the batch; every record"):
        key_groups_of(encoded, 128)


def test_an_unused_null_of_a_dictionary_does_no_harm() -> None:
    encoded = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array([7, None, 9]))
    assert key_groups_of(encoded, 128).tolist() == [key_group(9, 128), key_group(7, 128)]


def test_a_column_of_lists_cannot_be_a_key() -> None:
    with pytest.raises(InvalidKey, match="list cannot be a key"):
        key_groups_of(pa.array([[1]]), 128)
