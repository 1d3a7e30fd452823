"""State that one version of a program stored, and a later one restores: taken over, migrated or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, KeyedStateHandle, SubtaskIndex, VertexId
from understudy.state import HeapBackend, OperatorStateBackend, handle_reader
from understudy.state.backends.backend import KeyedStateBackend, SnapshotTarget
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.errors import InvalidState, StateIncompatible
from understudy.state.kinds.declared_states import declared_states
from understudy.state.kinds.descriptors import (
    FoldingState,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    ValueState,
)
from understudy.state.kinds.state_declaration import KeyedStateDeclaration
from understudy.state.kinds.state_descriptions import description_of, state_change, state_misfit

TARGET = SnapshotTarget(
    None, JobId("job"), CheckpointId(1), VertexId("vertex"), SubtaskIndex(0), ExecutionAttemptId("attempt")
)


def stored(backend: KeyedStateBackend) -> Sequence[KeyedStateHandle]:
    handle = backend.snapshot(CheckpointId(1))(TARGET)
    assert handle is not None
    return [handle]


def taken_over(
    was: KeyedStateDeclaration, now: KeyedStateDeclaration, fill: Any, kind: type[Any] = HeapBackend
) -> tuple[Any, str]:
    """The accessor of the later declaration under the same key, and what submit says of it."""
    before, after = kind(0, 127, 128), kind(0, 127, 128)
    before.current_key = after.current_key = 7
    fill(before.state(was))
    after.restore(stored(before), handle_reader(None))
    described = description_of(now), description_of(was)
    problem = state_misfit(*described)
    return after.state(now), problem or state_change(*described)


def called(name: str) -> Any:
    """A class decorator: records are known by the names of their classes."""

    def named(cls: type) -> type:
        cls.__qualname__ = name
        return cls

    return named


def v1() -> Any:
    @called("Leg")
    @dataclass
    class Leg:
        start: str
        minutes: int
        note: str = ""

    return Leg


def test_a_field_is_added_with_a_default_removed_and_widened() -> None:
    @called("Leg")
    @dataclass
    class Leg:
        start: str
        minutes: float
        gates: list[int] = field(default_factory=list)

    old = v1()
    state, how = taken_over(ValueState(old, name="leg"), ValueState(Leg, name="leg"), lambda s: s.update(old("JFK", 5)))
    assert state.value() == Leg("JFK", 5.0, [])
    assert type(state.value().minutes) is float
    assert how == (
        "migrated: was Leg(start: str, minutes: int, note: str), is Leg(start: str, minutes: float, gates: list[int])"
    )


@pytest.mark.parametrize("kind", [HeapBackend, SlotBackend])
def test_the_fields_of_a_record_may_change_their_order(kind: type[Any]) -> None:
    """What was written stands in the order of then."""

    @called("Leg")
    class Was(NamedTuple):
        minutes: int
        gate: int

    @called("Leg")
    class Now(NamedTuple):
        gate: int
        minutes: int

    was, now = ValueState(Was, name="leg"), ValueState(Now, name="leg")
    state, how = taken_over(was, now, lambda s: s.update(Was(minutes=5, gate=12)), kind)
    assert state.value() == Now(gate=12, minutes=5)
    assert how == "migrated: was Leg(minutes: int, gate: int), is Leg(gate: int, minutes: int)"


def test_a_field_and_its_class_are_renamed() -> None:
    @called("Flight")
    @dataclass
    class Flight:
        __formerly__ = {"class": "Leg", "origin": "start"}  # noqa: RUF012 - as users write it
        origin: str
        minutes: int

    @called("Named")
    class Named(NamedTuple):
        origin: str
        minutes: int

    old = v1()
    put = lambda state: state.update(old("JFK", 5))  # noqa: E731
    state, how = taken_over(ValueState(old, name="leg"), ValueState(Flight, name="leg"), put)
    assert state.value() == Flight("JFK", 5)
    assert how.startswith("migrated: was ")
    with pytest.raises(StateIncompatible):
        taken_over(ValueState(old, name="leg"), ValueState(Named, name="leg"), put)


def test_a_field_that_is_there_again_is_not_taken_for_the_one_that_was_called_so() -> None:
    """Snapshots of the program before have one `start`, and those of this one have two fields."""

    @called("Leg")
    @dataclass
    class Leg:
        __formerly__ = {"origin": "start"}  # noqa: RUF012 - as users write it
        start: str
        origin: str = ""

    old = v1()
    state, _ = taken_over(ValueState(old, name="leg"), ValueState(Leg, name="leg"), lambda s: s.update(old("JFK", 5)))
    assert state.value() == Leg("JFK", "")


def test_a_value_that_may_be_missing_now_is_said_to_be_migrated() -> None:
    was, now = ValueState(int, name="leg"), ValueState(int | None, name="leg")
    state, how = taken_over(was, now, lambda s: s.update(5))
    assert (state.value(), how) == (5, "migrated: was int, is int | None")


def test_a_renamed_field_that_has_no_former_name_is_new_and_refused() -> None:
    @called("Leg")
    @dataclass
    class Leg:
        origin: str
        minutes: int

    problem = state_misfit(description_of(ValueState(Leg, name="leg")), description_of(ValueState(v1(), name="leg")))
    assert problem == "field 'origin' is new and has no default: give it one, or its former name in __formerly__"


def test_a_field_of_another_type_is_named_through_records_and_lists() -> None:
    was, now = (
        make_dataclass("Trip", [("legs", list[make_dataclass("Leg", [("start", str), ("minutes", minutes)])])])  # type: ignore[misc]
        for minutes in (int, list[Decimal])
    )
    problem = state_misfit(description_of(ValueState(now, name="t")), description_of(ValueState(was, name="t")))
    assert problem == "field 'legs': field 'minutes': int does not become list[Decimal]"


def test_a_state_is_found_under_a_former_name() -> None:
    now = ValueState(int, default=0, name="seen").formerly("count", "number")
    state, how = taken_over(ValueState(int, name="number"), now, lambda s: s.update(3))
    assert state.value() == 3
    assert how == "migrated: was called 'number'"


@pytest.mark.parametrize("kind", [HeapBackend, SlotBackend])
def test_values_are_migrated_by_a_function_on_every_backend(kind: type[Any]) -> None:
    now = ValueState(float, default=0.0, name="delay").migrating(int, lambda minutes: minutes * 60.0)
    state, how = taken_over(ValueState(int, default=0, name="delay"), now, lambda s: s.update(5), kind)
    assert state.value() == 5.0  # an int becomes a float by itself: no function is asked
    seconds = ValueState(int, default=0, name="delay").migrating(float, lambda minutes: int(minutes * 60))
    state, how = taken_over(ValueState(float, default=0.0, name="delay"), seconds, lambda s: s.update(1.5), kind)
    assert state.value() == 90
    assert how == "migrated: was float, is int"


@dataclass
class Delay:
    minutes: int
    cause: str


def from_text(text: str) -> Delay:
    minutes, _, cause = text.partition(" ")
    return Delay(int(minutes), cause)


def with_cause(minutes: int) -> Delay:
    return Delay(minutes, "unknown")


@pytest.mark.parametrize(
    ("was", "now", "fill", "read"),
    [
        (ListState(str), ListState(Delay), lambda s: s.add_all(["5 fog", "6 ice"]), lambda s: s.get()),
        (MapState(str, str), MapState(str, Delay), lambda s: s.put("a", "5 fog"), lambda s: list(s.values())),
        (ReducingState(str, min), ReducingState(Delay, lambda a, b: a), lambda s: s.add("5 fog"), lambda s: [s.get()]),
        (
            FoldingState(str, "", lambda held, added: added),
            FoldingState(Delay, Delay(0, ""), lambda held, added: added),
            lambda s: s.add("5 fog"),
            lambda s: [s.get()],
        ),
    ],
    ids=["list", "map", "reducing", "folding"],
)
def test_each_kind_migrates_its_values(was: Any, now: Any, fill: Any, read: Any) -> None:
    was.name = now.name = "delays"
    state, how = taken_over(was, now.migrating(str, from_text).migrating(int, with_cause), fill)
    assert read(state)[0] == Delay(5, "fog")
    assert how.startswith("migrated: was ")


def test_several_earlier_types_are_told_apart_and_others_refused() -> None:
    def now() -> Any:
        return ValueState(Delay, name="delay").migrating(str, from_text).migrating(int, with_cause)

    for old, value, expected in ((str, "5 fog", Delay(5, "fog")), (int, 5, Delay(5, "unknown"))):
        state, _ = taken_over(ValueState(old, name="delay"), now(), lambda s, value=value: s.update(value))
        assert state.value() == expected
    assert state_misfit(description_of(now()), description_of(ValueState(bytes, name="delay"))) == (
        "bytes does not become Delay(minutes: int, cause: str)"
    )
    with pytest.raises(StateIncompatible, match="bytes does not become"):
        taken_over(ValueState(bytes, name="delay"), now(), lambda s: s.update(b""))


def test_a_later_version_without_the_function_reads_what_was_migrated() -> None:
    middle = ValueState(Delay, name="delay").migrating(str, from_text)
    state, how = taken_over(middle, ValueState(Delay, name="delay"), lambda s: s.update(Delay(1, "ice")))
    assert state.value() == Delay(1, "ice")
    assert how == "compatible"


def test_a_function_that_raises_names_the_state() -> None:
    now = ValueState(Delay, name="delay").migrating(str, from_text)
    with pytest.raises(StateIncompatible, match=r"state 'delay' .* migrating 'fog' raised ValueError: invalid literal"):
        taken_over(ValueState(str, name="delay"), now, lambda s: s.update("fog"))


def test_items_of_lists_are_found_and_migrated_too() -> None:
    before, after = OperatorStateBackend(), OperatorStateBackend()
    before.state(OperatorListState(str, name="old")).add_all(["5 fog", "6 ice"])
    after.restore(before.snapshot(), handle_reader(None))
    now = OperatorListState(Delay, name="delays").formerly("old").migrating(str, from_text)
    assert after.state(now).get() == [Delay(5, "fog"), Delay(6, "ice")]


def test_a_former_name_that_another_state_has_now_is_refused_where_it_is_declared() -> None:
    class Confused:
        count = ValueState(int)
        seen = ValueState(int).formerly("count")

    with pytest.raises(InvalidState, match=r"Confused.seen was formerly 'count', and another state has that name now"):
        declared_states(Confused)


@pytest.mark.parametrize("names", [(), ("",), (3,)])
def test_names_are_texts(names: Any) -> None:
    with pytest.raises(InvalidState, match="wanted the names"):
        ValueState(int).formerly(*names)


def test_a_migration_is_a_function() -> None:
    with pytest.raises(InvalidState, match="wanted a function"):
        ValueState(int).migrating(str, "int")  # type: ignore[arg-type]


def test_a_function_that_returns_another_type_than_is_declared_is_refused() -> None:
    now = ValueState(str, name="delay").migrating(int, lambda minutes: minutes)
    with pytest.raises(
        StateIncompatible, match=r"migrating 5 returned a value of another type .* wanted str, found int 5"
    ):
        taken_over(ValueState(int, name="delay"), now, lambda s: s.update(5))


@pytest.mark.parametrize(("number", "fits"), [(2**53, True), (2**60, True), (2**53 + 1, False), (10**400, False)])
def test_an_int_that_a_float_cannot_hold_loses_no_digits_without_a_word(number: int, fits: bool) -> None:
    was, now = ValueState(int, name="total"), ValueState(float, name="total")
    if fits:
        assert taken_over(was, now, lambda s: s.update(number))[0].value() == number
        return
    with pytest.raises(StateIncompatible, match="is no float, and would lose digits"):
        taken_over(was, now, lambda s: s.update(number))


def test_two_states_cannot_have_had_one_name() -> None:
    class Twice:
        one = ValueState(int).formerly("count")
        other = ValueState(int).formerly("n", "count")

    with pytest.raises(InvalidState, match="were both formerly 'count', and only one of them would find its values"):
        declared_states(Twice)


def test_records_are_keys_of_maps_and_gain_fields() -> None:
    @called("Gate")
    class Before(NamedTuple):
        terminal: str
        number: int

    @called("Gate")
    @dataclass(frozen=True)
    class After:
        terminal: str
        number: int
        level: int = 0

    put = lambda state: state.put(Before("A", 7), 3)  # noqa: E731
    state, _ = taken_over(MapState(Before, int, name="gates"), MapState(After, int, name="gates"), put)
    assert dict(state.items()) == {After("A", 7, 0): 3}
    inside, _ = taken_over(
        ValueState(dict[Before, int], name="gates"),
        ValueState(dict[After, int], name="gates"),
        lambda state: state.update({Before("A", 7): 3}),
    )
    assert inside.value() == {After("A", 7, 0): 3}
