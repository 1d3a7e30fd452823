"""A state that is named in the class, and not declared, is refused where the stream is built."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import (
    InvalidOperator,
    KeyedOperator,
    MapState,
    OperatorListState,
    Source,
    StreamEnvironment,
    ValueState,
)


class Processing(KeyedOperator):
    def process(self, record: Any, out: Any) -> None: ...


class OfItsType(Processing):
    n = ValueState[int]


class OfTheKind(Processing):
    n = ValueState


class Annotated(Processing):
    n: ValueState[int]


class ColonForEquals(Processing):
    n: ValueState(int, default=0)  # type: ignore[valid-type]


class ColonForEqualsEvaluated(Processing):
    """As in a module without `from __future__ import annotations`."""

    __annotations__ = {"n": ValueState(int, default=0), "seen": MapState(str, int)}


class OfTwoTypes(Processing):
    seen = MapState[str, int]


class Inheriting(OfItsType):
    """The mistake is its base's."""


class FromNowhere(Source):
    places = OperatorListState[int]

    def poll(self) -> Any: ...

    def offset(self) -> Any: ...

    def seek(self, offset: Any) -> None: ...


class Declaring(Annotated):
    n = ValueState(int)  # type: ignore[assignment]


class Setting(Annotated):
    """It has what is annotated, whatever that is."""

    def __init__(self) -> None:
        self.n: Any = 3


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (OfItsType, "OfItsType.n is ValueState[int], which declares no state: write n = ValueState(int, default=...)"),
        (OfTheKind, "OfTheKind.n is ValueState, which declares no state: write n = ValueState(type, default=...)"),
        (
            Annotated,
            "Annotated.n is only annotated, as ValueState[int], which declares no state: write n = ValueState(",
        ),
        (
            ColonForEquals,
            "ColonForEquals.n is only annotated, as ValueState(int, default=0), which declares no state: write n = V",
        ),
        (
            ColonForEqualsEvaluated,
            "ColonForEqualsEvaluated.n is only annotated, as ValueState(int), which declares no state: write n = V",
        ),
        (OfTwoTypes, "OfTwoTypes.seen is MapState[str, int], which declares no state: write seen = MapState(str, int)"),
        (Inheriting, "OfItsType.n is ValueState[int]"),
    ],
)
def test_what_is_no_declaration_is_refused(kind: type[KeyedOperator], text: str) -> None:
    stream = StreamEnvironment().from_collection([1]).key_by(lambda record: record)
    with pytest.raises(InvalidOperator) as raised:
        stream.process(kind)
    assert text in str(raised.value)


def test_the_same_of_a_source() -> None:
    with pytest.raises(InvalidOperator, match=r"write places = OperatorListState\(int\)"):
        StreamEnvironment().from_source(FromNowhere)


@pytest.mark.parametrize("kind", [Declaring, Setting])
def test_an_annotation_of_what_there_is_harms_nobody(kind: type[KeyedOperator]) -> None:
    StreamEnvironment().from_collection([1]).key_by(lambda record: record).process(kind)
