"""State checks what it is given: at `update` and `add` what stands outside, before a snapshot what is inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from understudy.messages import CheckpointId, register_serializer
from understudy.state import (
    FoldingState,
    HeapBackend,
    InvalidState,
    ListState,
    MapState,
    OperatorListState,
    OperatorStateBackend,
    ReducingState,
    ValueState,
    WrongStateType,
    bind_states,
)
from understudy.state.backends.heap_blocks import CHUNK_ENTRIES

TO_DO = "store a value of the declared type, or declare the type of this value"


@dataclass
class Flight:
    dest: str
    delays: list[float] = field(default_factory=list)


class Delayed(Flight):
    pass


class Repr:
    name, version = "repr", 1

    def serialize(self, value: Any) -> bytes:
        return repr(value).encode()

    def deserialize(self, data: bytes, version: int) -> Any:
        raise NotImplementedError


class Declared:
    n = ValueState(int, default=0)
    numbers = ValueState(list[int], default=[])
    pair = ValueState(tuple[int, str])
    point = ValueState(tuple[float, int])
    flight = ValueState(Flight)
    maybe = ValueState(int | None)  # type: ignore[arg-type]
    anything = ValueState(object)
    items = ListState(int)
    flights = ListState(Flight)
    table = MapState(str, int)
    lists = MapState(str, list[int])
    most = ReducingState(int, lambda held, added: held + added)
    text = FoldingState(str, "", lambda held, added: held + added if added else None, merge=lambda a, b: None)
    custom = ValueState(Flight, serializer="repr")
    waiting = OperatorListState(int)
    waiting_flights = OperatorListState(Flight)


def redefined() -> Any:
    """Flight, as the cell of a notebook makes it that is run again."""

    @dataclass
    class Flight:
        dest: str

    Flight.__qualname__ = "Flight"
    return Flight


@pytest.fixture
def states() -> Any:
    """As an operator's task binds them; the current key is JFK."""
    register_serializer(Repr())
    bound: Any = Declared()
    bound.keyed, bound.own = HeapBackend(0, 15, 16), OperatorStateBackend()
    bind_states(bound, bound.keyed, bound.own, "count")
    bound.keyed.current_key = "JFK"
    return bound


AT_ONCE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda it: it.n.update("text"), "state 'n' (ValueState of int): wanted int, found str 'text'"),
    (lambda it: it.n.update(1.0), "state 'n' (ValueState of int): wanted int, found float 1.0"),
    (
        lambda it: it.numbers.update((1,)),
        "state 'numbers' (ValueState of list[int]): wanted list[int], found tuple (1,)",
    ),
    (
        lambda it: it.pair.update([1, "a"]),
        "state 'pair' (ValueState of tuple[int, str]): wanted tuple[int, str], found ",
    ),
    (lambda it: it.flight.update({"dest": "SFO"}), "wanted Flight, found dict {'dest': 'SFO'}"),
    (lambda it: it.flight.update(Delayed("SFO")), "wanted Flight, found Delayed "),
    (lambda it: it.custom.update("SFO"), "wanted Flight, found str 'SFO'"),
    (lambda it: it.maybe.update("1"), "wanted int | None, found str '1'"),
    (lambda it: it.items.add("1"), "state 'items' (ListState of list[int]): wanted int, found str '1'"),
    (lambda it: it.items.add(None), "wanted int, found None"),
    (lambda it: it.items.add_all([1, "2"]), "wanted int, found str '2'"),
    (lambda it: it.items.update([1, "2"]), "wanted int, found str '2'"),
    (lambda it: it.table.put("a", "b"), "state 'table' (MapState of dict[str, int]): wanted int, found str 'b'"),
    (lambda it: it.table.put(1, 1), "(MapState of dict[str, int]): the key of an entry: wanted str, found int 1"),
    (lambda it: it.most.add("1"), "state 'most' (ReducingState of int): wanted int, found str '1'"),
    (lambda it: it.text.add(""), "state 'text' (FoldingState of str): wanted str, found None"),
]

AT_THE_SNAPSHOT: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda it: it.numbers.update([1, "2"]),
        "state 'numbers' (ValueState of list[int]): wanted int, found str '2' at [1]",
    ),
    (lambda it: it.pair.update((1, 2)), "wanted str, found int 2 at [1]"),
    (lambda it: it.point.update((1, 2.5)), "wanted int, found float 2.5 at [1]"),
    (lambda it: it.point.update((1, 2, 3)), "wanted tuple[float, int], found tuple (1, 2, 3)"),
    (lambda it: it.point.update((1, True, "a")[:2]) or it.point.update(("a", 1)), "wanted float, found str 'a' at [0]"),
    (lambda it: it.flight.update(Flight(1)), "wanted str, found int 1 at .dest"),  # type: ignore[arg-type]
    (lambda it: it.flights.add(Flight("a", ["b"])), "wanted float, found str 'b' at [0].delays[0]"),  # type: ignore[list-item]
    (lambda it: it.lists.put("a", [None]), "wanted int, found None at ['a'][0]"),
]


