"""Serialisers by type: every value comes back, and a changed declaration migrates or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

import attrs
import pydantic
import pytest

from understudy.messages import UnsupportedValue, find_serializer, pack_plain, register_serializer, unpack_plain
from understudy.state.kinds.record_serializer import MigratingNode, TypeNode, node_of
from understudy.state.kinds.schema_fit import SchemaMismatch, misfit, schema_text


class Colour(Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class Leg:
    origin: str
    delay: float | None = None


@dataclass
class Trip:
    legs: list[Leg]
    by_day: dict[int, Leg] = field(default_factory=dict)
    colour: Colour = Colour.RED
    total: int = field(init=False, default=0)


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


class Reversed:
    """A user's serialiser: texts backwards; version 1 wrote them forwards."""

    name = "reversed"
    version = 2

    def serialize(self, value: str) -> bytes:
        return value[::-1].encode()

    def deserialize(self, data: bytes, version: int) -> str:
        return data.decode() if version == 1 else data.decode()[::-1]


class ReversedBefore(Reversed):
    version = 1

    def serialize(self, value: str) -> bytes:
        return value.encode()


def trip() -> Trip:
    made = Trip([Leg("JFK", 1.5), Leg("LGA")], {1: Leg("EWR")}, Colour.BLUE)
    made.total = 7
    return made


def moved(value: Any, writer: TypeNode, reader: TypeNode) -> Any:
    """Written under one declaration, through the bytes of a snapshot, and read under another."""
    encode = writer.encode
    raw, schema = unpack_plain(pack_plain([encode(value) if encode else value, writer.schema]))
    decode = reader.decoder(schema)
    return decode(raw) if decode else raw


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 2**70),
        (float, 1.5),
        (str, "ß"),
        (Any, {"a": (1, [2])}),
        (tuple, (1, "a")),
        (set[int], {1, 2}),
        (datetime, datetime(2013, 1, 1, tzinfo=UTC)),
        (list[Point], [Point(1, 2.0), Point(3)]),
        (dict[str, list[Leg]], {"a": [Leg("JFK")], "b": []}),
        (Leg | None, None),
        (Leg | None, Leg("JFK", 0.0)),
        (Colour, Colour.BLUE),
        (Trip, trip()),
        (Tree, Tree(1, [Tree(2), Tree(3, [Tree(4)])])),
    ],
)
def test_a_value_comes_back_equal_and_of_its_type(hint: Any, value: Any) -> None:
    found = moved(value, node_of(hint), node_of(hint))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        (int, float, 3, 3.0),
        (bool, int, True, 1),
        (list[int], list[float], [1, 2], [1.0, 2.0]),
        (dict[str, int], dict[str, float], {"a": 1}, {"a": 1.0}),
        (int, int | None, 3, 3),
        (int | None, float | None, None, None),
        (str, Any, "a", "a"),
    ],
)
def test_a_wider_type_migrates(old: Any, new: Any, value: Any, expected: Any) -> None:
    found = moved(value, node_of(old), node_of(new))
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (float, int), (str, int), (list[int], int), (int, list[int]), (int | None, int),
        (dict[str, int], list[str]), (Leg, Point), (Leg, dict), (Colour, int), (list[str], list[int]),
    ],
)  # fmt: skip
def test_a_type_that_does_not_fit_is_refused(old: Any, new: Any) -> None:
    with pytest.raises(SchemaMismatch, match="does not become"):
        node_of(new).decoder(node_of(old).schema)


def record(*fields: Any, name: str = "Flight") -> type:
    return make_dataclass(name, fields)


def test_a_record_gains_defaulted_fields_loses_fields_and_widens_fields() -> None:
    old = record(("gone", str), ("delay", int))
    new = record(("delay", float), ("tags", list, field(default_factory=list)), ("note", str, "none"))
    found = moved(old("x", 3), node_of(old), node_of(new))
    assert found == new(3.0, [], "none")
    assert type(found.delay) is float


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (record(("delay", int), ("origin", str)), "'origin' is new and has no default"),
        (record(("delay", str)), "int does not become str"),
        (record(("delay", int), name="Train"), r"Flight\(delay: int\) does not become Train"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(new: type, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        node_of(new).decoder(node_of(record(("delay", int))).schema)


def test_a_subclass_is_not_cut_down_in_silence() -> None:
    sub = make_dataclass("Sub", [("more", int)], bases=(record(("delay", int)),))
    encode = node_of(sub.__bases__[0]).encode
    assert encode is not None
    with pytest.raises(UnsupportedValue, match="a Sub was put where Flight is declared"):
        encode(sub(1, 2))


def test_a_users_serializer_reads_its_older_versions_and_refuses_newer_ones() -> None:
    register_serializer(Reversed())
    old, new = node_of(str, ReversedBefore()), node_of(str, "reversed")
    assert moved("abc", new, new) == moved("abc", old, new) == "abc"
    with pytest.raises(SchemaMismatch, match="version 2 is newer than 1"):
        old.decoder(new.schema)
    with pytest.raises(SchemaMismatch, match="str does not become str by serializer 'reversed' version 2"):
        new.decoder(node_of(str).schema)
    with pytest.raises(LookupError, match=r"'png'.*'reversed'"):
        find_serializer("png")


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (dict[str, list[int]], "dict[str, list[int]]"),
        (float | None, "float | None"),
        (Point, "Point(x: int, y: float)"),
        (Colour, "Colour"),
        (tuple[int, str], "tuple[int, str]"),
        (Any, "Any"),
    ],
)
def test_schemas_read_like_types(hint: Any, text: str) -> None:
    assert schema_text(node_of(hint).schema) == text


