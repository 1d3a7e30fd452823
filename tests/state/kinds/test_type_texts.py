"""A union is one type, however it is spelled, and whichever Python took the savepoint that names it."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

import pytest

from understudy.state.kinds.record_serializer import node_of, type_name
from understudy.state.kinds.schema_fit import is_converted, misfit
from understudy.state.kinds.type_texts import one_spelling

PAIRS: list[tuple[Any, Any, str]] = [
    (typing.Union[int, str], int | str, "int | str"),  # noqa: UP007 - as users write it
    (typing.Union[int, None, str], int | None | str, "int | None | str"),  # noqa: UP007
    (
        Mapping[str, typing.Optional[int]],  # noqa: UP045
        Mapping[str, int | None],
        "collections.abc.Mapping[str, int | None]",
    ),
]


@pytest.mark.parametrize(("older", "newer", "text"), PAIRS)
def test_both_spellings_have_one_name(older: Any, newer: Any, text: str) -> None:
    assert type_name(older) == type_name(newer) == text


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ("Union[int, str]", "int | str"),
        ("Optional[Literal[<Color.RED: 1>, <Color.TOP: 2>]]", "Literal[<Color.RED: 1>, <Color.TOP: 2>] | None"),
        ("Union[int, str, NoneType]", "int | str | None"),
        ("Mapping[str, Optional[Union[int, __main__.Line]]]", "Mapping[str, int | __main__.Line | None]"),
        ("Callable[[Union[int, str]], Literal['Union[x]', 'b']]", "Callable[[int | str], Literal['Union[x]', 'b']]"),
    ],
)
def test_a_savepoint_of_another_python_fits(stored: str, now: str) -> None:
    assert one_spelling(stored) == now
    assert misfit(now, stored) == misfit(stored, now) == ""
    assert not is_converted(now, stored)
    assert not is_converted({"record": "Order", "fields": {"of": now}}, {"record": "Order", "fields": {"of": stored}})


def test_values_of_the_other_spelling_are_taken_as_they_are() -> None:
    assert node_of(int | str).decoder("Union[int, str]") is None


def test_other_types_do_not_fit_for_that() -> None:
    assert misfit("int | str", "Union[int, bytes]") == "Union[int, bytes] does not become int | str"


def test_a_class_within_a_function_keeps_its_name() -> None:
    assert one_spelling("Union[int, made.<locals>.Line]") == "int | made.<locals>.Line"


def test_a_text_that_is_no_expression_is_left_alone() -> None:
    assert one_spelling("Union[int, a b]") == "Union[int, a b]"