@pytest.mark.parametrize(("change", "text"), AT_ONCE, ids=[text for _, text in AT_ONCE])
def test_what_does_not_fit_from_the_outside_is_refused_at_once(
    states: Any, change: Callable[[Any], Any], text: str
) -> None:
    with pytest.raises(WrongStateType) as caught:
        change(states)
    assert str(caught.value).startswith("operator 'count': state '")
    assert text in str(caught.value)
    assert str(caught.value).endswith(f" for key 'JFK'; {TO_DO}")
    assert states.keyed.entry_count() == 0, "and nothing has changed"


@pytest.mark.parametrize("others", [0, 3, CHUNK_ENTRIES])
@pytest.mark.parametrize(("change", "text"), AT_THE_SNAPSHOT, ids=[text for _, text in AT_THE_SNAPSHOT])
def test_what_does_not_fit_inside_is_refused_before_it_is_stored(
    states: Any, change: Callable[[Any], Any], text: str, others: int
) -> None:
    good = {"numbers": [1], "pair": (1, "a"), "point": (0.5, 2), "flight": Flight("SFO")}
    for name in good if others < 10 or "numbers" in text else ("point",):
        for states.keyed.current_key in range(others):
            getattr(states, name).update(good[name])
    states.keyed.current_key = "JFK"
    change(states)
    write = states.keyed.snapshot(CheckpointId(1))
    with pytest.raises(WrongStateType) as caught:
        write(None)
    assert str(caught.value).startswith("operator 'count': state '")
    assert text in str(caught.value)
    assert str(caught.value).endswith(f" for key 'JFK'; {TO_DO}")


def test_the_key_is_told_also_where_an_earlier_snapshot_has_stored_the_keys(states: Any) -> None:
    for states.keyed.current_key in range(CHUNK_ENTRIES + 5):
        states.numbers.update([1])
    states.keyed.snapshot(CheckpointId(1))(None)
    states.keyed.current_key = 4711
    states.numbers.update(["x"])
    with pytest.raises(WrongStateType, match=rf"for key 4711; {TO_DO}$"):
        states.keyed.snapshot(CheckpointId(2))(None)


def test_what_fits_is_kept(states: Any) -> None:
    states.n.update(True)
    states.numbers.update([1, True])
    states.pair.update((1, "a"))
    states.point.update((1, True))
    states.flight.update(Flight("SFO", [1, 2.5]))
    states.maybe.update(None)
    states.anything.update([object])
    states.anything.update(None)
    states.custom.update(Delayed("SFO"))
    states.items.add_all([1, False])
    states.flights.add(Flight("SFO"))
    states.table.put("a", 1)
    states.lists.put("a", [1])
    states.most.add(1)
    states.text.add("a")
    assert states.keyed.snapshot(CheckpointId(1))(None) is not None


def test_scalars_of_numpy_are_kept_as_python_values(states: Any) -> None:
    states.n.update(np.int64(3))
    states.items.add_all([1, np.int32(2)])
    states.most.add(np.int8(1))
    states.table.put("a", np.int64(5))
    states.waiting.add(np.int64(7))
    found = [states.n.value(), *states.items.get(), states.most.get(), states.table.get("a"), *states.waiting.get()]
    assert found == [3, 1, 2, 1, 5, 7]
    assert set(map(type, found)) == {int}


def test_none_clears_a_value_as_before(states: Any) -> None:
    states.n.update(1)
    states.n.update(None)
    assert states.keyed.entry_count() == 0


def test_a_merge_must_fit_too(states: Any) -> None:
    for namespace in (1, 2):
        states.text.set_namespace(namespace)
        states.text.add("a")
    with pytest.raises(WrongStateType, match=r"'text'.*wanted str, found None"):
        states.text.merge_namespaces(1, [2])


def test_operator_lists_are_checked_likewise(states: Any) -> None:
    for change in (states.waiting.add, lambda item: states.waiting.update([1, item])):
        with pytest.raises(WrongStateType, match=r"^operator 'count': state 'waiting' \(OperatorListState of int\): "):
            change("text")
    assert states.waiting.get() == []
    states.waiting_flights.add_all([Flight("SFO"), Flight(1)])  # type: ignore[arg-type]
    with pytest.raises(
        WrongStateType, match=rf"'waiting_flights' .*: item 1: wanted str, found int 1 at .dest; {TO_DO}$"
    ):
        states.own.snapshot()


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (lambda: ValueState(int, default="0"), "the default of a ValueState of int: wanted int, found str '0'"),  # type: ignore[call-overload]
        (lambda: ValueState(float, "0", name="worst"), "the default of a ValueState of float 'worst': wanted float"),  # type: ignore[call-overload]
        (lambda: ValueState(list[int], default=["a"]), "wanted int, found str 'a' at [0]"),  # type: ignore[list-item]
        (
            lambda: FoldingState(int, "", lambda held, added: held),
            "the initial accumulator of a FoldingState of int: wanted int, found str ''",
        ),
    ],
)
def test_a_default_that_does_not_fit_is_refused_where_it_is_declared(declare: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidState) as caught:
        declare()
    assert text in str(caught.value)


def test_two_classes_of_one_name_are_named(states: Any) -> None:
    other = redefined()("JFK")
    wanted = "there are two classes Flight, .* run that of the operator again, too"
    for store in (states.flight.update, states.flights.add, lambda each: states.waiting_flights.update([each])):
        with pytest.raises(WrongStateType, match=wanted) as raised:
            store(other)
        assert TO_DO not in str(raised.value)
