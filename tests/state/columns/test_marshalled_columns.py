"""Columns of tuples that are alike: exactly the numbers that went in, and nothing that is of another shape."""

from __future__ import annotations

from collections import namedtuple
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.state.columns.marshalled_columns import columns_of_alike

DIGIT = 1 << 15
SMALL = st.integers(-(2**31), 2**31 - 1)
FLOATS = st.floats(allow_nan=False)
LARGE = st.one_of(
    *(st.integers(low, high) for low, high in ((2**31, 2**45 - 1), (2**45, 2**60 - 1), (2**60, 2**63 - 1))),
    st.integers(-(2**45) + 1, -(2**31) - 1),
    st.integers(-(2**63) + 1, -(2**60)),
)


class Colour(IntEnum):
    RED = 1


Pair = namedtuple("Pair", "a b")


def listed(columns: Any) -> list[Any]:
    """The items again."""
    return list(zip(*map(listed, columns), strict=True)) if isinstance(columns, tuple) else columns.tolist()


@settings(deadline=None)
@given(items=st.lists(st.tuples(SMALL, FLOATS, st.tuples(SMALL)), min_size=1, max_size=300))
def test_tuples_of_one_shape_become_columns(items: list[Any]) -> None:
    columns = columns_of_alike(items)
    assert isinstance(columns, tuple)
    assert listed(columns) == items
    assert [type(each) for each in listed(columns)[0]] == [int, float, tuple]


@settings(deadline=None)
@given(items=st.lists(st.tuples(LARGE, SMALL), min_size=1, max_size=20))
def test_large_integers_are_exact_or_refused(items: list[Any]) -> None:
    columns = columns_of_alike(items)
    assert columns is None or listed(columns) == items
    one = columns_of_alike(items[:1])
    assert one is not None
    assert listed(one) == items[:1]


@pytest.mark.parametrize(
    "number", [0, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, DIGIT**4 - 1, DIGIT**4, 2**63 - 1, 1 - 2**63]
)
def test_integers_at_the_edges_of_their_sizes(number: int) -> None:
    columns = columns_of_alike([number] * 3)
    assert columns is not None
    assert listed(columns) == [number] * 3


@pytest.mark.parametrize(
    "odd", [True, None, 1.0, "1", 2**31, -(2**40), Colour.RED, np.int32(1), np.int64(1), (1,), [1], b"\0\0\0\0"]
)
@pytest.mark.parametrize("place", [0, 70, 199])
def test_one_item_of_another_kind_is_noticed_wherever_it_is(odd: Any, place: int) -> None:
    items: list[Any] = [(1, 2)] * 200
    items[place] = (1, odd)
    assert columns_of_alike(items) is None
    numbers: list[Any] = [1] * 200
    numbers[place] = odd
    assert columns_of_alike(numbers) is None


@pytest.mark.parametrize(
    "items",
    [
        [(1, 2), (1,), (1, 2, 3)],  # as many numbers in all as of one length
        [(2**31, 1), (-(2**31) - 1, 1)],
        [2**63 - 1, 2**63],
        [2**63],
        [-(2**63)],
        [2**75],
        [()],
        [[1, 2]],
        [Pair(1, 2)],
        [(1, Pair(1, 2))],
        [object()],
        [(1, 2), object()],
        [((((((1,),),),),),)],
    ],
)
def test_what_is_not_of_one_shape_of_numbers_is_refused(items: list[Any]) -> None:
    assert columns_of_alike(items) is None
