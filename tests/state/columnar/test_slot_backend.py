"""State in columns is what state in dicts is: the same reads, the same snapshots, there and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import CheckpointId
from understudy.state.columnar import slot_backend
from understudy.state.columnar.slot_keys import check_key_types
from understudy.state.errors import (
    InvalidState,
    NoCurrentKey,
    ReadOnlyState,
    StateNotStorable,
    WrongStateType,
)
from understudy.state.keys.key_groups import InvalidKey, key_group
from understudy.state.kinds.descriptors import ListState, MapState, ReducingState, ValueState

from ...examples import examples
from .slot_scripts import (
    KEY_KINDS,
    MAX_PARALLELISM,
    STATES,
    Extent,
    KeyKind,
    compiled,
    filled,
    interpreted,
    keys_of,
    play,
    reads,
    restored_into,
    scripts,
    written,
)

some_examples = examples(60)
key_kinds = st.sampled_from(sorted(KEY_KINDS)).map(KEY_KINDS.__getitem__)
INTEGER_KEYS = KEY_KINDS["int64"]


def held_by(backend: Any) -> dict[str, set[Any]]:
    return {name: set(backend.keys(name)) for name in STATES}


def key_types(keys: Iterable[Any]) -> set[Any]:
    return {tuple(map(type, key)) if isinstance(key, tuple) else type(key) for key in keys}


@some_examples
@given(kind=key_kinds, data=st.data())
def test_it_reads_as_state_in_dicts(kind: KeyKind, data: st.DataObject) -> None:
    script = data.draw(scripts(kind))
    slots, heap = compiled(), interpreted()
    play(slots, script, kind)
    play(heap, script, kind)
    assert reads(slots, keys_of(script)) == reads(heap, keys_of(script))
    assert held_by(slots) == held_by(heap)
    assert slots.entry_count() == heap.entry_count()


@some_examples
@given(kind=key_kinds, data=st.data())
def test_it_does_so_while_keys_that_hold_nothing_are_forgotten(kind: KeyKind, data: st.DataObject) -> None:
    scripts_played, taken = data.draw(st.lists(scripts(kind), min_size=2, max_size=3)), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_backend, "_FEWEST_KEYS", 2)
        slots, heap = compiled(), interpreted()
        for script in scripts_played:
            play(slots, script, kind)
            play(heap, script, kind)
            keys = keys_of(script)
            assert reads(slots, keys) == reads(heap, keys)
            taken.append((slots.snapshot(CheckpointId(1)), keys, reads(heap, keys)))
    for snapshot, keys, expected in taken:
        handle = snapshot(None)  # type: ignore[arg-type]
        assert reads(restored_into(interpreted(), [] if handle is None else [handle]), keys) == expected


@some_examples
@given(kind=key_kinds, data=st.data())
def test_its_snapshot_is_restored_by_state_in_dicts_in_another_parallelism(kind: KeyKind, data: st.DataObject) -> None:
    script = data.draw(scripts(kind))
    slots, heap = compiled(), interpreted()
    play(slots, script, kind)
    play(heap, script, kind)
    handles = written(slots)
    for groups in (range(5), range(5, MAX_PARALLELISM)):
        own = [key for key in keys_of(script) if key_group(key, MAX_PARALLELISM) in groups]
        part = restored_into(interpreted(groups), handles)
        assert reads(part, own) == reads(heap, own)
        for name, keys in held_by(part).items():
            assert keys == {key for key in heap.keys(name) if key in own}
            assert key_types(keys) <= key_types(own)
    assert (handles == []) == (heap.entry_count() == 0)


@some_examples
@given(kind=key_kinds, data=st.data())
def test_a_snapshot_of_state_in_dicts_is_restored_and_gone_on_from(kind: KeyKind, data: st.DataObject) -> None:
    before, after = data.draw(scripts(kind)), data.draw(scripts(kind))
    heap = interpreted()
    play(heap, before, kind)
    handles = written(heap)
    keys = keys_of(before + after)
    parts = [restored_into(compiled(groups), handles) for groups in (range(7), range(7, MAX_PARALLELISM))]
    for part in parts:
        own = [key for key in keys if key_group(key, MAX_PARALLELISM) in part.key_groups]
        assert reads(part, own) == reads(heap, own)
        play(part, _of_keys(after, own), kind)
    play(heap, after, kind)
    for part in parts:
        own = [key for key in keys if key_group(key, MAX_PARALLELISM) in part.key_groups]
        assert reads(part, own) == reads(heap, own)
        assert reads(restored_into(interpreted(), written(part)), own) == reads(heap, own)


def _of_keys(script: Any, keys: list[Any]) -> Any:
    return [(in_columns, [change for change in batch if change[0] in keys]) for in_columns, batch in script]


@some_examples
@given(before=scripts(INTEGER_KEYS), after=scripts(INTEGER_KEYS), order=st.permutations(range(3)))
def test_snapshots_written_later_in_any_order_hold_what_was_there(before: Any, after: Any, order: list[int]) -> None:
    """testAsyncSnapshot, testParallelAsyncSnapshots."""
    slots, taken = compiled(), []
    keys = keys_of(before + after)
    for number, script in enumerate((before, after, before)):
        play(slots, script, INTEGER_KEYS)
        taken.append((slots.snapshot(CheckpointId(number)), reads(slots, keys)))
    play(slots, after, INTEGER_KEYS)
    for snapshot, expected in (taken[at] for at in order):
        handle = snapshot(None)  # type: ignore[arg-type]
        restored = restored_into(interpreted(), [] if handle is None else [handle])
        assert reads(restored, keys) == expected


def test_a_snapshot_that_was_dropped_does_no_harm() -> None:
    """testAsyncSnapshotCancellation."""
    slots = filled(range(10))
    slots.snapshot(CheckpointId(1))
    assert set(restored_into(interpreted(), written(slots))._restored) == {"held"}


def test_a_snapshot_after_keys_were_forgotten_has_those_that_came_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was worked out for the keys of an earlier snapshot is not taken for those of a later one."""
    monkeypatch.setattr(slot_backend, "_FEWEST_KEYS", 4)
    declared = ValueState(int, default=0, name="held")
    backend = filled(range(4))
    assert written(backend)
    backend.columns(declared).present[:] = False
    slots = backend.slots_of([pa.array(range(4, 8))])
    backend.columns(declared).present[slots] = True
    restored = restored_into(interpreted(), written(backend))
    assert sorted(_bound(restored, declared).keys("held")) == [4, 5, 6, 7]


