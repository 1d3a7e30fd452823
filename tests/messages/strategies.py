"""Hypothesis strategies for anything that can be said, derived from the types of the fields."""

from __future__ import annotations

import types
import typing
from dataclasses import fields
from datetime import timedelta, timezone
from enum import Enum
from functools import cache
from typing import Any, NewType

from hypothesis import strategies as st

import understudy.runtime.system
import understudy.state  # noqa: F401 - declares the messages of checkpoint metadata
from understudy.messages import DictRow, Message, Plain, Row, registered_messages, row_type

SECOND = timedelta(seconds=1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=8) | st.sampled_from(["", "\x00", "\udc80", "tm-0", "ü"])
OFFSETS = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).filter(lambda it: not it or abs(it) >= SECOND)
ZONES = st.builds(timezone, OFFSETS)
"""CPython's `fromisoformat` takes an offset of less than a second for UTC."""

_PRIMITIVES = {
    bool: st.booleans(),
    int: INT64,
    float: st.floats(allow_nan=False),
    str: TEXT,
    bytes: st.binary(max_size=8),
}


def vocabulary() -> dict[str, type]:
    """Every message of Understudy's own."""
    return {tag: cls for tag, cls in registered_messages().items() if cls.__module__.startswith("understudy.")}


def messages() -> st.SearchStrategy[Any]:
    """A message of any class of the vocabulary."""
    return st.sampled_from(list(vocabulary().values())).flatmap(instances)


@cache
def instances(cls: type) -> st.SearchStrategy[Any]:
    """A message of this class."""
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{field.name: _values(hints[field.name]) for field in fields(cls)})


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if isinstance(hint, NewType):
        return _values(hint.__supertype__)
    if hint is Plain:
        return plain_values()
    if hint is Message:
        return st.deferred(lambda: st.sampled_from(_simple()).flatmap(instances))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint]
    return _composed(hint)


def _composed(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return st.lists(_values(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(_values(arguments[0]), _values(arguments[1]), max_size=2)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(st.none() if arm is type(None) else _values(arm) for arm in arguments))
    return st.deferred(lambda: instances(hint))


@cache
def _simple() -> list[type]:
    """Classes without a field of any message, so that messages in messages come to an end."""
    return [
        cls
        for cls in vocabulary().values()
        if Message not in typing.get_type_hints(cls).values()
        and not {"question"} & {field.name for field in fields(cls)}
    ]


def plain_scalars() -> st.SearchStrategy[Any]:
    """Plain data that is hashable."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        TEXT,
        st.binary(max_size=8),
        st.datetimes(timezones=st.none() | ZONES),
        st.dates(),
        st.times(),
        st.timedeltas(),
        st.decimals(allow_nan=False),
        st.fractions(),
        st.complex_numbers(allow_nan=False),
        st.uuids(),
    )


def plain_values() -> st.SearchStrategy[Any]:
    """Plain data, nested."""
    hashable = st.recursive(plain_scalars(), lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=3)
    return st.recursive(
        hashable,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.tuples(inner, inner),
            st.dictionaries(hashable, inner, max_size=3),
            st.dictionaries(hashable, inner, max_size=3).map(DictRow),
            st.sets(hashable, max_size=3),
            st.lists(inner, min_size=1, max_size=3).map(_row),
        ),
        max_leaves=5,
    )


def _row(values: list[Any]) -> Row:
    return typing.cast(Row, row_type(tuple(f"c{index}" for index in range(len(values))))(*values))
