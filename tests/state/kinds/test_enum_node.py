"""Enums in state: a member is known by its name, and what is gone is said."""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import Any

import pytest

from tests.state.kinds.test_evolution import called, taken_over
from understudy.state.errors import StateIncompatible
from understudy.state.kinds.descriptors import ValueState
from understudy.state.kinds.enum_node import EnumNode


def members(**values: Any) -> type[Enum]:
    return called("Color")(Enum("Color", values))


def restored(was: type[Enum], now: type[Enum], member: str) -> Any:
    put = lambda state: state.update(was[member])  # noqa: E731
    return taken_over(ValueState(was, name="color"), ValueState(now, name="color"), put)[0].value()


WAS = members(RED=1, BLUE=2)


@pytest.mark.parametrize(
    ("now", "member", "wanted"),
    [
        (members(RED=2, BLUE=1), "RED", "RED"),
        (members(BLACK=1, RED=2, BLUE=3), "BLUE", "BLUE"),
        (members(RED=1, BLUE="blue"), "BLUE", "BLUE"),
        (members(RED=1, AZURE=2), "BLUE", "AZURE"),
        (members(RED=1, BLUE=1), "BLUE", "RED"),
        (members(RED=1), "RED", "RED"),
        (members(BLUE=True, RED=2.0), "RED", "RED"),
    ],
    ids=["swapped", "one before them", "other value", "other name", "alias", "another one is gone", "equal values"],
)
def test_a_stored_member_is_the_one_of_its_name(now: type[Enum], member: str, wanted: str) -> None:
    assert restored(WAS, now, member) is now[wanted]


def test_other_members_make_no_other_type() -> None:
    put = lambda state: state.update(WAS["RED"])  # noqa: E731
    now = ValueState(members(RED=1, BLUE=2, GREEN=3), name="color")
    assert taken_over(ValueState(WAS, name="color"), now, put)[1] == "compatible"


def test_a_member_that_is_gone_is_named_with_what_to_do() -> None:
    with pytest.raises(StateIncompatible) as raised:
        restored(WAS, members(RED=1, GREEN=3), "BLUE")
    assert str(raised.value) == (
        "state 'color' (ValueState of Color) cannot be restored: a stored value is Color.BLUE (2), and Color has no "
        "such member any more: keep it, make its name that of another member (as `BLUE = RED` in the class), or change "
        "these values with Savepoint.open(path).edit()"
    )


def test_a_value_that_another_member_has_taken_over_is_refused() -> None:
    with pytest.raises(StateIncompatible, match=r"Color.BLUE \(2\), whose value is that of RED now"):
        restored(WAS, members(RED=2), "BLUE")


def test_flags_are_put_together_again_by_name() -> None:
    @called("Day")
    class Before(Flag):
        SUN = auto()
        RAIN = auto()
        SNOW = auto()

    @called("Day")
    class After(Flag):
        FOG = auto()
        SNOW = auto()
        SUN = auto()

    decode = EnumNode(After).decoder(EnumNode(Before).schema)
    assert decode((Before.SUN | Before.SNOW).value) == After.SUN | After.SNOW
    assert decode(0) == After(0)
    with pytest.raises(Exception, match=r"Day\.RAIN"):
        decode((Before.SUN | Before.RAIN).value)


def test_savepoints_that_do_not_say_the_members_are_read_by_value() -> None:
    decode = EnumNode(members(AZURE=2, RED=1)).decoder({"enum": "Color"})
    assert decode(2).name == "AZURE"
    with pytest.raises(Exception, match=r"a member of Color \(3\)"):
        decode(3)


def test_members_whose_values_are_no_plain_data_are_left_out() -> None:
    assert EnumNode(members(RED=[1], BLUE=2)).schema == {"enum": "Color"}
    assert EnumNode(members(RED=(1, "x"))).schema == {"enum": "Color", "members": {"RED": (1, "x")}}
