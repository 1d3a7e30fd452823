"""A default that is changed in place, and not put back, is noticed before the change is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from understudy import Collector, KeyedOperator, MapState, Ttl
from understudy.actors.errors import UserCodeError
from understudy.messages import CheckpointId
from understudy.state import UpdateForgotten, ValueState
from understudy.state.backends.heap_backend import HeapBackend
from understudy.testing import OperatorHarness

from ...contracts.keyed_state import MAX_PARALLELISM

ITEMS = ValueState(list, default=[], name="items")


def two_keys(declared: Any) -> tuple[HeapBackend, Any]:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    state = backend.state(declared)
    backend.current_key = "a"
    return backend, state


@pytest.mark.parametrize("declared", [ITEMS, ValueState(object, default={"x": []}, name="items")])
@pytest.mark.parametrize(
    ("key", "then"),
    [("a", lambda state: state.value()), ("b", lambda state: state.value()), ("b", lambda state: state.update([1]))],
)
def test_it_is_noticed_at_the_next_use(declared: Any, key: str, then: Callable[[Any], Any]) -> None:
    backend, state = two_keys(declared)
    found = state.value()
    (found if isinstance(found, list) else found["x"]).append(7)
    backend.current_key = key
    with pytest.raises(UpdateForgotten, match=r"'items' .*for key 'a' .*self.items.update\(items\)"):
        then(state)


def test_it_is_noticed_when_a_snapshot_is_taken() -> None:
    backend, state = two_keys(ITEMS)
    state.value().append(7)
    with pytest.raises(UpdateForgotten, match="for key 'a'"):
        backend.snapshot(CheckpointId(1))


def test_what_is_read_put_back_or_cleared_is_no_mistake() -> None:
    backend, state = two_keys(ITEMS)
    for key in "abc":
        backend.current_key = key
        assert state.value() == []
        held = state.value()
        held.append(1)
        state.update(held)
        state.value().append(2)  # what is held is changed in place
        assert state.value() == [1, 2]
        state.clear()
        state.value().append(3)  # used, and thrown away
        state.clear()
    backend.snapshot(CheckpointId(1))


def test_a_default_that_does_not_compare_is_let_be() -> None:
    _, state = two_keys(ValueState(object, default=np.zeros(2), name="items"))
    state.value()[0] = 1
    assert state.value().tolist() == [0, 0]


ROWS = MapState(str, list, name="rows")


@pytest.mark.parametrize(
    "then",
    [
        lambda backend, rows: rows.get("y", []),
        lambda backend, rows: backend.snapshot(CheckpointId(1)),
    ],
)
def test_a_default_that_an_entry_was_asked_with_is_noticed_too(then: Callable[[Any, Any], Any]) -> None:
    backend, rows = two_keys(ROWS)
    rows.get("x", []).append(7)
    with pytest.raises(UpdateForgotten, match=r"get\(\) gave for key 'a' .*self.rows.put\(key, value\)$"):
        then(backend, rows)


def test_a_default_that_is_put_or_whose_entry_goes_is_no_mistake() -> None:
    backend, rows = two_keys(ROWS)
    for key in "ab":
        backend.current_key = key
        for end in (lambda held: rows.put("x", held), lambda held: rows.remove("x"), lambda held: rows.clear()):
            held = rows.get("x", [])
            held.append(1)
            end(held)
            assert rows.get("y", []) == []
            assert rows.get("y", ()) == ()
    backend.snapshot(CheckpointId(1))


class Basket(KeyedOperator):
    items = ValueState(list, default=[])

    def process(self, record: Any, out: Collector) -> None:
        self.items.value().append(record["item"])


class ForAWhile(Basket):
    items = ValueState(list, default=[], ttl=Ttl(minutes=1))


@pytest.mark.parametrize("operator", [Basket, ForAWhile])
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_an_operator_that_forgets_it_fails(operator: Any, backend: str) -> None:
    with (
        OperatorHarness(operator, key_by="who", state_backend=backend) as harness,
        pytest.raises(UserCodeError) as caught,
    ):
        harness.process([{"who": "ann", "item": 1}, {"who": "bob", "item": 2}])
    assert "for key 'ann'" in str(caught.value.__cause__)


class Waiting(KeyedOperator):
    items = ValueState(list, default=[])
    rows = MapState(str, list)

    def __init__(self, change: Callable[[Any], None], wait: bool) -> None:
        self.change, self.wait = change, wait

    async def process(self, record: Any, out: Collector) -> None:
        self.items.update([*self.items.value(), 1])
        if self.wait:
            await asyncio.sleep(0)
        self.change(self)


def filled(operator: Any) -> None:
    operator.rows.get("x", []).append(1)


def held(operator: Any) -> None:
    operator.rows.put("x", [1])


def held_and_changed(operator: Any) -> None:
    if operator.rows.contains("x"):
        operator.rows.get("x").append(2)
    else:
        operator.rows.put("x", [1])


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("change", [filled, held_and_changed])
def test_a_copy_that_a_coroutine_changes_and_forgets_fails_it(change: Callable[[Any], None], wait: bool) -> None:
    def run(harness: OperatorHarness) -> None:
        harness.process([{"who": "ann"}, {"who": "ann"}])
        harness.advance(10)

    with OperatorHarness(Waiting(change, wait), key_by="who") as harness, pytest.raises(UserCodeError) as caught:
        run(harness)
    assert "for key 'ann' was a copy, as in any coroutine" in str(caught.value.__cause__)


@pytest.mark.parametrize("wait", [True, False])
def test_a_coroutine_that_puts_its_values_back_is_left_alone(wait: bool) -> None:
    with OperatorHarness(Waiting(held, wait), key_by="who") as harness:
        harness.process([{"who": "ann"}, {"who": "ann"}])
        harness.advance(10)
