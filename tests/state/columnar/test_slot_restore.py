"""A savepoint of interpreted state, restored in columns: what fits, and how it is told what does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from understudy.messages import CheckpointId
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.columnar.slot_restore import _key_column
from understudy.state.errors import InvalidState, StateIncompatible, StateNotStorable
from understudy.state.kinds.descriptors import ReducingState, ValueState
from understudy.state.kinds.ttl import Ttl

from ...contracts.expiring_state import Hands
from .slot_scripts import compiled, filled, interpreted, restored_into, written


def interpreted_with(declared: Any, entries: dict[Any, Any]) -> Any:
    heap = interpreted()
    for heap.current_key, value in entries.items():
        heap.state(declared).update(value)
    return written(heap)


@pytest.mark.parametrize("value", [2**63, 1.0, "x", (1, 2)])
def test_a_value_of_a_savepoint_that_the_columns_cannot_hold_is_refused_with_its_key(value: Any) -> None:
    handles = interpreted_with(ValueState(object, name="held"), {"a": 1, "b": value})
    with pytest.raises(StateIncompatible, match=r"'held'.*key 'b' holds .*columns hold int, integers of 64 bits"):
        restored_into(compiled(), handles).state(ValueState(object, default=0, name="held"))


def test_a_longer_integer_in_a_tuple_is_refused_with_its_key() -> None:
    declared = ValueState(tuple, default=(0, 0), name="held")
    handles = interpreted_with(declared, {1: (1, 2), 2: (2**64, 1)})
    with pytest.raises(StateIncompatible, match=r"'held'.*key 2 holds \(18446744073709551616, 1\)"):
        restored_into(compiled(), handles).state(declared)


def test_integers_become_floats_where_the_state_is_declared_so() -> None:
    handles = interpreted_with(ValueState(int, name="held"), {1: 3, 2: 2**53})
    backend = restored_into(compiled(), handles)
    backend.current_key = 2
    assert repr(backend.state(ValueState(float, name="held")).value()) == repr(2.0**53)


def extent_of_one_field() -> Any:
    class Extent(NamedTuple):
        least: int

    Extent.__qualname__ = "Extent"
    return Extent


def test_a_named_tuple_that_gained_a_field_is_restored_with_its_default() -> None:
    class Wider(NamedTuple):
        greatest: float = 0.5
        least: int = 0

    narrow = extent_of_one_field()
    Wider.__qualname__ = "Extent"
    handles = interpreted_with(ValueState(narrow, name="held"), {1: narrow(7)})
    backend = restored_into(compiled(), handles)
    backend.current_key = 1
    assert backend.state(ValueState(Wider, name="held")).value() == Wider(0.5, 7)


def test_state_of_another_kind_is_refused_by_name() -> None:
    handles = interpreted_with(ValueState(int, name="held"), {1: 1})
    with pytest.raises(StateIncompatible, match=r"'held'.*ReducingState of int.*ValueState of int"):
        restored_into(compiled(), handles).state(ReducingState(int, max, name="held"))


def test_restored_keys_that_are_no_values_of_the_key_columns_are_refused() -> None:
    handles = interpreted_with(ValueState(int, name="held"), {1: 1, "a": 2})
    backend = restored_into(compiled(), handles)
    backend.state(ValueState(int, name="held"))
    with pytest.raises(StateIncompatible, match=r"'key'.*columns of int64.*the key 'a'"):
        backend.slots_of([pa.array([1])])


def test_before_the_first_batch_restored_keys_may_be_joined_by_any_other() -> None:
    declared = ValueState(int, name="held")
    backend = restored_into(compiled(), interpreted_with(declared, {1: 10, 2: 20}))
    for backend.current_key in ("a", ("a", 1)):
        backend.state(declared).update(30)
    assert set(backend.keys("held")) == {1, 2, "a", ("a", 1)}
    again = restored_into(compiled(), written(backend))
    again.state(declared)
    assert set(again.keys("held")) == {1, 2, "a", ("a", 1)}


def test_restored_keys_become_values_of_the_columns_that_come_if_they_are_equal() -> None:
    declared = ValueState(int, name="held")
    for column in (pa.array([2.0, 1.0]), pa.array([2, 1], pa.uint64()), pa.array([2, 1], pa.decimal128(5, 2))):
        backend = restored_into(compiled(), interpreted_with(declared, {1: 10, 2: 20}))
        backend.state(declared)
        slots = backend.slots_of([column])
        assert backend.columns(declared).values[0][slots].tolist() == [20, 10]


def test_state_that_is_not_declared_any_more_survives_the_next_snapshot() -> None:
    handles = interpreted_with(ValueState(str, name="gone"), {1: "x"})
    second = restored_into(compiled(), handles)
    assert second.state(ValueState(int, name="held")) is not None
    third = restored_into(interpreted(), written(second))
    third.current_key = 1
    assert third.state(ValueState(str, name="gone")).value() == "x"


def test_windows_state_is_refused() -> None:
    heap, declared = interpreted(), ValueState(int, name="held")
    heap.state(declared).set_namespace((0, 10))
    heap.current_key = 1
    heap.state(declared).update(1)
    with pytest.raises(StateIncompatible, match=r"it has a namespace, \(0, 10\)"):
        restored_into(compiled(), written(heap)).state(declared)


def test_another_max_parallelism_is_refused() -> None:
    with pytest.raises(StateIncompatible, match=r"max_parallelism 32.*max_parallelism 16"):
        restored_into(SlotBackend(0, 31, 32), written(filled([1])))


def test_a_key_of_a_foreign_key_group_fails_the_snapshot() -> None:
    backend = SlotBackend(0, 0, 128)
    backend.state(ValueState(int, default=0, name="held"))
    slots = backend.slots_of([pa.array(range(20))])
    backend.columns(ValueState(int, default=0, name="held")).present[slots] = True
    with pytest.raises(StateNotStorable, match=r"key .* is of key group .* this subtask owns 0 to 0"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


def test_a_key_that_cannot_be_stored_fails_the_snapshot_and_names_the_state() -> None:
    backend = compiled()
    backend.current_key = object()
    backend.state(ValueState(int, default=0, name="held")).update(1)
    with pytest.raises(StateNotStorable, match=r"state 'held': .*object"):
        backend.snapshot(CheckpointId(1))(None)  # type: ignore[arg-type]


def test_a_closed_backend_holds_nothing_and_its_snapshots_finish() -> None:
    backend = filled(range(5))
    snapshot = backend.snapshot(CheckpointId(1))
    backend.close()
    assert (backend.entry_count(), list(backend.keys("held"))) == (0, [])
    handle = snapshot(None)  # type: ignore[arg-type]
    assert handle is not None
    restored = restored_into(interpreted(), [handle])
    restored.state(ValueState(int, name="held"))
    assert sorted(restored.keys("held")) == list(range(5))


@pytest.mark.parametrize(("kind", "value"), [(int, 7), (tuple[int, float], (7, 0.5))])
def test_state_with_a_ttl_is_restored_without_its_times(kind: Any, value: Any) -> None:
    heap = interpreted()
    heap.clock = Hands()
    for heap.current_key in range(100):
        heap.state(ValueState(kind, name="held", ttl=Ttl(hours=1))).update(value)
    backend = restored_into(compiled(), written(heap))
    held = backend.state(ValueState(kind, name="held"))
    for backend.current_key in range(100):
        assert held.value() == value


def test_columns_keep_no_times() -> None:
    with pytest.raises(InvalidState, match="'held' has a TTL, and the columns of a compiled operator keep no times"):
        compiled().state(ValueState(int, name="held", ttl=Ttl(hours=1)))


@pytest.mark.parametrize("keys", [["a", b"b"], [b"b", "a"], ["a", 1], [None, "a"]], ids=str)
def test_keys_of_several_types_are_no_column(keys: list[Any]) -> None:
    """Arrow would make texts of bytes: another key than there was."""
    assert _key_column(["plain", keys]) is None
    assert _key_column(["plain", ["a", "b"]]) == pa.array(["a", "b"], pa.large_string())
