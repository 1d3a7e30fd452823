"""The heap backend passes the contract, and what is theirs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from understudy.messages import CheckpointId, KeyedStateHandle
from understudy.state.backends import heap_blocks
from understudy.state.backends.backend import KeyedStateBackend
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.private_copy import private_copy
from understudy.state.errors import NoCurrentKey, StateIncompatible, StateNotStorable
from understudy.state.keys.key_groups import InvalidKey
from understudy.state.kinds.descriptors import ListState, MapState, ValueState

from ...contracts.keyed_state import MAX_PARALLELISM, KeyedStateContract


class TestHeapBackend(KeyedStateContract):
    def make_backend(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        return HeapBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM)


@dataclass
class Visit:
    count: int = 0
    places: list[str] = field(default_factory=list)


def backend_of(*keys: object, value: object = 1) -> HeapBackend:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    state = backend.state(ValueState(object, name="held"))
    for key in keys:
        backend.current_key = key
        state.update(value)
    return backend


@pytest.mark.parametrize(
    ("declared", "ask"),
    [
        (ValueState(int, default=0, name="held"), lambda state: state.value()),
        (ValueState(list, default=[], name="held"), lambda state: state.value()),
        (ValueState(int, name="held"), lambda state: state.update(1)),
        (ListState(int, name="held"), lambda state: state.get()),
        (MapState(str, int, name="held"), lambda state: state.put("a", 1)),
    ],
)
def test_without_a_key_nothing_is_read_or_written(declared: Any, ask: Callable[[Any], object]) -> None:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    state = backend.state(declared)
    with pytest.raises(NoCurrentKey, match="'held'"):
        ask(state)
    backend.current_key = [1]
    with pytest.raises(TypeError, match="a list cannot be a key"):
        ask(state)
    assert backend.entry_count() == 0


def test_a_default_that_can_be_changed_is_nobody_elses() -> None:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    state = backend.state(ValueState(list, default=[1], name="held"))
    for key in "ab":
        backend.current_key = key
        held = state.value()
        held.append(2)
        state.update([])
        state.clear()
        assert state.value() == [1]


def test_a_dataclass_changed_in_place_does_not_leak_into_the_snapshot() -> None:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    declared = ValueState(Visit, name="visit")
    state = backend.state(declared)
    backend.current_key = "a"
    state.update(Visit(1, ["JFK"]))
    snapshot = backend.snapshot(CheckpointId(1))
    visit = state.value()
    assert visit is not None
    visit.count += 1
    visit.places.append("LGA")
    state.update(visit)
    handle = snapshot(None)  # type: ignore[arg-type]
    assert handle is not None
    restored = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    restored.restore([handle], lambda it: it.data or b"")
    restored.current_key = "a"
    assert restored.state(declared).value() == Visit(1, ["JFK"])
    assert state.value() == Visit(2, ["JFK", "LGA"])


def test_what_a_key_holds_in_each_of_its_namespaces_is_copied_by_itself() -> None:
    """As windows of one key do, which are changed one after the other while a snapshot is being written."""
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    declared = ListState(int, name="items")
    items: Any = backend.state(declared)
    backend.current_key = "a"
    for window in (1, 2):
        items.set_namespace(window)
        items.add(window)
    snapshot = backend.snapshot(CheckpointId(1))
    for window in (1, 2):
        items.set_namespace(window)
        items.add(7)
    handle = snapshot(None)  # type: ignore[arg-type]
    assert handle is not None
    again = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    again.restore([handle], lambda it: it.data or b"")
    again.current_key = "a"
    restored: Any = again.state(declared)
    for window in (1, 2):
        restored.set_namespace(window)
        assert restored.get() == [window]


def test_values_are_copied_once_per_snapshot_and_not_without_one() -> None:
    backend = backend_of("a", value=[1])
    state = backend.state(ValueState(object, name="held"))
    assert state.value() is state.value()
    snapshot = backend.snapshot(CheckpointId(1))
    before, after = state.value(), state.value()
    assert before is after
    snapshot(None)  # type: ignore[arg-type]
    assert not backend.observers


def test_a_dropped_snapshot_is_not_in_flight() -> None:
    backend = backend_of("a", value=[1])
    backend.snapshot(CheckpointId(1))
    assert not backend.observers


def test_a_snapshot_that_fails_is_not_in_flight_and_names_the_state() -> None:
    backend = backend_of("a", value=object())
    with pytest.raises(StateNotStorable, match=r"state 'held'.*object"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert not backend.observers


def test_a_key_of_a_foreign_key_group_fails_the_snapshot() -> None:
    backend = HeapBackend(0, 0, 128)
    state = backend.state(ListState(int, name="items"))
    for key in range(20):
        backend.current_key = key
        state.add(1)
    with pytest.raises(StateNotStorable, match="this subtask owns 0 to 0"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second"), [(str, int), (float, str)])
def test_restoring_with_another_key_type_is_refused(first: type, second: type) -> None:
    """StateBackendTestBase.testRestoreWithWrongKeySerializer."""
    backend = HeapBackend(0, 127, 128, key_type=first)
    state = backend.state(ValueState(int, 0, name="count"))
    backend.current_key = first("1")
    state.update(1)
    handle = backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert handle is not None
    with pytest.raises(StateIncompatible, match="'key'"):
        HeapBackend(0, 127, 128, key_type=second).restore([handle], lambda it: it.data or b"")


def test_another_max_parallelism_is_refused() -> None:
    handle = backend_of(1)
    snapshot = handle.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert snapshot is not None
    with pytest.raises(StateIncompatible, match=r"max_parallelism 32.*max_parallelism 16"):
        HeapBackend(0, 31, 32).restore([snapshot], lambda it: it.data or b"")


def test_a_namespace_is_required() -> None:
    """StateBackendTestBase.testRequireNonNullNamespace."""
    state = backend_of(1).state(ValueState(object, name="held"))
    with pytest.raises(ValueError, match="not None"):
        state.set_namespace(None)


def test_namespaces_survive_a_restore_and_empty_ones_are_dropped() -> None:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    declared = ListState(int, name="window")
    state = backend.state(declared)
    backend.current_key = "k"
    for namespace in [(0, 10), (10, 20), (20, 30)]:
        state.set_namespace(namespace)
        state.add(namespace[0])
    state.clear()
    state.set_namespace((0, 10))
    assert set(state.namespaces) == {(0, 10), (10, 20)}  # type: ignore[attr-defined]
    handle = backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert handle is not None
    restored = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    restored.restore([handle], lambda it: it.data or b"")
    again = restored.state(declared)
    restored.current_key = "k"
    again.set_namespace((10, 20))
    assert again.get() == [10]
    assert restored.keys("window", (0, 10)) == ["k"]
    assert restored.entry_count() == 2


def test_private_copies_share_nothing_that_can_change() -> None:
    value = {"a": [1, {"b": (2, [3])}], "c": Visit(1, ["x"])}
    copied = private_copy(value)
    assert copied == value
    value["a"][1]["b"][1].append(4)  # type: ignore[index]
    value["c"].places.append("y")  # type: ignore[attr-defined]
    assert copied == {"a": [1, {"b": (2, [3])}], "c": Visit(1, ["x"])}


def test_what_was_cleared_while_a_snapshot_is_written_stays_cleared() -> None:
    backend = backend_of("a", "b", value=[1])
    state = backend.state(ValueState(object, name="held"))
    snapshot = backend.snapshot(CheckpointId(1))
    backend.current_key = "a"
    state.clear()
    assert state.value() is None
    assert (backend.keys("held"), backend.entry_count()) == (["b"], 1)
    assert snapshot(None) is not None  # type: ignore[arg-type]
    assert state.value() is None
    assert (backend.keys("held"), backend.entry_count()) == (["b"], 1)
    state.update([2])
    assert backend.entry_count() == 2


def test_immutable_values_are_not_copied_for_a_snapshot() -> None:
    value = (1, "x", 2.5)
    backend = backend_of("a", value=value)
    state = backend.state(ValueState(object, name="held"))
    snapshot = backend.snapshot(CheckpointId(1))
    assert state.value() is value
    snapshot(None)  # type: ignore[arg-type]


def restored_from(handle: KeyedStateHandle | None) -> HeapBackend:
    assert handle is not None
    restored = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    restored.restore([handle], lambda it: it.data or b"")
    restored.state(ValueState(object, name="held"))
    return restored


def test_a_snapshot_after_keys_were_removed_holds_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of an earlier snapshot are not taken for those of a later one."""
    monkeypatch.setattr(heap_blocks, "CHUNK_ENTRIES", 4)
    backend = backend_of(*range(10))
    state = backend.state(ValueState(object, name="held"))
    assert backend.snapshot(CheckpointId(1))(None) is not None  # type: ignore[arg-type]
    between = backend.snapshot(CheckpointId(2))
    for backend.current_key in (1, 2, 9):
        state.clear()
    for backend.current_key in (10, 2):
        state.update(2)
    after = restored_from(backend.snapshot(CheckpointId(3))(None))  # type: ignore[arg-type]
    assert sorted(after.keys("held")) == [0, 2, 3, 4, 5, 6, 7, 8, 10]
    assert sorted(restored_from(between(None)).keys("held")) == list(range(10))  # type: ignore[arg-type]


