"""State goes from RocksDB to the heap and from the heap to RocksDB: all kinds, timers, times, any key groups."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contracts.expiring_state import Declared as Expiring
from tests.contracts.expiring_state import Hands, Step, looked_at, scripts
from tests.contracts.expiring_state import apply as apply_expiring
from tests.contracts.keyed_state import (
    MAX_PARALLELISM,
    Operation,
    TimerOperation,
    apply,
    key_group_ranges,
    operations,
    pending,
    reads,
    set_timers,
    timer_scripts,
)
from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    SubtaskIndex,
    VertexId,
)
from understudy.state.backends.backend import KeyedSnapshot, KeyedStateBackend, SnapshotTarget
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.kinds.descriptors import ListState, ValueState
from understudy.state.kinds.ttl import Ttl
from understudy.state.rocks.common_format import ENTRIES, in_common_format
from understudy.state.rocks.memory import RocksMemory
from understudy.state.rocks.rocks_backend import RocksBackend
from understudy.state.rocks.store import StoreOptions
from understudy.state.storage import CheckpointStorage

ALL = range(MAX_PARALLELISM)
STORAGE = CheckpointStorage("memory://common-format")
few = settings(max_examples=8, deadline=None)


def rocks(key_groups: range = ALL) -> RocksBackend:
    return RocksBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM, StoreOptions.temporary(RocksMemory(8)))


def heap(key_groups: range = ALL) -> HeapBackend:
    return HeapBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM)


def test_states_are_found_under_former_names_and_migrated() -> None:
    before, after = rocks(), rocks()
    before.current_key = after.current_key = 7
    before.state(ValueState(int, name="count")).update(3)
    before.state(ListState(str, name="causes")).add_all(["5 fog", "6 ice"])
    after.restore(written(before.snapshot(CheckpointId(1))), STORAGE.read)
    assert after.state(ValueState(float, name="seen").formerly("count")).value() == 3.0
    minutes = ListState(int, name="minutes").formerly("causes").migrating(str, lambda text: int(text[0]))
    assert after.state(minutes).get() == [5, 6]
    before.close()
    after.close()


def test_a_key_group_of_more_entries_than_a_payload_takes_is_whole() -> None:
    """None is lost between two payloads."""
    count = ENTRIES + 2
    before = RocksBackend(0, 0, 1, StoreOptions.temporary(RocksMemory(8)))
    number = before.state(ValueState(int, name="number"))
    for key in range(count):
        before.current_key = key
        number.update(key)
    handles = written(before.snapshot(CheckpointId(1)))
    before.close()
    after = HeapBackend(0, 0, 1)
    after.restore(in_common_format(handles, STORAGE.read, range(1)), STORAGE.read)
    found = after.state(ValueState(int, name="number"))
    for key in range(count):
        after.current_key = key
        assert found.value() == key


def written(snapshot: KeyedSnapshot) -> list[KeyedStateHandle]:
    attempt = ExecutionAttemptId(uuid4().hex)
    handle = snapshot(SnapshotTarget(STORAGE, JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), attempt))
    return [] if handle is None else [handle]


def on_heap(handles: Sequence[KeyedStateHandle], key_groups: range = ALL) -> HeapBackend:
    backend = heap(key_groups)
    backend.restore(in_common_format(handles, STORAGE.read, key_groups), STORAGE.read)
    return backend


def in_rocks(handles: Sequence[KeyedStateHandle], key_groups: range = ALL) -> RocksBackend:
    backend = rocks(key_groups)
    backend.restore(handles, STORAGE.read)
    return backend


def timers(backend: KeyedStateBackend) -> list[str]:
    return sorted(map(repr, pending(backend)))


@few
@given(script=operations(), cut=key_group_ranges(), set_before=timer_scripts())
def test_from_rocksdb_to_the_heap_and_back(
    script: list[Operation], cut: list[range], set_before: list[TimerOperation]
) -> None:
    first = rocks()
    apply(first, script)
    set_timers(first, set_before)
    expected, expected_timers = reads(first), timers(first)
    handles = written(first.snapshot(CheckpointId(1)))
    found, found_timers, pieces = {}, [], []
    for own in cut:
        shares = [share for handle in handles if (share := cut_handle(handle, own)) is not None]
        piece = on_heap(shares, own)
        found |= reads(piece)
        found_timers += timers(piece)
        pieces += written(piece.snapshot(CheckpointId(2)))
    assert found == expected
    assert sorted(found_timers) == expected_timers
    whole = in_rocks(pieces)
    assert timers(whole) == expected_timers
    assert reads(whole) == expected


@few
@given(script=operations())
def test_undeclared_state_goes_there_and_back(script: list[Operation]) -> None:
    first = heap()
    apply(first, script)
    second = in_rocks(written(first.snapshot(CheckpointId(1))))
    third = on_heap(written(second.snapshot(CheckpointId(2))))
    assert reads(third) == reads(first)


@few
@given(script=scripts(), clock=st.sampled_from(["processing", "event"]))
def test_times_go_there_and_back(script: list[Step], clock: str) -> None:
    declared, hands = Expiring(Ttl(10, clock=clock)), Hands()  # type: ignore[arg-type]
    first = heap()
    first.clock = hands
    apply_expiring(first, declared, hands, script)
    second = in_rocks(written(first.snapshot(CheckpointId(1))))
    second.clock = hands
    third = on_heap(written(second.snapshot(CheckpointId(2))))
    third.clock = hands
    for _ in range(12):
        expected = looked_at(first, declared)
        assert looked_at(second, declared) == expected
        assert looked_at(third, declared) == expected
        hands.now_ms += 1


def test_a_snapshot_without_rows_has_nothing_to_convert() -> None:
    assert in_common_format(written(rocks().snapshot(CheckpointId(1))), STORAGE.read, ALL) == ()
