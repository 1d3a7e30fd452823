"""What submit says of a program that fits a savepoint, and may not be meant to do with it what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pytest

from tests.state.kinds.test_evolution import called
from understudy.actors.restore.restore_check import check_restore
from understudy.messages import StateDescription
from understudy.state.kinds.descriptors import ListState, MapState, OperatorListState, ValueState
from understudy.state.kinds.state_descriptions import description_of

from ..graphs import graph
from ..savepoints import chain, checkpoint, keyed_state, list_state, operator

ALL = range(128)
TOTAL = description_of(ValueState(int, name="total"))
WORST = description_of(ValueState(float, name="worst"))
TIMERS = StateDescription("timers", "Timers")


def notes(was: Sequence[StateDescription], now: Sequence[StateDescription]) -> tuple[str, ...]:
    saved = checkpoint((chain(operator("sum", *was)), [{"sum": keyed_state(ALL)}]))
    return check_restore(saved, graph(chain(operator("sum", *now)))).notes


def test_a_renamed_state_begins_empty_and_is_named_with_what_to_write() -> None:
    assert notes([TOTAL], [description_of(ValueState(int, name="sum"))]) == (
        "operator 'sum': state 'sum' begins empty, and state 'total' of the savepoint is declared no more: a state "
        "that has another name now says so, as ValueState(...).formerly('total') for 'sum'",
    )


@dataclass
class Account:
    cents: int


CNT = description_of(ValueState(int, name="cnt"))
ACC = description_of(ValueState(Account, name="acc"))
BY_DAY = description_of(MapState(int, int, name="by_day"))
RENAMED = ": a state that has another name now says so, as {0}(...).formerly({1!r}) for {2!r}; as {3}"


@pytest.mark.parametrize("beside", [[], [TOTAL]], ids=["alone", "beside one that is taken over"])
@pytest.mark.parametrize(
    ("was", "now", "advice"),
    [
        (
            CNT,
            description_of(ValueState(str, name="count")),
            RENAMED.format("ValueState", "cnt", "count", "int does not become str, convert its values with ")
            + ".migrating(old type, function), or let it begin empty",
        ),
        (
            ACC,
            description_of(ValueState(int, name="account")),
            RENAMED.format("ValueState", "acc", "account", "Account(cents: int) does not become int, convert its ")
            + "values with .migrating(old type, function), where a class with the old fields and __formerly__ = "
            "{'class': 'Account'} stands for the old Account; or let it begin empty",
        ),
        (
            CNT,
            description_of(ListState(int, name="count")),
            "; 'cnt' cannot become 'count': was a ValueState and is a ListState now",
        ),
        (
            BY_DAY,
            description_of(MapState(str, int, name="by_days")),
            "; 'by_day' cannot become 'by_days': int does not become str",
        ),
    ],
    ids=["a number", "a record", "another kind", "other keys of a map"],
)
def test_a_state_of_another_name_and_type_is_noted_with_what_makes_its_values_if_anything_does(
    was: StateDescription, now: StateDescription, advice: str, beside: list[StateDescription]
) -> None:
    (note,) = notes([was, *beside], [now, *beside])
    assert note == (
        f"operator 'sum': state {now.name!r} begins empty, and state {was.name!r} of the savepoint is declared no more"
        f"{advice}"
    )


def test_what_a_note_advises_of_another_type_restores() -> None:
    count = ValueState(str, name="count").formerly("cnt").migrating(int, str)
    assert notes([CNT], [description_of(count)]) == ()


def test_of_several_states_the_one_that_fits_is_advised() -> None:
    (note,) = notes([CNT, WORST], [description_of(ValueState(float, name="max"))])
    assert "as ValueState(...).formerly('cnt') for 'max'" in note
    (note,) = notes([ACC, WORST], [description_of(ValueState(float, name="max"))])
    assert note.endswith("as ValueState(...).formerly('worst') for 'max'")


@pytest.mark.parametrize(
    ("was", "now", "is_noted"),
    [
        ([TOTAL], [TOTAL, WORST], False),
        ([TOTAL, WORST], [TOTAL], False),
        ([TOTAL], [description_of(ValueState(int, name="sum").formerly("total"))], False),
        ([TOTAL, WORST], [TOTAL, description_of(ValueState(str, name="cause"))], False),
        ([TOTAL, WORST], [TOTAL, description_of(ValueState(float, name="max"))], True),
        ([TOTAL], [description_of(ListState(str, name="all"))], True),
    ],
    ids=["added", "removed", "said", "another type", "one of two", "nothing is taken over"],
)
def test_only_what_may_be_a_renamed_state_is_noted(
    was: list[StateDescription], now: list[StateDescription], is_noted: bool
) -> None:
    assert bool(notes(was, now)) == is_noted


def mode_notes(stored: str, was: int, declared: str, now: int, held: int = 2) -> tuple[str, ...]:
    """Of a list `rules`, which its program may know by another name today."""
    rules = description_of(OperatorListState(int, name="rules now", mode=declared).formerly("rules"))  # type: ignore[arg-type]
    saved = checkpoint((chain(operator("rate"), parallelism=was), [{"rate": list_state("rules", held, stored)}] * was))
    return check_restore(saved, graph(chain(operator("rate", rules), parallelism=now))).notes


def test_a_list_of_another_mode_than_the_stored_one_is_noted_also_where_the_savepoint_describes_no_mode() -> None:
    assert mode_notes("split", 2, "union", 3) == (
        "operator 'rate': the list 'rules' was stored with mode 'split', and its mode is 'union' now, which counts "
        "from the next savepoint on. This time its items go to the subtasks, of which there were 2 and are 3, as "
        "'split' says: each has some of the items. Restore at parallelism 2, where each subtask keeps its own items. "
        "Change the parallelism only after the next savepoint, which stores the new mode",
    )
    (note,) = mode_notes("union", 2, "broadcast", 2)
    assert note.endswith("as 'union' says: each has the items of all of them")


WAYS_OUT = (
    ". If all have the same list, restore at parallelism 2, where each keeps its own; else at parallelism 1, where one "
    "subtask has all the items. Change the parallelism only after the next savepoint, which stores the new mode"
)


@pytest.mark.parametrize("now", [2, 3])
def test_shares_that_become_one_list_are_noted_at_the_same_parallelism_too(now: int) -> None:
    (note,) = mode_notes("split", 2, "broadcast", now)
    assert note.endswith(
        "as 'split' says: each has some of the items. If the lists differ, a later change of the parallelism, which "
        f"gives each subtask the list of one of them, loses items or doubles them{WAYS_OUT}"
    )


def test_of_one_subtask_no_items_are_lost() -> None:
    (note,) = mode_notes("split", 2, "broadcast", 1)
    assert note.endswith(f"as 'split' says: one has all the items{WAYS_OUT}")
    (note,) = mode_notes("split", 1, "broadcast", 3)
    assert "loses" not in note
    assert ". Restore at parallelism 1, where each subtask keeps its own items. Change the parallelism only" in note


@pytest.mark.parametrize(
    ("stored", "was", "declared", "now", "held"),
    [
        ("split", 2, "split", 3, 2),
        ("broadcast", 2, "split", 2, 2),
        ("union", 1, "broadcast", 1, 2),
        ("split", 2, "broadcast", 3, 0),
    ],
    ids=["the same mode", "each keeps its own", "one subtask", "nothing is held"],
)
def test_a_mode_that_changes_nothing_is_not_noted(stored: str, was: int, declared: str, now: int, held: int) -> None:
    assert mode_notes(stored, was, declared, now, held) == ()


@pytest.mark.parametrize(
    ("was", "now", "is_noted"),
    [
        (("shop",), ("item",), True),
        (("shop", "at"), ("shop", "of"), True),
        (("shop",), ("shop",), False),
        (("shop",), ("",), False),
        ((), ("shop",), False),
    ],
)
def test_another_key_column_is_noted(was: tuple[str, ...], now: tuple[str, ...], is_noted: bool) -> None:
    before, today = (replace(operator("sum", TOTAL), keys=keys) for keys in (was, now))
    saved = checkpoint((chain(before), [{"sum": keyed_state(ALL)}]))
    found = check_restore(saved, graph(chain(today))).notes
    assert len(found) == is_noted
    if found:
        assert f"operator 'sum' is keyed by {now[-1]}, and the state of the savepoint by {was[-1]}" in found[0]


def test_an_on_timer_that_was_taken_out_is_noted() -> None:
    (note,) = notes([TOTAL, TIMERS], [TOTAL])
    assert note.startswith("operator 'sum' had on_timer, and has none now: a timer that it has set fails the job")


@called("Leg")
@dataclass
class Before:
    start: str
    minutes: int


@called("Leg")
@dataclass
class After:
    start: str
    delay: int = 0


@called("Leg")
@dataclass
class Said:
    __formerly__ = {"delay": "minutes"}  # noqa: RUF012 - as users write it
    start: str
    delay: int = 0


@called("Leg")
@dataclass
class Longer:
    start: str
    minutes: int
    gates: list[int] = field(default_factory=list)


@pytest.mark.parametrize("wrap", [ValueState, ListState, lambda kind, name: MapState(str, kind, name=name)])
def test_a_field_that_is_forgotten_beside_one_with_a_default_is_noted(wrap: Any) -> None:
    was = [description_of(wrap(Before, name="leg"))]
    (note,) = notes(was, [description_of(wrap(After, name="leg"))])
    assert note == (
        "operator 'sum', state 'leg': Leg takes no field minutes of the savepoint, whose values are forgotten, and "
        "delay begins with its default: a field that has another name now says so in the class, as "
        "__formerly__ = {'delay': 'minutes'}"
    )
    assert not notes(was, [description_of(wrap(Said, name="leg"))])
    assert not notes(was, [description_of(wrap(Longer, name="leg"))])


def test_a_member_of_an_enum_that_is_gone_is_noted() -> None:
    more, fewer, renamed = (
        description_of(ValueState(called("Color")(Enum("Color", names)), name="color"))
        for names in ({"RED": 1, "BLUE": 2}, {"RED": 1}, {"RED": 1, "AZURE": 2})
    )
    (note,) = notes([more], [fewer])
    assert note.startswith("operator 'sum', state 'color': Color has no member BLUE any more")
    assert not notes([more], [renamed])
    assert not notes([fewer], [more])


@pytest.mark.parametrize(
    ("was", "now", "is_noted"),
    [
        (["op-1"], ["op-1", "op-2"], True),
        (["op-1"], ["op-1", "other-1"], False),
        (["op-1", "op-2"], ["op-1", "op-2"], False),
        (["counts"], ["counts", "op-1"], False),
    ],
)
def test_operators_that_are_told_apart_by_a_number_are_noted(was: list[str], now: list[str], is_noted: bool) -> None:
    state = {name: keyed_state(ALL) for name in was}
    saved = checkpoint((chain(*(operator(name, TOTAL) for name in was)), [state]))
    found = check_restore(saved, graph(chain(*(operator(name, TOTAL) for name in now)))).notes
    assert len(found) == is_noted
    if found:
        assert "'op-1' takes over the state of that name, and 'op-2' begins without state" in found[0]