def test_values_are_handed_out_uncopied_again_once_the_snapshot_is_written() -> None:
    backend = backend_of("a", "b", value=[1])
    state = backend.state(ValueState(object, name="held"))
    backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]
    assert state.value() is state.value()
    assert not backend.observers


def test_an_answered_question_leaves_values_shared_with_a_snapshot() -> None:
    backend = backend_of("a", value=[1])
    state = backend.state(ValueState(object, name="held"))
    snapshot = backend.snapshot(CheckpointId(1))
    with backend.read_only():
        assert state.value() == [1]
    state.value().append(2)  # type: ignore[attr-defined]
    restored = restored_from(snapshot(None))  # type: ignore[arg-type]
    restored.current_key = "a"
    assert restored.state(ValueState(object, name="held")).value() == [1]


def test_a_later_snapshot_does_not_wait_for_an_earlier_one() -> None:
    backend = backend_of("a", "b", value=[1])
    state = backend.state(ValueState(object, name="held"))
    first = backend.snapshot(CheckpointId(1))
    backend.current_key = "a"
    state.value().append(2)  # type: ignore[attr-defined]
    second = backend.snapshot(CheckpointId(2))
    state.value().append(3)  # type: ignore[attr-defined]
    assert second(None) is not None  # type: ignore[arg-type]
    state.value().append(4)  # type: ignore[attr-defined]
    handle = first(None)  # type: ignore[arg-type]
    assert handle is not None
    restored = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    restored.restore([handle], lambda it: it.data or b"")
    restored.current_key = "a"
    assert restored.state(ValueState(object, name="held")).value() == [1]
    assert state.value() == [1, 2, 3, 4]