def test_memory_that_a_snapshot_gives_back_after_columns_have_grown_is_not_used() -> None:
    backend, declared = filled(range(10)), ValueState(int, default=0, name="held")
    snapshot = backend.snapshot(CheckpointId(1))
    slots = backend.slots_of([pa.array(range(5000))])
    backend.columns(declared).present[slots] = True
    assert snapshot(None) is not None  # type: ignore[arg-type]
    restored = restored_into(interpreted(), written(backend))
    assert len(_bound(restored, declared).keys("held")) == 5000


def test_columns_have_room_for_all_keys_and_keep_what_they_hold_as_they_grow() -> None:
    backend, declared = filled(range(1000), value=7), ValueState(int, default=0, name="held")
    for start in range(1000, 9000, 1000):
        slots = backend.slots_of([pa.array(range(start, start + 1000))])
        columns = backend.columns(declared)
        assert len(columns.present) == len(columns.values[0]) > slots.max()
        assert not columns.present[slots].any()
    assert columns.values[0][:1000].tolist() == [7] * 1000
    assert backend.entry_count() == 1000


def test_a_key_keeps_its_slot_whatever_the_width_of_its_column() -> None:
    backend = compiled()
    five, seven, again = backend.slots_of([pa.array([5, 7, 5])]).tolist()
    assert five == again
    assert sorted([five, seven]) == [0, 1]
    assert backend.slots_of([pa.array([9, 7], pa.int16())]).tolist() == [2, seven]


def test_numbers_that_are_equal_to_python_are_one_key() -> None:
    backend = compiled()
    declared = ValueState(int, default=0, name="held")
    for backend.current_key in (True, 1.0, 1, -0.0, 0):
        backend.state(declared).update(backend.state(declared).value() + 1)
    slots = backend.slots_of([pa.array([0.0, 1.0, -0.0])]).tolist()
    assert backend.columns(declared).values[0][slots].tolist() == [2, 3, 2]
    assert len(backend.slot_keys) == 2
    backend.current_key = "1"
    assert backend.state(declared).value() == 0


