"""KeyedStateContract: what every keyed state backend must do. Subclass it and say how to make one.

Facts from Flink's StateBackendTestBase; its scripts, restated, are played by tests/conformance/state_backend.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    SubtaskIndex,
    VertexId,
)
from understudy.state.backends.backend import KeyedSnapshot, KeyedStateBackend, SnapshotTarget, key_count
from understudy.state.backends.timer_queue import TimerEntry
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot, store_in_file
from understudy.state.errors import InvalidState, NoCurrentKey, ReadOnlyState, StateIncompatible, WrongStateType
from understudy.state.keys.key_groups import key_group
from understudy.state.kinds.descriptors import FoldingState, ListState, MapState, ReducingState, ValueState
from understudy.state.kinds.state_declaration import KeyedStateDeclaration
from understudy.state.storage import CheckpointStorage, handle_reader

MAX_PARALLELISM = 16

KEYS = [*range(6), "JFK", "LGA", ("JFK", 1), 2.5]

contract = settings(
    max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors], deadline=None
)
"""One property is run by each subclass, on purpose."""

Operation = tuple[str, Any, Any]
"""(what, key, argument)."""


def appended(held: list[int], added: int) -> list[int]:
    """Changes its accumulator in place, as users do."""
    held.append(added)
    return held


class Declared:
    """One state of each kind, and two whose values are changed in place: `box` also without an update behind it."""

    value = ValueState(int, default=-1)
    box = ValueState(dict, default={})
    items = ListState(int)
    table = MapState(str, int)
    total = ReducingState(int, lambda held, added: held + added)
    folded = FoldingState(list, [], appended)


def operations() -> st.SearchStrategy[list[Operation]]:
    """Scripts of changes, as data."""
    what = st.sampled_from(["value", "box", "in place", "items", "table", "remove", "total", "folded", "clear"])
    return st.lists(st.tuples(what, st.sampled_from(KEYS), st.integers(0, 5)), max_size=30)


def key_group_ranges() -> st.SearchStrategy[list[range]]:
    """All key groups, cut into consecutive ranges."""
    cuts = st.sets(st.integers(1, MAX_PARALLELISM - 1), max_size=4)
    return cuts.map(lambda at: list(map(range, [0, *sorted(at)], [*sorted(at), MAX_PARALLELISM])))


def apply(backend: KeyedStateBackend, script: Iterable[Operation]) -> None:
    for what, key, argument in script:
        backend.current_key = key
        _apply_one(backend, what, argument)


def _apply_one(backend: KeyedStateBackend, what: str, argument: int) -> None:
    match what:
        case "value":
            backend.state(Declared.value).update(argument)
        case "box":
            box = backend.state(Declared.box).value()
            box[argument] = box.get(argument, 0) + 1
            backend.state(Declared.box).update(box)
        case "in place":
            box = backend.state(Declared.box).value()
            if box:  # it is held: the copy of a default has to be put back
                box[argument] = box.get(argument, 0) + 1
        case "items":
            backend.state(Declared.items).add(argument)
        case "table":
            table = backend.state(Declared.table)
            table.put(str(argument), (table.get(str(argument)) or 0) + 1)
        case "remove":
            backend.state(Declared.table).remove(str(argument))
        case "total":
            backend.state(Declared.total).add(argument)
        case "folded":
            backend.state(Declared.folded).add(argument)
        case "clear":
            declared: list[KeyedStateDeclaration] = [
                Declared.value,
                Declared.box,
                Declared.items,
                Declared.table,
                Declared.total,
                Declared.folded,
            ]
            backend.state(declared[argument]).clear()


def reads(backend: KeyedStateBackend, keys: Sequence[Any] = KEYS) -> dict[Any, tuple[Any, ...]]:
    """What every key holds, in fresh objects; keys that hold nothing are left out."""
    found = {}
    for key in keys:
        backend.current_key = key
        found[key] = (
            backend.state(Declared.value).value(),
            dict(backend.state(Declared.box).value()),
            backend.state(Declared.items).get(),
            dict(backend.state(Declared.table).items()),
            backend.state(Declared.total).get(),
            list(backend.state(Declared.folded).get() or []),
        )
    return {key: held for key, held in found.items() if held != (-1, {}, [], {}, None, [])}


TimerOperation = tuple[str, str, int, Any, Any]
"""("add" or "remove", domain, time, key, namespace)."""


def timer_scripts() -> st.SearchStrategy[list[TimerOperation]]:
    """Few times and keys, so that the same timer is set again and removed."""
    return st.lists(
        st.tuples(
            st.sampled_from(["add", "add", "remove"]),
            st.sampled_from(["event", "processing"]),
            st.sampled_from([-(2**63), -1, 0, 7, 8, 2**40, 2**63 - 1]),
            st.sampled_from(KEYS),
            st.sampled_from([(), (0, 10), ("late", 3), 5, "w"]),
        ),
        max_size=30,
    )


def set_timers(backend: KeyedStateBackend, script: Iterable[TimerOperation]) -> None:
    for what, domain, time_ms, key, namespace in script:
        queue = getattr(backend.timers(), domain)
        (queue.add if what == "add" else queue.remove)((time_ms, key, namespace))


def pending(backend: KeyedStateBackend) -> list[tuple[str, TimerEntry]]:
    """All timers, by domain."""
    queues = backend.timers()._asdict()
    return [(domain, timer) for domain, queue in queues.items() for timer in queue]


class KeyedStateContract(ABC):
    """Subclass as `class TestMine(KeyedStateContract)`, with `make_backend`."""

    @abstractmethod
    def make_backend(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        """A new, empty backend for these of MAX_PARALLELISM key groups."""

    def write(self, snapshot: KeyedSnapshot) -> tuple[list[KeyedStateHandle], CheckpointStorage]:
        """Run the asynchronous part and store the result, as a task does."""
        storage, attempt = CheckpointStorage("memory://contract"), ExecutionAttemptId(uuid4().hex)
        target = SnapshotTarget(storage, JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), attempt)
        parts = SubtaskSnapshot()
        parts.add(OperatorId("op"), snapshot)
        state = parts.write(replace(target, inline_below_bytes=1), store_in_file)
        return [handle for part in state.operators.values() for handle in part.keyed], storage

    def restored(
        self,
        handles: Sequence[KeyedStateHandle],
        storage: CheckpointStorage,
        key_groups: range = range(MAX_PARALLELISM),
    ) -> KeyedStateBackend:
        backend = self.make_backend(key_groups)
        backend.restore(handles, handle_reader(storage))
        return backend

    def filled(self, script: Iterable[Operation]) -> KeyedStateBackend:
        backend = self.make_backend()
        apply(backend, script)
        return backend

    # --- snapshot and restore

    @contract
    @given(script=operations())
    def test_restoring_a_snapshot_gives_the_same_reads(self, script: list[Operation]) -> None:
        backend = self.filled(script)
        assert reads(self.restored(*self.write(backend.snapshot(CheckpointId(1))))) == reads(backend)

    @contract
    @given(before=operations(), after=operations())
    def test_changes_after_the_synchronous_part_do_not_show_in_the_snapshot(
        self, before: list[Operation], after: list[Operation]
    ) -> None:
        """testAsyncSnapshot."""
        backend = self.filled(before)
        expected = reads(backend)
        snapshot = backend.snapshot(CheckpointId(1))
        apply(backend, after)
        assert reads(self.restored(*self.write(snapshot))) == expected
        assert reads(backend) == reads(self.filled([*before, *after]))

    @contract
    @given(scripts=st.lists(operations(), min_size=2, max_size=4), data=st.data())
    def test_several_snapshots_may_be_written_at_once_in_any_order(
        self, scripts: list[list[Operation]], data: st.DataObject
    ) -> None:
        """testParallelAsyncSnapshots."""
        backend, open_snapshots = self.make_backend(), []
        for number, script in enumerate(scripts, 1):
            apply(backend, script)
            open_snapshots.append((backend.snapshot(CheckpointId(number)), reads(backend)))
        for snapshot, expected in data.draw(st.permutations(open_snapshots)):
            assert reads(self.restored(*self.write(snapshot))) == expected

    @contract
    @given(before=operations(), after=operations())
    def test_a_cancelled_snapshot_does_no_harm(self, before: list[Operation], after: list[Operation]) -> None:
        """testAsyncSnapshotCancellation."""
        backend = self.filled(before)
        backend.snapshot(CheckpointId(1))
        apply(backend, after)
        expected = reads(self.filled([*before, *after]))
        assert reads(self.restored(*self.write(backend.snapshot(CheckpointId(2))))) == expected

    @contract
    @given(script=operations(), cut=key_group_ranges())
    def test_cutting_into_key_group_ranges_and_merging_back_is_the_identity(
        self, script: list[Operation], cut: list[range]
    ) -> None:
        """testKeyGroupSnapshotRestore, there and back."""
        backend = self.filled(script)
        handles, storage = self.write(backend.snapshot(CheckpointId(1)))
        pieces, merged = [], {}
        for own in cut:
            shares = [share for handle in handles if (share := cut_handle(handle, own)) is not None]
            piece = self.restored(shares, storage, own)
            merged.update(reads(piece))
            pieces.append(piece)
        assert merged == reads(backend)
        assert sum(piece.entry_count() for piece in pieces) == backend.entry_count()
        handles_of_pieces, stores = [], []
        for piece in pieces:
            written, store = self.write(piece.snapshot(CheckpointId(2)))
            handles_of_pieces += written
            stores += [store] * len(written)
        whole = self.make_backend()
        read_by_path = {
            id(each): handle_reader(store)
            for handle, store in zip(handles_of_pieces, stores, strict=True)
            for each in (handle.handle, *(shared.handle for shared in handle.shared))
        }
        whole.restore(handles_of_pieces, lambda handle: read_by_path[id(handle)](handle))
        assert reads(whole) == reads(backend)

    @contract
    @given(script=operations())
    def test_state_that_is_not_declared_any_more_survives_the_next_snapshot(self, script: list[Operation]) -> None:
        backend = self.filled(script)
        second = self.restored(*self.write(backend.snapshot(CheckpointId(1))))
        third = self.restored(*self.write(second.snapshot(CheckpointId(2))))
        assert reads(third) == reads(backend)

    def test_a_backend_that_never_had_state_gives_no_handle(self) -> None:
        """testEmptyStateCheckpointing."""
        backend = self.make_backend()
        backend.state(Declared.value)
        assert self.write(backend.snapshot(CheckpointId(1)))[0] == []

    @contract
    @given(script=operations())
    def test_after_clearing_everything_nothing_is_left(self, script: list[Operation]) -> None:
        backend = self.filled(script)
        apply(backend, [("clear", key, state) for key in KEYS for state in range(6)])
        assert reads(backend) == {}
        assert backend.entry_count() == 0
        assert self.write(backend.snapshot(CheckpointId(1)))[0] == []

    # --- timers

    @contract
    @given(script=timer_scripts(), cut=key_group_ranges())
    def test_timers_come_back_each_in_its_key_group(self, script: list[TimerOperation], cut: list[range]) -> None:
        """InternalTimerServiceImplTest.testSnapshotAndRebalancingRestore."""
        backend = self.make_backend()
        set_timers(backend, script)
        expected = pending(backend)
        handles, storage = self.write(backend.snapshot(CheckpointId(1)))
        found = []
        for own in cut:
            shares = [share for handle in handles if (share := cut_handle(handle, own)) is not None]
            piece = pending(self.restored(shares, storage, own))
            assert all(key_group(timer[1], MAX_PARALLELISM) in own for _, timer in piece)
            found += piece
        assert sorted(found, key=repr) == sorted(expected, key=repr)

    @contract
    @given(before=timer_scripts(), after=timer_scripts())
    def test_timers_set_after_the_synchronous_part_do_not_show_in_the_snapshot(
        self, before: list[TimerOperation], after: list[TimerOperation]
    ) -> None:
        backend = self.make_backend()
        set_timers(backend, before)
        expected = pending(backend)
        snapshot = backend.snapshot(CheckpointId(1))
        set_timers(backend, after)
        while backend.timers().event.pop(2**62):
            pass
        assert sorted(pending(self.restored(*self.write(snapshot))), key=repr) == sorted(expected, key=repr)

    def test_timers_alone_are_state(self) -> None:
        backend = self.make_backend()
        assert backend.timers().event.add((5, "JFK", (0, 10)))
        handles, storage = self.write(backend.snapshot(CheckpointId(1)))
        assert handles
        assert pending(self.restored(handles, storage)) == [("event", (5, "JFK", (0, 10)))]

    @contract
    @given(script=timer_scripts())
    def test_timers_of_an_operator_that_sets_none_any_more_are_kept(self, script: list[TimerOperation]) -> None:
        backend = self.make_backend()
        set_timers(backend, script)
        second = self.restored(*self.write(backend.snapshot(CheckpointId(1))))
        third = self.restored(*self.write(second.snapshot(CheckpointId(2))))
        assert sorted(pending(third), key=repr) == sorted(pending(backend), key=repr)

    # --- reads and writes

    def test_the_default_value_is_copied_for_each_key(self) -> None:
        """testCopyDefaultValue."""
        backend = self.make_backend()
        box = backend.state(Declared.box)
        backend.current_key = 1
        first = box.value()
        backend.current_key = 2
        assert box.value() == first
        assert box.value() is not first

    @contract
    @given(script=operations(), key=st.sampled_from(KEYS), change=operations())
    def test_a_question_sees_state_and_cannot_change_it(
        self, script: list[Operation], key: Any, change: list[Operation]
    ) -> None:
        backend = self.filled(script)
        expected = reads(backend)
        with backend.read_only():
            for what, at, argument in [("value", key, 1), ("items", key, 1), ("table", key, 1), *change]:
                backend.current_key = at
                if what == "in place":  # of a copy
                    _apply_one(backend, what, argument)
                    continue
                backend.state(Declared.box).value()["x"] = 1
                with pytest.raises(ReadOnlyState, match=r"value|box|items|table|total|folded"):
                    _apply_one(backend, what, argument)
            assert reads(backend) == expected
        assert reads(backend) == expected
        apply(backend, [("value", key, 5)])
        assert backend.state(Declared.value).value() == 5

    def test_state_without_a_key_is_an_error(self) -> None:
        value = self.make_backend().state(Declared.value)
        with pytest.raises(NoCurrentKey, match="'value'"):
            value.value()
        with pytest.raises(NoCurrentKey, match="'value'"):
            value.update(1)

    def test_the_same_state_twice_is_the_same_accessor(self) -> None:
        backend = self.make_backend()
        assert backend.state(Declared.items) is backend.state(Declared.items)

    @contract
    @given(script=operations())
    def test_a_map_of_a_key_is_empty_whatever_other_keys_hold(self, script: list[Operation]) -> None:
        backend = self.filled(script)
        table = backend.state(Declared.table)
        for key in KEYS:
            backend.current_key = key
            assert table.is_empty() == (not table.items()) == (not table.keys())

    def test_keys_lists_those_that_hold_something(self) -> None:
        backend = self.filled([("value", 1, 1), ("value", "JFK", 2), ("items", 3, 1), ("value", 2, 1), ("clear", 2, 0)])
        assert set(backend.keys("value")) == {1, "JFK"}
        assert set(backend.keys("items")) == {3}
        assert (key_count(backend, "value"), key_count(backend, "items"), key_count(backend, "none")) == (2, 1, 0)

    @contract
    @given(script=operations())
    def test_each_key_that_holds_something_is_gone_through_once(self, script: list[Operation]) -> None:
        backend = self.filled(script)
        held = {}
        for key in backend.each_key():
            assert key == backend.current_key
            assert key not in held
            held |= reads(backend, [key])
        assert held == reads(backend)

    @contract
    @given(script=operations(), cleared=st.lists(st.booleans(), min_size=len(KEYS)))
    def test_state_may_change_while_each_key_is_gone_through(
        self, script: list[Operation], cleared: list[bool]
    ) -> None:
        backend = self.filled(script)
        kept, seen = {}, 0
        for key, is_cleared in zip(backend.each_key(), cleared, strict=False):
            seen += 1
            if is_cleared:
                apply(backend, [("clear", key, state) for state in range(6)])
            else:
                backend.state(Declared.total).add(1)
                kept[key] = backend.state(Declared.total).get()
        assert seen == len(reads(self.filled(script)))
        assert set(backend.keys("total")) == set(kept) == set(backend.each_key())
        assert {key: held[4] for key, held in reads(backend).items()} == kept

    @pytest.mark.parametrize(
        "change",
        [
            lambda backend: backend.state(Declared.value).update("text"),
            lambda backend: backend.state(ValueState(list[int], name="listed")).update([1, "text"]),
            lambda backend: backend.state(Declared.items).add("text"),
            lambda backend: backend.state(Declared.table).put("a", "text"),
            lambda backend: backend.state(ReducingState(int, max, name="greatest")).add("text"),
        ],
    )
    def test_a_value_of_another_type_is_never_stored(self, change: Callable[[KeyedStateBackend], None]) -> None:
        backend = self.make_backend()
        backend.current_key = "JFK"

        def store() -> None:
            change(backend)
            self.write(backend.snapshot(CheckpointId(1)))

        with pytest.raises(WrongStateType, match=r"int, found str 'text'.* for key 'JFK'"):
            store()

    def test_state_of_another_kind_is_refused_by_name(self) -> None:
        handles, storage = self.write(self.filled([("value", 1, 1)]).snapshot(CheckpointId(1)))
        with pytest.raises(StateIncompatible, match=r"'value'.*ListState of .*ValueState of int"):
            self.restored(handles, storage).state(ListState(int, name="value"))

    def test_values_of_another_type_are_refused_when_the_state_is_bound(self) -> None:
        """testValueStateRestoreWithWrongSerializers, and its like for the other kinds."""
        handles, storage = self.write(self.filled([("value", 1, 1), ("items", 1, 1)]).snapshot(CheckpointId(1)))
        restored = self.restored(handles, storage)
        with pytest.raises(StateIncompatible, match=r"'value'.*ValueState of str.*ValueState of int"):
            restored.state(ValueState(str, name="value"))
        with pytest.raises(StateIncompatible, match=r"'items'.*ListState of list.str.*ListState of list.int"):
            restored.state(ListState(str, name="items"))

    def test_accumulators_of_several_namespaces_become_one_where_the_state_says_how(self) -> None:
        """testAggregatingStateMergingWithImmutableAccumulator."""
        backend = self.make_backend()
        folded = backend.state(FoldingState(list, [], appended, merge=lambda held, other: held + other, name="folded"))
        backend.current_key = 1
        for namespace, added in [(1, 10), (2, 20), (2, 21)]:
            folded.set_namespace(namespace)
            folded.add(added)
        folded.merge_namespaces(1, [2, 3])
        assert folded.get() is None
        folded.set_namespace(1)
        assert folded.get() == [10, 20, 21]
        assert backend.entry_count() == 1

    def test_accumulators_cannot_be_merged_unless_the_state_says_how(self) -> None:
        with pytest.raises(InvalidState, match=r"'folded' has no merge function; wanted FoldingState\(merge="):
            self.make_backend().state(Declared.folded).merge_namespaces(1, [2])
