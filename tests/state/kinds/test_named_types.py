"""A NewType, and the name of a `type` statement, is the type that it was given to: in what is stored, and checked."""

from __future__ import annotations

import sys
import typing
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from understudy.state import InvalidState
from understudy.state.columnar.value_kinds import ValueKinds
from understudy.state.kinds.descriptors import ValueState
from understudy.state.kinds.record_serializer import node_of
from understudy.state.kinds.storable_types import unstorable
from understudy.state.kinds.value_fit import fit_of

UserId = typing.NewType("UserId", int)
Owner = typing.NewType("Owner", UserId)


@dataclass
class Delay:
    minutes: int
    whose: Owner


class Place(NamedTuple):
    row: UserId
    column: int


STATEMENTS = """
type Count = int
type Delays = list[Delay]
type Many[T] = list[T]
type Turned[A, B] = dict[B, A]
type Itself[T] = T
type Rose = dict[str, Rose]
type Roses[T] = dict[T, Roses[T]]
type Away = list[Elsewhere]
type Sockets = list[socket.socket]
type Here = There
type There = Here
"""
needs_statements = pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no `type` statement")


def named(expression: str) -> Any:
    import socket

    names = {"Delay": Delay, "socket": socket}
    exec(STATEMENTS, names)
    return eval(expression, names)


def test_a_name_of_typing_extensions_is_stored_as_what_it_names() -> None:
    """On any Python, with types in the place of its parameters."""
    alias = pytest.importorskip("typing_extensions").TypeAliasType
    key, value = typing.TypeVar("key"), typing.TypeVar("value")
    turned: Any = alias("Turned", dict[value, list[key]], type_params=(key, value))  # type: ignore[valid-type]
    itself: Any = alias("Itself", key, type_params=(key,))
    assert node_of(turned[int, str]).schema == node_of(dict[str, list[int]]).schema
    assert node_of(itself[int]).schema == "int"
    assert node_of(alias("Many", list[int])).schema == node_of(list[int]).schema


def test_a_new_type_is_stored_as_what_it_names() -> None:
    assert node_of(Owner).schema == "int"
    assert node_of(list[UserId]).schema == node_of(list[int]).schema
    assert "Owner" not in str(node_of(Delay).schema)


@needs_statements
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Count", int),
        ("Count | None", int | None),
        ("Delays", list[Delay]),
        ("Many[int]", list[int]),
        ("Many[Count]", list[int]),
        ("Turned[int, str]", dict[str, int]),
        ("Itself[Delay]", Delay),
    ],
)
def test_the_name_of_a_type_statement_is_stored_as_what_it_names(name: str, meant: Any) -> None:
    assert node_of(named(name)).schema == node_of(meant).schema


@needs_statements
def test_values_are_held_against_what_the_name_stands_for() -> None:
    assert fit_of(named("Many[int]")).misfit(["a"]) is not None
    assert fit_of(named("Many[int]")).misfit([1]) is None
    assert fit_of(named("Turned[int, str]")).misfit({1: "a"}) is not None


@needs_statements
@pytest.mark.parametrize(
    ("name", "values"),
    [("Rose", {"a": {"b": {}}}), ("Roses[str]", {"a": {}}), ("Away", [1]), ("Here", 1)],
)
def test_one_that_names_itself_or_what_is_not_there_takes_what_comes(name: str, values: Any) -> None:
    hint = named(name)
    assert node_of(hint).schema
    assert fit_of(hint).misfit(values) is None
    assert not unstorable(hint)


@needs_statements
def test_a_class_that_cannot_be_stored_is_found_behind_the_name() -> None:
    assert unstorable(named("Sockets")).startswith("a socket.socket cannot be stored")


def test_a_compiled_operator_keeps_numbers_by_another_name() -> None:
    assert ValueKinds.of(ValueState(UserId, default=UserId(0))).fields == (int,)
    assert ValueKinds.of(ValueState(Place, default=Place(UserId(0), 0))).fields == (int, int)
    assert ValueKinds.of(ValueState(tuple[UserId, float], default=(UserId(0), 0.0))).fields == (int, float)


@needs_statements
def test_a_compiled_operator_refuses_a_name_that_stands_for_itself() -> None:
    with pytest.raises(InvalidState, match="of an int, float or bool"):
        ValueKinds.of(ValueState(named("Here"), default=0))