def test_all_nans_are_one_key() -> None:
    """Unlike in dicts, where none is ever found again."""
    backend, declared = compiled(), ValueState(int, default=0, name="held")
    for backend.current_key in (float("nan"), float("nan")):
        backend.state(declared).update(backend.state(declared).value() + 1)
    (slot,) = set(backend.slots_of([pa.array([float("nan"), float("nan")])]).tolist())
    assert backend.columns(declared).values[0][slot] == 2
    restored = restored_into(compiled(), written(backend))
    restored.current_key = float("nan")
    assert restored.state(declared).value() == 2


@pytest.mark.parametrize("kind", ["int64", "text and int"])
def test_keys_that_hold_nothing_any_more_are_forgotten_sooner_or_later(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """And a snapshot that is written later does not mind."""
    monkeypatch.setattr(slot_backend, "_FEWEST_KEYS", 64)
    backend, declared, keys = compiled(), ValueState(int, default=0, name="held"), KEY_KINDS[kind]
    taken = []
    for start in range(0, 4000, 50):
        numbers = [*range(start, start + 50), -1]
        slots = backend.slots_of(keys.columns([(str(each), each % 3) for each in numbers] if " " in kind else numbers))
        columns = backend.columns(declared)
        held = columns.present[slots[-1]]
        columns.present[: len(backend.slot_keys)] = False
        columns.present[slots] = True
        columns.values[0][slots[:-1]] = numbers[:-1]
        columns.values[0][slots[-1]] += 1 if held else 1 - columns.values[0][slots[-1]]
        if start % 1000 == 0:
            taken.append((backend.snapshot(CheckpointId(1)), numbers[:-1], 1 + start // 50))
    assert len(backend.slot_keys) < 256
    for snapshot, numbers, batches in taken:
        restored = restored_into(interpreted(), [snapshot(None)])  # type: ignore[list-item, arg-type]
        values = {}
        for key in _bound(restored, declared).keys("held"):
            restored.current_key = key
            values[key] = restored.state(declared).value()
        assert sorted(values.values()) == sorted([*numbers, batches])


def _bound(backend: Any, declared: Any) -> Any:
    backend.state(declared)
    return backend


def test_the_accessors_find_a_key_in_its_new_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_backend, "_FEWEST_KEYS", 4)
    declared = ValueState(int, default=0, name="held")
    backend = filled(range(10))
    backend.current_key = 7
    state = backend.state(declared)
    state.update(70)
    backend.columns(declared).present[:] = False
    state.update(71)
    backend.slots_of([pa.array([3])])
    assert (len(backend.slot_keys), state.value()) == (2, 71)
    state.update(72)
    assert backend.columns(declared).values[0][backend.slots_of([pa.array([7])])].tolist() == [72]


def test_columns_tell_what_the_values_are() -> None:
    backend = compiled()
    found = {name: backend.columns(declared) for name, declared in STATES.items()}
    assert {name: [str(column.dtype) for column in columns.values] for name, columns in found.items()} == {
        "seen": ["int64", "float64", "bool"],
        "last": ["float64"],
        "flag": ["bool"],
        "extent": ["int64", "float64"],
        "total": ["int64", "float64"],
    }
    assert {name: (columns.is_tuple, columns.default) for name, columns in found.items()} == {
        "seen": (True, (0, 0.0, False)),
        "last": (False, None),
        "flag": (False, (False,)),
        "extent": (True, (0, 0.0)),
        "total": (True, None),
    }


# --- accessors


def test_the_value_read_is_of_the_declared_type() -> None:
    backend = compiled()
    extent = backend.state(STATES["extent"])
    backend.current_key = "a"
    assert type(extent.value()) is Extent
    extent.update(Extent(1, 2.0))
    assert extent.value() == Extent(1, 2.0)
    assert type(extent.value()) is Extent
    assert type(extent.value().least) is int


def test_a_question_sees_state_and_cannot_change_it() -> None:
    backend = filled([1])
    state = backend.state(ValueState(int, default=0, name="held"))
    with backend.read_only():
        for key, expected in [(1, 1), (2, 0), ("text", 0)]:
            backend.current_key = key
            assert state.value() == expected
            with pytest.raises(ReadOnlyState, match="'held'"):
                state.update(5)
            with pytest.raises(ReadOnlyState, match="'held'"):
                state.clear()
    assert len(backend.slot_keys) == 1
    backend.current_key = 2
    state.update(5)
    assert state.value() == 5


def test_state_without_a_key_is_an_error() -> None:
    state = compiled().state(ValueState(int, default=0, name="held"))
    with pytest.raises(NoCurrentKey, match="'held'"):
        state.value()
    with pytest.raises(NoCurrentKey, match="'held'"):
        state.update(1)


def test_the_same_state_twice_is_the_same_accessor() -> None:
    backend = compiled()
    assert backend.state(STATES["last"]) is backend.state(STATES["last"])


def test_update_with_none_clears() -> None:
    backend = filled([1])
    backend.current_key = 1
    backend.state(ValueState(int, default=0, name="held")).update(None)
    assert (list(backend.keys("held")), backend.entry_count(), written(backend)) == ([], 0, [])


def test_there_are_no_namespaces() -> None:
    with pytest.raises(InvalidState, match="'held': a compiled operator's state has no namespaces"):
        filled([1]).state(ValueState(int, default=0, name="held")).set_namespace((0, 10))


@pytest.mark.parametrize("value", [1.5, "x", (1,), [1]])
def test_a_value_of_another_type_is_refused(value: Any) -> None:
    backend = filled([1])
    backend.current_key = 1
    with pytest.raises(
        WrongStateType, match=r"'held' \(ValueState of int\): wanted int, found .* for key 1; store a value of the "
    ):
        backend.state(ValueState(int, default=0, name="held")).update(value)


def test_a_value_that_the_columns_cannot_hold_is_refused() -> None:
    backend = filled([1])
    backend.current_key = 1
    with pytest.raises(StateNotStorable, match=r"'held' .*: a compiled operator's columns hold int, .* found 9223"):
        backend.state(ValueState(int, default=0, name="held")).update(2**63)


# --- what is refused


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        (ListState(int, name="bad"), "ListState of list.int."),
        (MapState(str, int, name="bad"), "MapState of dict"),
        (ValueState(str, default="", name="bad"), "ValueState of str with the default ''"),
        (ValueState(tuple, name="bad"), "ValueState of tuple:"),
        (ValueState(tuple, default=(0, "x"), name="bad"), r"default \(0, 'x'\)"),
        (ValueState(tuple, default=(0, (1, 2)), name="bad"), "default"),
        (ValueState(tuple, default=(), name="bad"), "default"),
        (ValueState(tuple[int, str], name="bad"), "tuple.int, str."),
        (ValueState(tuple[int, ...], name="bad"), "tuple.int, "),
        (ValueState(int, default=2**63, name="bad"), "default 9223372036854775808, which does not fit"),
        (ValueState(tuple[int, float], default=(0, 2**53 + 1), name="bad"), "which does not fit"),
        (ReducingState(dict, lambda held, added: held, name="bad"), "ReducingState of dict"),
    ],
)
def test_other_state_is_refused_with_what_there_can_be(declared: Any, found: str) -> None:
    with pytest.raises(InvalidState, match=f"'bad' is a .*{found}.*the state of a compiled operator is a ValueState"):
        compiled().state(declared)


