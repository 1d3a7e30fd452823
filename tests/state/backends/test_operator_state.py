"""Operator list state: snapshots, restores, migrations, questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from understudy.messages import OperatorListHandle
from understudy.state.backends.operator_state import OperatorStateBackend
from understudy.state.checkpoints.assignment import redistribute_lists
from understudy.state.errors import CorruptState, ReadOnlyState, StateIncompatible, StateNotStorable
from understudy.state.handle_bytes import inline_handle
from understudy.state.kinds.descriptors import OperatorListState
from understudy.state.storage import handle_reader

READ = handle_reader(None)
PENDING = OperatorListState(str, name="pending")


@dataclass
class Transaction:
    name: str
    parts: list[str]


def snapshot_of(declared: OperatorListState[Any], *items: Any) -> tuple[OperatorListHandle, ...]:
    backend = OperatorStateBackend()
    backend.state(declared).add_all(items)
    return backend.snapshot()


def restored(declared: OperatorListState[Any], *handles: OperatorListHandle) -> list[Any]:
    backend = OperatorStateBackend()
    backend.restore(handles, READ)
    return backend.state(declared).get()


@pytest.mark.parametrize(
    ("kind", "items"),
    [(str, ["a", "b"]), (dict, [{"p": 1}, {}]), (Transaction, [Transaction("t", ["x"])]), (tuple, [(1, "a"), ()])],
)
def test_restoring_gives_the_same_items_in_order(kind: type, items: list[Any]) -> None:
    declared = OperatorListState(kind, name="s")
    assert restored(declared, *snapshot_of(declared, *items)) == items


def test_changes_after_the_snapshot_do_not_show_in_it() -> None:
    backend = OperatorStateBackend()
    state = backend.state(OperatorListState(list, name="s"))
    state.add([1])
    handles = backend.snapshot()
    state.get()[0].append(2)
    state.add([3])
    assert restored(OperatorListState(list, name="s"), *handles) == [[1]]
    assert state.get() == [[1, 2], [3]]


def test_a_rescale_deals_the_items_out() -> None:
    shares = redistribute_lists([snapshot_of(PENDING, "a", "b", "c"), snapshot_of(PENDING, "d")], 3)
    assert [restored(PENDING, *share) for share in shares] == [["a", "b"], ["c"], ["d"]]


def test_no_items_no_handle() -> None:
    assert snapshot_of(PENDING) == ()
    assert restored(PENDING) == []


def test_an_empty_broadcast_list_stays_empty_beside_one_that_has_items() -> None:
    """The others have taken what a barrier has overtaken here: it comes as what was in flight."""
    rules = OperatorListState(str, name="rules", mode="broadcast")
    shares = redistribute_lists([snapshot_of(rules), snapshot_of(rules, "a"), snapshot_of(rules)], 3)
    assert [restored(rules, *share) for share in shares] == [[], ["a"], []]


def test_a_list_that_is_not_declared_any_more_is_carried_along() -> None:
    backend = OperatorStateBackend()
    backend.restore(snapshot_of(PENDING, "a", "b"), READ)
    assert restored(PENDING, *backend.snapshot()) == ["a", "b"]


def test_items_migrate_or_are_refused_by_name() -> None:
    handles = snapshot_of(OperatorListState(int, name="n"), 1, 2)
    migrated = restored(OperatorListState(float, name="n"), *handles)
    assert migrated == [1.0, 2.0]
    assert all(type(item) is float for item in migrated)
    with pytest.raises(StateIncompatible, match=r"state 'n' is declared as OperatorListState of str.*of int"):
        restored(OperatorListState(str, name="n"), *handles)


def test_a_question_may_not_change_a_list() -> None:
    backend = OperatorStateBackend()
    state = backend.state(PENDING)
    state.add("a")
    with backend.read_only():
        for change in (lambda: state.add("b"), lambda: state.add_all(["b"]), lambda: state.update([]), state.clear):
            with pytest.raises(ReadOnlyState, match="'pending'"):
                change()
        assert state.get() == ["a"]
    state.clear()
    assert state.get() == []


def test_what_cannot_be_stored_is_named() -> None:
    with pytest.raises(StateNotStorable, match=r"state 'pending'.*object"):
        snapshot_of(OperatorListState(object, name="pending"), object())


def test_offsets_outside_of_the_bytes_are_corrupt() -> None:
    with pytest.raises(CorruptState, match="'pending'"):
        restored(PENDING, OperatorListHandle("pending", "split", (0, 5), inline_handle(b"ab")))
