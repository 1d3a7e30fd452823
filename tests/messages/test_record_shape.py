"""Attrs classes and Pydantic models travel like dataclasses, and nothing of theirs runs when they are made again."""

from __future__ import annotations

import sys
from typing import Any

import msgpack
import pytest

pytest.importorskip("attrs")
pytest.importorskip("pydantic")

from understudy.messages import MalformedMessage, UnsupportedValue, pack_plain, shape_of, unpack_plain
from understudy.messages.record_types import record_parts

from . import model_samples
from .model_samples import Declared, Guarded, Leg, Loose, Numbers, Open, Route, Unset, Visit

HERE = model_samples.__name__


def there_and_back(value: Any) -> Any:
    return unpack_plain(pack_plain(value))


def sent(name: Any, parts: Any) -> Any:
    """What a peer gets who sends this name and these parts."""
    return unpack_plain(msgpack.packb(msgpack.ExtType(6, msgpack.packb([f"{HERE}:{name}", parts]))))


@pytest.mark.parametrize(
    "record",
    [Leg("JFK", 1.5), Route("A", "b"), Open(2, items=[1]), Visit(count=1, leg=Leg("x")), Loose(value=1), Numbers([1])],
    ids=lambda record: type(record).__name__,
)
def test_records_come_back_as_they_were(record: Any) -> None:
    back = there_and_back([record, {"in": (record,)}])
    assert back == [record, {"in": (record,)}]
    assert type(back[0]) is type(record)
    assert repr(back[0]) == repr(record)


def test_no_converter_validator_or_hook_runs_again() -> None:
    leg = Leg("JFK")
    leg.seen = 7
    back = there_and_back(leg)
    assert (back.origin, back.seen) == ("JFK!", 7)
    assert there_and_back(Visit(count=1)).count == 2


def test_a_frozen_class_that_caches_its_hash_can_still_be_hashed() -> None:
    route = Route("A")
    assert hash(there_and_back(route)) == hash(route)


def test_what_a_model_holds_beside_its_fields_comes_back() -> None:
    visit = Visit(count=1)
    visit._secret = 9
    back = there_and_back(visit)
    assert back.model_fields_set == {"count"}
    assert back._secret == 9
    loose = Loose(value=1, more=[1, 2])  # type: ignore[call-arg]
    assert there_and_back(loose) == loose
    assert there_and_back(loose).model_extra == {"more": [1, 2]}
    assert there_and_back(loose).model_fields_set == loose.model_fields_set
    assert there_and_back(Loose(value=1)).model_extra == {}


def test_an_extra_value_that_is_a_field_now_is_the_field_and_no_extra_any_more() -> None:
    _, parts = record_parts(Loose.model_validate({"value": 1, "more": [1, 2], "other": 3}))
    made = sent("Declared", parts)
    assert made == Declared.model_validate({"value": 1, "more": [1, 2], "other": 3})
    assert (made.more, made.model_extra) == ([1, 2], {"other": 3})
    assert made.model_fields_set == {"value", "more", "other"}


def test_a_model_that_came_back_can_be_used_like_any_other() -> None:
    back = there_and_back(Visit(count=1))
    back.count = 5
    assert back.count == 10
    assert back.model_copy(update={"places": ["x"]}).model_dump()["places"] == ["x"]


def test_a_private_attribute_that_cannot_travel_is_refused() -> None:
    with pytest.raises(UnsupportedValue, match=r"private values.*\['_lock'\]: an object cannot be sent"):
        pack_plain([Guarded(value=1)])


def test_a_field_that_is_not_set_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedValue, match=f"field 'value' of a {HERE}.Unset is not set"):
        pack_plain(Unset())


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Leg", {"_delay": 1.0}),
        ("Leg", {"origin": "A", "extra": 1}),
        ("Leg", ["A"]),
        ("Leg", {5: 1, "origin": "A"}),
        ("Leg", "A"),
        ("Visit", {}),
        ("Visit", {"count": 1, "_secret": 4}),
        ("Visit", [{"count": 1}]),
        ("Visit", [{"count": 1}, [[], None, {5: 1}]]),
        ("Visit", [{"count": 1}, [[], [1], None]]),
        ("Visit", [{"count": 1}, [5, None, None]]),
        ("Visit", [{"count": 1}, 5]),
    ],
)
def test_parts_that_do_not_fit_are_malformed(name: str, parts: Any) -> None:
    with pytest.raises(MalformedMessage, match=f"no {HERE}:{name} can be made of what was sent"):
        sent(name, parts)


def test_fields_with_defaults_are_filled_in() -> None:
    assert sent("Open", {"value": 4}) == Open(4)
    assert sent("Loose", {"value": 4}) == Loose(value=4)
    assert sent("Visit", {"count": 4}).places == []


def test_a_class_with_a_new_of_its_own_is_not_built() -> None:
    with pytest.raises(MalformedMessage, match="no record type"):
        sent("WithNew", {"value": 1})


def test_any_other_class_has_no_shape() -> None:
    for cls in (int, object, type, dict, tuple, list, Exception, type(sys)):
        assert shape_of(cls) is None
