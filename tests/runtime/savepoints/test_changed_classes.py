"""Records in state that declares no type, when their class has lost a field: what is said, and how they are kept."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from understudy import InvalidEdit, Savepoint, ValueState
from understudy.messages import CheckpointId, OperatorId
from understudy.state import HeapBackend, handle_reader
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot
from understudy.state.errors import StateIncompatible

from .made import MAX_PARALLELISM, Clock, Fill, Subtask, keyed_backend, savepoint


@dataclass(frozen=True)
class Sale:
    shop: str
    price: int


@dataclass(frozen=True)
class _Sale:
    """What `Sale` is in the next version of the program."""

    shop: str
    cost: int


_Sale.__qualname__ = "Sale"
STATE, NUMBER = ValueState(object, name="kept"), ValueState(int, name="number")


def kept(state_backend: str, key: Any = "JFK") -> Fill:
    def fill(snapshot: SubtaskSnapshot, subtask: Subtask) -> None:
        backend = keyed_backend(state_backend, subtask)
        backend.clock = Clock()
        states: list[Any] = [backend.state(STATE), backend.state(NUMBER)]
        if subtask.index == 0:
            for each in (key, "other") if isinstance(key, str) else (key,):
                backend.current_key = each
                states[0].update(Sale("A", 5))
                states[1].update(7)
        snapshot.add(OperatorId("totals"), backend.snapshot(CheckpointId(1)), name="totals")

    return fill


def backend_of(opened: Savepoint) -> HeapBackend:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    backend.operator_name = "totals"
    handles = [
        handle
        for vertex in (each.vertex for each in opened.operators())
        for subtask in vertex.subtasks.values()
        for handle in subtask.operators[OperatorId("totals")].keyed
    ]
    backend.restore(handles, handle_reader(opened.found.storage))
    return backend


@pytest.mark.parametrize("state_backend", ["filesystem", "rocksdb"])
def test_they_are_edited_into_a_state_that_declares_the_type(
    state_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old class is gone by then."""
    path = savepoint(tmp_path, {"totals": kept(state_backend)}, parallelism=1)
    monkeypatch.setattr(sys.modules[__name__], "Sale", _Sale)
    opened = Savepoint.open(path)
    rows = opened.operator("totals").state("kept").to_dicts()
    edit = opened.edit()
    edit.operator("totals").state("kept").drop()
    sales = ValueState(_Sale, name="sales")
    edit.operator("totals").declare(sales).put(
        (row["key"], {"shop": row["value"]["shop"], "cost": row["value"]["price"]}) for row in rows
    )
    backend = backend_of(Savepoint.open(edit.write()))
    held: Any = backend.state(sales)
    number: Any = backend.state(NUMBER)
    for key in ("JFK", "other"):
        backend.current_key = key
        assert (held.value(), number.value()) == (_Sale("A", 5), 7)


def test_a_restore_names_operator_state_and_both_shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = savepoint(tmp_path, {"totals": kept("filesystem")}, parallelism=1)
    monkeypatch.setattr(sys.modules[__name__], "Sale", _Sale)
    with pytest.raises(StateIncompatible) as raised:
        backend_of(Savepoint.open(path)).state(STATE)
    said = str(raised.value)
    assert said.startswith("operator 'totals': state 'kept' (ValueState of object) cannot be restored")
    assert "it came with (shop, price), and the class has (shop, cost) today: 'price' is not there any more" in said
    assert "Savepoint.open(path).edit()" in said


@dataclass(frozen=True)
class Place:
    name: str


def test_a_record_as_a_key_is_put_as_an_object_and_no_dict_of_its_fields(tmp_path: Path) -> None:
    path = savepoint(tmp_path, {"totals": kept("filesystem", Place("JFK"))}, parallelism=1)
    opened = Savepoint.open(path)
    state = opened.operator("totals").state("number")
    ((key, value),) = [(row["key"], row["value"]) for row in state.rows()]
    assert (key, value) == ({"name": "JFK"}, 7)
    edit = opened.edit().operator("totals").state("number")
    for refused in (lambda: edit.put([(key, 8)]), lambda: edit.put(state.to_dicts()), lambda: edit.remove([key])):
        with pytest.raises(InvalidEdit, match="give an object of the class"):
            refused()
    changed = opened.edit()
    changed.operator("totals").state("number").put([(Place("JFK"), 8)])
    (row,) = Savepoint.open(changed.write()).operator("totals").state("number").rows()
    assert (row["key"], row["value"]) == ({"name": "JFK"}, 8)
