"""A type that no state can hold is refused by what it says, and one that does not say so is not."""

from __future__ import annotations

import socket
import typing
from abc import ABC
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NewType, Protocol, TypeVar

import attrs
import numpy as np
import numpy.typing as npt
import pydantic
import pytest

from understudy.messages import register_serializer
from understudy.state.errors import InvalidState
from understudy.state.kinds.descriptors import (
    FoldingState,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    ValueState,
)
from understudy.state.kinds.state_descriptions import describe_states
from understudy.state.kinds.storable_types import unstorable

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]

T = TypeVar("T")
UserId = NewType("UserId", int)
Wire = NewType("Wire", socket.socket)


class Plain:
    pass


class Event:
    """Only its subclasses travel."""


@dataclass
class Click(Event):
    at: int


class Shape(Protocol):
    pass


class Abstract(ABC):
    pass


class Side(Enum):
    BUY = 1


class Pair(NamedTuple):
    one: int
    other: Plain


@dataclass
class Inner:
    owner: socket.socket


@dataclass
class Outer:
    inners: list[Inner]


@dataclass
class Tree:
    children: list[Tree]
    value: Plain | None = None


@dataclass
class Fine:
    children: list[Fine]
    value: Unknown


@attrs.define
class WithAttrs:
    owner: Plain


class WithModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    owner: Plain


class Drawn:
    pass


class Drawing:
    name, version, type = "drawing", 1, Drawn

    def serialize(self, value: Any) -> bytes:
        return b""

    def deserialize(self, data: bytes, version: int) -> Any:
        return Drawn()


@pytest.mark.parametrize(
    "hint",
    [
        Any, object, int, str, None, type(None), float | None, int | str, Plain | int, Decimal, dict[str, list[int]],
        tuple[int, ...], set[str], list, Sequence[int], Mapping[str, int], OrderedDict, T, "Forward", UserId, Side,
        Literal["a"], Annotated[int, "positive"], Event, Click, Shape, Abstract, Fine, np.ndarray, np.float64,
        npt.NDArray[np.float64], list[Event], list[int], typing.Callable[[], int],
    ],
    ids=str,
)  # fmt: skip
def test_a_type_that_may_hold_what_can_be_stored_is_not_refused(hint: Any) -> None:
    assert unstorable(hint) == ""


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (socket.socket, "a socket.socket cannot be stored; allowed are None, bool"),
        (Plain, "Plain cannot be stored"),
        (list[Plain], "Plain cannot be stored"),
        (dict[str, list[Plain]], "Plain cannot"),
        (tuple[int, Plain], "Plain cannot"),
        (Plain | None, "Plain cannot"),
        (Annotated[Plain, "x"], "Plain cannot"),
        (Wire, "a socket.socket cannot"),
        (deque, "a collections.deque cannot"),
        (Inner, "a socket.socket (in field 'owner' of Inner) cannot be stored"),
        (Outer, "(in field 'owner' of Inner)"),
        (Tree, "(in field 'value' of Tree)"),
        (Pair, "(in field 'other' of Pair)"),
        (WithAttrs, "(in field 'owner' of WithAttrs)"),
        (WithModel, "(in field 'owner' of WithModel)"),
        (type, "a type cannot"),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_stored_is_named(hint: Any, text: str) -> None:
    why = unstorable(hint)
    assert text in why
    assert "understudy.register_serializer" in why


def test_a_registered_serializer_makes_its_type_storable() -> None:
    assert "Drawn cannot be stored" in unstorable(list[Drawn])
    register_serializer(Drawing())
    assert unstorable(list[Drawn]) == ""


@pytest.mark.parametrize(
    "declared",
    [
        ValueState(Plain),
        ListState(Plain),
        MapState(str, Plain),
        MapState(Plain, str),
        MapState(Plain, str, serializer=Drawing()),
        ReducingState(Plain, lambda one, _: one),
        FoldingState(Plain, Plain(), lambda one, _: one),
        OperatorListState(Plain),
    ],
    ids=repr,
)
def test_every_kind_of_state_is_checked(declared: Any) -> None:
    cls = type("Operator", (), {"held": declared})
    with pytest.raises(InvalidState, match=f"state 'held' is a {type(declared).__name__}: a .*Plain cannot be stored"):
        describe_states(cls)


@pytest.mark.parametrize(
    "declared", [ValueState(Plain, serializer=Drawing()), MapState(str, Plain, serializer=Drawing())]
)
def test_a_state_with_a_serializer_of_its_own_holds_anything(declared: Any) -> None:
    assert describe_states(type("Operator", (), {"held": declared}))
