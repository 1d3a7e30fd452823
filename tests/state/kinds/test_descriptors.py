"""State declarations and their binding to an operator's instance."""

from __future__ import annotations

import cloudpickle
import pytest

from understudy.state.backends.binding import bind_states
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.operator_state import OperatorStateBackend
from understudy.state.errors import InvalidState, UnboundState
from understudy.state.kinds.declared_states import declared_states
from understudy.state.kinds.descriptors import (
    FoldingState,
    ListState,
    MapState,
    OperatorListState,
    ReducingState,
    ValueState,
)
from understudy.state.kinds.state_declaration import StateDeclaration


class Base:
    worst = ValueState(float, default=0.0)
    seen = ListState(str)


class Operator(Base):
    seen = ListState(str, name="seen-2")  # type: ignore[assignment]
    table = MapState(str, int)
    total = ReducingState(int, max)
    folded = FoldingState(int, 0, lambda held, added: held + added)
    offsets = OperatorListState(int, "union")


class Dropped(Operator):
    table = None  # type: ignore[assignment]


def test_declarations_are_found_in_order_with_the_bases_first() -> None:
    assert list(declared_states(Operator)) == ["worst", "seen", "table", "total", "folded", "offsets"]
    assert declared_states(Operator)["seen"].name == "seen-2"
    assert "table" not in declared_states(Dropped)


def test_two_states_of_one_name_are_refused() -> None:
    class Twice:
        a = ValueState(int, name="n")
        b = ListState(int, name="n")

    with pytest.raises(InvalidState, match="Twice declares two states named 'n'"):
        declared_states(Twice)


def test_binding_puts_accessors_into_the_instance() -> None:
    operator, backend = Operator(), HeapBackend(0, 127, 128)
    bind_states(operator, backend, OperatorStateBackend())
    assert set(vars(operator)) == set(declared_states(Operator))
    backend.current_key = "JFK"
    operator.worst.update(3.0)
    operator.total.add(4)
    operator.total.add(2)
    operator.folded.add(4)
    operator.offsets.add(17)
    operator.table.put("a", 1)
    operator.table.remove("a")
    assert (operator.worst.value(), operator.total.get(), operator.folded.get()) == (3.0, 4, 4)
    assert operator.offsets.get() == [17]
    assert operator.table.is_empty()
    assert backend.entry_count() == 3


def test_keyed_state_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidState, match=r"Base.worst is keyed state.*KeyedOperator"):
        bind_states(Base(), None, OperatorStateBackend())


def test_an_unbound_state_says_so() -> None:
    for use in (
        Operator.worst.value,
        Operator.table.keys,
        Operator.seen.get,
        Operator.total.get,
        Operator.offsets.get,
        Operator.worst.clear,
    ):
        with pytest.raises(UnboundState, match="is not bound"):
            use()


def test_a_state_that_is_used_too_early_says_where_it_can_be_used() -> None:
    with pytest.raises(
        UnboundState, match=r"no class declares.*`NAME = ValueState\(\.\.\.\)`.*self\.NAME in `process`"
    ):

        class InBody:
            total = ValueState(int, default=0)
            first = total.value()

    class InInit:
        total = ValueState(int, default=0)

        def __init__(self) -> None:
            self.total.value()

    with pytest.raises(UnboundState, match=r"state 'total' is not bound: `__init__` runs where .*use it in `process`"):
        InInit()
    with pytest.raises(UnboundState, match=r"on the class, or .*write self\.total in `process`"):
        InInit.total.value()


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidState, match="'split', 'union' or 'broadcast', found 'all'"):
        OperatorListState(int, "all")  # type: ignore[arg-type]


@pytest.mark.parametrize("attribute", declared_states(Operator))
def test_declarations_travel_with_the_job(attribute: str) -> None:
    declared = declared_states(Operator)[attribute]
    again: StateDeclaration = cloudpickle.loads(cloudpickle.dumps(declared))
    assert (again.name, again.describe()) == (declared.name, declared.describe())