def test_a_value_that_cannot_be_written_is_named_with_state_and_key() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value, text in (
        ({"a": [object()]}, r"at \['a'\]\[0\]: an object cannot be"),
        (loop, "contains itself"),
    ):
        with pytest.raises(StateNotStorable, match=f"state 'held': value of key 'k': .*{text}"):
            backend_of("k", value=value).snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


def test_whatever_a_serializer_raises_is_named_with_its_state() -> None:
    class Bad:
        name, version = "bad", 1

        def serialize(self, value: Any) -> bytes:
            raise ZeroDivisionError("no bytes today")

        def deserialize(self, data: bytes, version: int) -> Any: ...

    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    state = backend.state(ValueState(object, name="held", serializer=Bad()))
    backend.current_key = "k"
    state.update(1)
    with pytest.raises(StateNotStorable, match="state 'held': no bytes today"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [[1], (1, {}), Decimal("sNaN")])
@pytest.mark.parametrize("use", [lambda it: it.value(), lambda it: it.update(1)])
def test_a_key_that_has_no_hash_is_an_invalid_key(key: Any, use: Callable[[Any], object]) -> None:
    backend = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
    state = backend.state(ValueState(int, name="held"))
    backend.current_key = key
    with pytest.raises(InvalidKey):
        use(state)
