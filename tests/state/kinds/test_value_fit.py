"""Which values fit which declared types, from the outside and with all that is in them."""

from __future__ import annotations

import typing
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import numpy as np
import pytest

from understudy.state.kinds.value_fit import ANYTHING, first_misfit, fit_of


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: float = 0.0


@dataclass
class Visit:
    name: str
    at: list[int] = field(default_factory=list)
    note: str = None  # type: ignore[assignment]


@dataclass
class LongVisit(Visit):
    pass


@dataclass
class Tree:
    value: int
    below: list[Tree] = field(default_factory=list)


class Named(typing.TypedDict):
    name: str


class HasName(typing.Protocol):
    name: str


UserId = typing.NewType("UserId", int)
T = typing.TypeVar("T")

FIT: list[tuple[Any, Sequence[Any]]] = [
    (int, [1, 2**70, True, Level.LOW, np.int64(3), np.bool_(True)]),
    (float, [1.5, 1, False, np.float32(0.5), np.float64(0.5), np.int8(1)]),
    (bool, [True, np.bool_(False)]),
    (str, ["a", np.str_("a")]),
    (bytes, [b"a"]),
    (date, [date(2026, 1, 1), datetime(2026, 1, 1)]),
    (Decimal, [Decimal(1)]),
    (Color, [Color.RED]),
    (list, [[1, "a"]]),
    (list[int], [[], [1, True, np.int64(2)]]),
    (set[str], [{"a"}]),
    (dict[str, list[float]], [{}, {"a": [1, 2.5]}]),
    (Counter, [Counter("a"), {"a": 1}]),
    (defaultdict[str, int], [defaultdict(int), {"a": 1}]),
    (tuple, [(), (1, "a"), Point(1)]),
    (tuple[int, str], [(1, "a")]),
    (tuple[int, int], [(1, 2)]),
    (tuple[int, ...], [(), (1, 2, 3)]),
    (Point, [Point(1, 2)]),
    (Visit, [Visit("a"), Visit("a", [1], "b")]),
    (Tree, [Tree(1, [Tree(2, [Tree(3)])])]),
    (int | None, [None, 1]),
    (list[int] | None, [None, [1]]),
    (int | str, [1, "a"]),
    (list[int] | list[str], [[1], ["a"], []]),
    (typing.Annotated[int, ["unhashable"]], [1]),
    (typing.Literal["a", 1], ["a", 1]),
    (UserId, [1]),
    (Named, [{"name": "a"}]),
    (Sequence[int], [[1], (1,)]),
    (typing.List, [[1]]),  # noqa: UP006 - as users write it
    *((anything, [1, "a", None, b"b"]) for anything in (Any, object, T, HasName, "int")),
]

FITTING = {str(hint): values for hint, values in FIT}

MISFIT: list[tuple[Any, Any, str]] = [
    (int, "a", "wanted int, found str 'a'"),
    (int, 1.0, "wanted int, found float 1.0"),
    (int, None, "wanted int, found None"),
    (int, np.float64(1.5), "wanted int, found float64 "),
    (int, np.timedelta64(1, "ns"), "wanted int, found timedelta64"),
    (float, "1", "wanted float, found str '1'"),
    (bool, 1, "wanted bool, found int 1"),
    (str, b"a", "wanted str, found bytes b'a'"),
    (bytes, bytearray(b"a"), "wanted bytes, found bytearray"),
    (Color, "red", "wanted Color, found str 'red'"),
    (list, (1,), "wanted list, found tuple (1,)"),
    (list[int], [1, "a"], "wanted int, found str 'a' at [1]"),
    (list[list[int]], [[1], [1, None]], "wanted int, found None at [1][1]"),
    (set[str], {1}, "wanted str, found int 1 at [0]"),
    (dict[str, int], {"a": "b"}, "wanted int, found str 'b' at ['a']"),
    (dict[str, int], {1: 1}, "wanted str, found int 1 at the key 1"),
    (tuple[int, str], (1, 2), "wanted str, found int 2 at [1]"),
    (tuple[int, str], (1,), "wanted tuple[int, str], found tuple (1,)"),
    (tuple[int, str], [1, "a"], "wanted tuple[int, str], found list [1, 'a']"),
    (tuple[int, int], (1, 2, 3), "wanted tuple[int, int], found tuple (1, 2, 3)"),
    (tuple[int, ...], (1, "a"), "wanted int, found str 'a' at [1]"),
    (Point, (1, 2.0), "wanted Point, found tuple (1, 2.0)"),
    (Point, Point("a"), "wanted int, found str 'a' at .x"),  # type: ignore[arg-type]
    (Visit, LongVisit("a"), "wanted Visit, found LongVisit"),
    (Visit, Visit("a", ["b"]), "wanted int, found str 'b' at .at[0]"),  # type: ignore[list-item]
    (Tree, Tree("a"), "wanted int, found str 'a' at .value"),  # type: ignore[arg-type]
    (int | None, "a", "wanted int | None, found str 'a'"),
    (list[int] | None, ["a"], "wanted int, found str 'a' at [0]"),
    (list[int] | list[str], [1, "a"], "wanted list[int] | list[str], found list [1, 'a']"),
    (typing.Literal["a"], 1, "wanted Literal['a'], found int 1"),
    (UserId, "a", "wanted int, found str 'a'"),
    (Named, [], "wanted Named, found list []"),
    (Sequence[int], {}, "wanted collections.abc.Sequence[int], found dict {}"),
]


@pytest.mark.parametrize(("hint", "values"), FIT, ids=lambda each: str(each)[:40])
def test_values_that_fit(hint: Any, values: Sequence[Any]) -> None:
    fit = fit_of(hint)
    assert list(map(fit.takes, values)) == [True] * len(values)
    assert fit.all_fit(values)
    assert list(map(fit.misfit, values)) == [None] * len(values)
    assert first_misfit(fit, values) is None


@pytest.mark.parametrize(("hint", "value", "text"), MISFIT, ids=lambda each: str(each)[:40])
def test_values_that_do_not(hint: Any, value: Any, text: str) -> None:
    fit = fit_of(hint)
    assert not fit.all_fit([value])
    assert str(fit.misfit(value)).startswith(text)
    assert fit.has_contents or not fit.takes(value), "what only a look inside shows is looked for there"
    fitting = FITTING.get(str(hint), [])
    assert first_misfit(fit, [*fitting, value, value]) == (len(fitting), fit.misfit(value))


def test_any_takes_everything_at_no_cost() -> None:
    for hint in (Any, object, int | Any, T, "int"):
        assert fit_of(hint) is ANYTHING
    assert not fit_of(list[Any]).has_contents
    assert not fit_of(int | str).has_contents


def test_what_a_serializer_makes_bytes_of_is_not_looked_into() -> None:
    fit = fit_of(list[int], "pickled")
    assert fit.all_fit([["a"]])
    assert not fit.takes("a")


def test_the_very_class_of_most_values_is_known() -> None:
    for hint, kind in ((int, int), (float, float), (list[int], list), (Visit, Visit), (str | None, str), (Any, None)):
        assert fit_of(hint).kind is kind