@pytest.mark.parametrize(
    "column", [pa.array([[1]]), pa.array([{"a": 1}]), pa.nulls(1)], ids=lambda column: str(column.type)
)
def test_columns_that_cannot_be_keys_are_refused(column: pa.Array) -> None:
    with pytest.raises(InvalidKey, match="a compiled operator's key: a column of type"):
        compiled().slots_of([column])

    with pytest.raises(InvalidKey, match="a compiled operator's key: a column of type"):
        check_key_types([pa.int64(), column.type])


def test_a_key_that_the_columns_cannot_hold_holds_nothing_and_cannot_be_written() -> None:
    backend = filled([1, 2])
    state = backend.state(ValueState(int, default=0, name="held"))
    for backend.current_key in ("a", 1.5, 2**63, (1, 2), None):
        assert state.value() == 0
        with pytest.raises(InvalidKey, match="is no value of the key columns: int64"):
            state.update(1)


def test_a_null_key_is_refused() -> None:
    with pytest.raises(InvalidKey, match="key column 1 is None at record 2 of the batch; every record"):
        compiled().slots_of([pa.array([1, 2, 3]), pa.array(["a", "b", None])])


def test_key_columns_of_another_kind_in_the_middle_of_a_job_are_refused() -> None:
    with pytest.raises(InvalidKey, match="the key columns are string now, and were int64"):
        filled([1]).slots_of([pa.array(["a"])])