UNTYPED: list[tuple[Any, Any, Any]] = [
    (int, 7, 7),
    (float, 7, 7.0),
    (str, "a", "a"),
    (list[int], [1, 2], [1, 2]),
    (dict[str, float], {"a": 1}, {"a": 1.0}),
    (int | None, None, None),
    (Point, Point(1, 2.0), Point(1, 2.0)),
    (list[Point], [Point(1, 2.0)], [Point(1, 2.0)]),
    (Colour, Colour.RED, Colour.RED),
    (Colour, Colour.RED.value, Colour.RED),
    (tuple[int, str], (1, "a"), (1, "a")),
]


@pytest.mark.parametrize(("hint", "stored", "value"), UNTYPED)
@pytest.mark.parametrize("untyped", [Any, object])
def test_what_was_stored_without_a_type_gets_one_if_it_is_one(hint: Any, stored: Any, value: Any, untyped: Any) -> None:
    decode = node_of(hint).decoder(node_of(untyped).schema)
    found = stored if decode is None else decode(stored)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("hint", "stored"),
    [(int, "a"), (int, 1.5), (str, 7), (list[int], {"a": 1}), (list[int], ["a"]), (dict[str, int], []), (Point, 7)],
)
def test_what_is_of_another_type_is_refused_when_it_is_read(hint: Any, stored: Any) -> None:
    decode = node_of(hint).decoder(node_of(Any).schema)
    assert decode is not None
    with pytest.raises(SchemaMismatch, match="which was stored as Any, wanted "):
        decode(stored)


@pytest.mark.parametrize("around", ["list", "map", "optional"])
def test_what_a_serializer_has_to_make_is_refused_by_the_schema_wherever_it_stands(around: str) -> None:
    schema = {"serializer": "reversed", "version": 1, "type": "str"}
    declared = {around: ["str", schema] if around == "map" else schema}
    assert "Any does not become str by serializer 'reversed'" in misfit(declared, "Any")


def test_what_has_a_function_for_untyped_values_migrates_by_it() -> None:
    migrating = MigratingNode(node_of(int), ((node_of(Any), len),))
    decode = migrating.decoder(node_of(Any).schema)
    assert decode is not None
    assert decode("abc") == 3


@pytest.mark.parametrize("hint", [int, list[str], dict[str, float], Any, int | None])
def test_plain_types_are_not_converted_at_all(hint: Any) -> None:
    node = node_of(hint)
    convert: Callable[[Any], Any] | None = node.decoder(node.schema)
    assert node.encode is None
    assert convert is None


@attrs.frozen
class AttrsLeg:
    origin: str
    _delay: float = 0.0


class ModelTrip(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", arbitrary_types_allowed=True)
    legs: list[AttrsLeg]
    colour: Colour = Colour.RED
    _secret: int = pydantic.PrivateAttr(default=1)


def test_attrs_classes_and_models_come_back_with_all_that_they_hold() -> None:
    trip = ModelTrip(legs=[AttrsLeg("A", 1.5)], more=5)  # type: ignore[call-arg]
    trip._secret = 9
    back = moved(trip, node_of(ModelTrip), node_of(ModelTrip))
    assert back == trip
    assert (back._secret, back.model_extra, back.model_fields_set) == (9, {"more": 5}, {"legs", "more"})


def test_attrs_classes_and_models_gain_and_lose_fields() -> None:
    old = type("Flight", (pydantic.BaseModel,), {"__annotations__": {"origin": str, "delay": int}})
    new_fields = {"delay": float, "note": str, "tags": list[str]}
    defaults = {"note": "none", "tags": pydantic.Field(default_factory=list)}
    new = type("Flight", (pydantic.BaseModel,), {"__annotations__": new_fields, **defaults})
    found = moved(old(origin="A", delay=3), node_of(old), node_of(new))
    assert found == new(delay=3.0)
    assert type(found.delay) is float
    as_attrs = attrs.make_class("Flight", {"delay": attrs.field(type=int), "tags": attrs.field(factory=list)})
    assert moved(old(origin="A", delay=3), node_of(old), node_of(as_attrs)) == as_attrs(3)
    with pytest.raises(SchemaMismatch, match="'origin' is new and has no default"):
        node_of(old).decoder(node_of(as_attrs).schema)


def test_a_class_with_a_registered_serializer_is_written_by_it_wherever_it_stands() -> None:
    class Backwards(Reversed):
        name = "backwards"
        type = Backward

    register_serializer(Backwards())
    node = node_of(list[Backward])
    assert node.schema == {"list": {"serializer": "backwards", "version": 2, "type": "Backward"}}
    assert moved([Backward("abc")], node, node) == ["abc"]


class Backward(str):
    """A type of its own for a serializer of its own."""

    __slots__ = ()
