"""A default that is changed in place, and not put back, is noticed before the change is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from understudy import Collector, KeyedOperator, Ttl
from understudy.actors.errors import UserCodeError
from understudy.messages import CheckpointId
from understudy.state import UpdateForgotten, ValueState
from understudy.state.backends.heap_backend import HeapBackend
from understudy.testing import OperatorHarness

from .test_heap_backends import MAX_PARALLELISM

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
