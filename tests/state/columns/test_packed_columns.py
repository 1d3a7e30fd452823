"""Columns of a snapshot: what goes in comes out, of the same types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.messages import MalformedMessage, pack_plain, unpack_plain
from understudy.state.columns.packed_columns import chosen, column_of, packed, unpacked

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(), st.binary()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple))
ALIKE = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.integers(-200, 200)),
    st.lists(st.floats(allow_nan=False)),
    st.lists(st.tuples(st.integers(), st.floats(allow_nan=False), st.tuples(st.text(), st.booleans()))),
    st.lists(VALUES),
)


def typed(value: Any) -> Any:
    """Tells 1, 1.0 and True apart."""
    return (type(value), [typed(each) for each in value] if isinstance(value, list | tuple) else value)


@settings(deadline=None)
@given(items=ALIKE)
@example(items=[None, "a", None])
@example(items=["a", (), "a"])
def test_what_is_packed_comes_back_with_its_types(items: list[Any]) -> None:
    for several in (items, items * 64):  # many are looked at for their shape first
        stored = unpack_plain(pack_plain(packed(column_of(several), 0, len(several))))
        assert typed(unpacked(stored)) == typed(several)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        ["tuples"],
        ["plain", 1],
        ["<i8", b"123"],
        ["<c16", b""],
        ["tuples", ["plain", [1]], ["plain", []]],
        ["same", 1],
        ["same", 1, 0],
        ["same", 1, "2"],
    ],
)
def test_anything_else_is_malformed(content: Any) -> None:
    with pytest.raises(MalformedMessage):
        unpacked(content)


@pytest.mark.parametrize("item", [None, True, "text", b"bytes", 2**70, ()], ids=repr)
def test_one_object_is_packed_once(item: Any) -> None:
    content = packed(column_of([item] * 100), 10, 60)
    assert content == ["same", item, 50]
    assert typed(unpacked(content)) == typed([item] * 50)
    assert chosen(content, [3, 4, 5]) == ["same", item, 3]


@pytest.mark.parametrize("shared", [[], [1], ([],), {"a": 1}], ids=repr)
def test_an_object_that_can_change_is_packed_each_time(shared: Any) -> None:
    column = np.fromiter([shared] * 3, object, 3)
    first, second, _ = unpacked(unpack_plain(pack_plain(packed(column, 0, 3))))
    assert first == second == shared
    assert first is not second
