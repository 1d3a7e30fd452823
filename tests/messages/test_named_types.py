"""Fields of messages may have names of types: a NewType, or that of a `type` statement."""

from __future__ import annotations

import sys
import typing
from enum import Enum
from typing import Any, NewType

import pytest
import typing_extensions

from understudy.messages import MalformedMessage, UnsupportedValue, decode, encode, message
from understudy.messages.codec import decode_thoroughly, encode_thoroughly
from understudy.messages.named_types import meant
from understudy.messages.tables import pack_table, unpack_table
from understudy.messages.usual_fields import usual_from_wire, usual_to_wire

named: Any = getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType)
"""What a `type` statement makes, on this Python or from 3.12 on."""


class Colour(Enum):
    RED = "red"


@message
class Place:
    row: int
    column: int


@message
class Way:
    to: str


Anything = typing.TypeVar("Anything")

Number = named("Number", int)
Seat = NewType("Seat", Number)
Shade = named("Shade", Colour)
Perhaps = named("Perhaps", Number | None)
Many = named("Many", tuple[Anything, ...], type_params=(Anything,))
Either = named("Either", Place | Way)
ByName = named("ByName", dict[str, Perhaps])
APlace = named("APlace", Place)


@message
class Visit:
    number: Number
    seat: Seat
    shade: Shade
    perhaps: Perhaps
    still: Perhaps | None
    many: Many[Number]
    deep: Many[Many[int]]
    either: Either
    neither: Either | None
    by_name: ByName
    place: APlace | None


VISIT = Visit(
    number=1,
    seat=typing.cast(Any, 2),
    shade=Colour.RED,
    perhaps=None,
    still=3,
    many=(1, 2),
    deep=((1,), ()),
    either=Way("home"),
    neither=None,
    by_name={"a": 1, "b": None},
    place=Place(4, 5),
)


@pytest.mark.parametrize("write", [encode, encode_thoroughly])
@pytest.mark.parametrize("read", [decode, decode_thoroughly])
def test_a_message_whose_fields_have_names_of_types_comes_back(write: Any, read: Any) -> None:
    assert read(write(VISIT)) == VISIT


def test_it_is_a_usual_case() -> None:
    assert usual_to_wire(VISIT, 20)[1]["many"] == (1, 2)
    assert usual_from_wire(["tests.messages.test_named_types.Place", (("row", 1), ("column", 2))], 20) == Place(1, 2)


def test_a_wrong_value_is_found_behind_the_name() -> None:
    wrong = encode(VISIT).replace(b"\xa6number\x01", b"\xa6number\xc3")
    assert wrong != encode(VISIT)
    with pytest.raises(MalformedMessage, match=r"\.number: wanted int, found bool"):
        decode(wrong)


@message
class Line:
    number: Number
    perhaps: Perhaps
    many: Many[Number]
    place: APlace


def test_columns_of_a_table_may_have_them() -> None:
    lines = (Line(1, None, (1, 2), Place(3, 0)), Line(2, 5, (), Place(4, 5)))
    assert unpack_table(Line, pack_table(Line, lines)) == lines


# -- names that name themselves

STATEMENTS = """
type Here = There
type There = Here
type Twice[T] = Twice[list[T]]
type Tree = dict[str, Tree]
type Grove[T] = dict[str, Grove[tuple[T, ...]]]
type Itself[T] = T
type Away = Elsewhere
"""
needs_statements = pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no `type` statement")


def stated(expression: str) -> Any:
    names: dict[str, Any] = {}
    exec(STATEMENTS, names)
    return eval(expression, names)


@needs_statements
@pytest.mark.parametrize("name", ["Here", "Twice[int]", "Tree", "Grove[int]", "Away"])
def test_a_name_that_stands_for_itself_or_nothing_is_refused(name: str) -> None:
    class Odd:
        field: int

    Odd.__annotations__ = {"field": stated(name)}
    with pytest.raises(UnsupportedValue, match=r"Odd\.field: messages have no fields of type"):
        encode(message(Odd)(field=1))  # type: ignore[call-arg]


@needs_statements
def test_a_name_may_stand_in_itself() -> None:
    assert meant(stated("Itself[Itself[int]]")) is int
