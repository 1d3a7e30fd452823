"""Whatever becomes of checkpoints, each that completes gives back what there was, to every backend and parallelism.

UNDERSTUDY_CASES=100000 plays more cases.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest

from tests.contracts.increments import MakeBackend, compiled, heap, play
from tests.contracts.keyed_state import MAX_PARALLELISM
from understudy import ListState, Ttl, ValueState
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, KeyedStateHandle, SubtaskIndex, VertexId
from understudy.state.backends import heap_backend, keyed_snapshot
from understudy.state.backends.backend import NO_TIME, SnapshotTarget
from understudy.state.backends.changed_keys import ChangedKeys
from understudy.state.backends.keyed_snapshot import StoredState
from understudy.state.checkpoints.shared_state import Owner, SharedStateRegistry, StateFile
from understudy.state.errors import MissingState
from understudy.state.rocks.memory import RocksMemory
from understudy.state.rocks.rocks_backend import RocksBackend
from understudy.state.rocks.store import StoreOptions
from understudy.state.storage import CheckpointStorage, handle_reader

CASES = int(os.environ.get("UNDERSTUDY_CASES", "5000"))
"""Completed checkpoints that are restored and compared."""
ROCKS_CASES = CASES // 100
IN_DICTS_AND_COLUMNS: dict[str, MakeBackend] = {"heap": heap, "compiled": compiled}
MOST_CASES_OF_A_MUTANT = 500


def played(first: int, cases: int, makers: dict[str, MakeBackend]) -> Counter[str]:
    """Histories from this seed on, until there were so many cases."""
    seen: Counter[str] = Counter()
    storage = CheckpointStorage("memory://increments")
    seed = first
    while seen["cases"] < cases:
        try:
            play(seed, makers, storage, seen)
        except Exception as error:
            error.add_note(f"the history of seed {seed}, with {', '.join(makers)}")
            raise
        seed += 1
    return seen


def test_every_checkpoint_that_completes_gives_back_what_there_was() -> None:
    seen = played(0, CASES - ROCKS_CASES, IN_DICTS_AND_COLUMNS)
    assert seen["cases"] >= CASES - ROCKS_CASES
    assert seen["increments"] > seen["completed"] / 2, "most checkpoints are lists of runs"
    assert seen["restores"] > seen["cases"] / 10
    assert seen["declined"] > seen["cases"] / 20


@pytest.fixture
def rocks() -> Iterator[MakeBackend]:
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with TemporaryDirectory(dir=in_memory, ignore_cleanup_errors=True) as folder:
        options = StoreOptions(folder, RocksMemory(8))
        yield lambda own: RocksBackend(own[0], own[-1], MAX_PARALLELISM, options)


def test_so_it_does_from_dicts_to_rocksdb_and_back(rocks: MakeBackend) -> None:
    seen = played(CASES, ROCKS_CASES, {"heap": heap, "rocksdb": rocks})
    assert seen["cases"] >= ROCKS_CASES
    assert seen["restores"]


def lost_tombstones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredState, "replaced_keys", lambda _: iter(()))


def unrecorded_key(patch: pytest.MonkeyPatch) -> None:
    add = ChangedKeys.add
    patch.setattr(ChangedKeys, "add", lambda changes, keys: add(changes, list(keys)[1:]))


def wrong_range(patch: pytest.MonkeyPatch) -> None:
    read = keyed_snapshot.read_snapshots

    def of_fewer(handles: Any, reader: Any, groups: range, *others: Any) -> Any:
        return read(handles, reader, range(groups.start, max(groups.stop - 1, groups.start + 1)), *others)

    patch.setattr(heap_backend, "read_snapshots", of_fewer)


def file_deleted_early(patch: pytest.MonkeyPatch) -> None:
    def release(registry: SharedStateRegistry, owner: Owner) -> tuple[StateFile, ...]:
        return tuple(registry._files.pop(owner, {}))

    patch.setattr(SharedStateRegistry, "release", release)


@pytest.mark.parametrize("mutate", [lost_tombstones, unrecorded_key, wrong_range, file_deleted_early])
def test_each_mutant_is_caught(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, MissingState)) as caught:
        played(0, MOST_CASES_OF_A_MUTANT, {"heap": heap})
    assert "the history of seed" in "".join(caught.value.__notes__)


class Hands:
    """A clock that is set."""

    now_ms = 0
    late_ms = 0
    """Of the record."""

    def processing_ms(self) -> int:
        return self.now_ms

    event_ms = processing_ms

    def written_ms(self, what: str) -> int:
        return self.now_ms - self.late_ms


class Expiring:
    """A backend with one state that expires. Each of its checkpoints is an increment."""

    def __init__(self, declaration: Any, place: str) -> None:
        self.hands, self.storage = Hands(), CheckpointStorage(f"memory://expiring-{place}")
        self.backend = heap(range(MAX_PARALLELISM))
        self.backend.clock = self.hands
        self.backend.track_changes("op")
        self.state: Any = self.backend.state(declaration)
        self.handle: KeyedStateHandle | None = None
        """Of the newest checkpoint."""

    def checkpoint(self, number: int) -> None:
        attempt, checkpoint = ExecutionAttemptId("a"), CheckpointId(number)
        store = self.backend.increment(checkpoint)
        target = SnapshotTarget(self.storage, JobId("j"), checkpoint, VertexId("v"), SubtaskIndex(0), attempt, 1)
        self.handle = store(target)
        self.backend.checkpoint_complete(checkpoint)

    def restored(self, declaration: Any) -> tuple[Any, Any]:
        """Another backend with that state in place of its own, from the newest checkpoint."""
        assert self.handle is not None
        again = heap(range(MAX_PARALLELISM))
        again.restore([self.handle], handle_reader(self.storage))
        again.clock = Hands()
        return again, again.state(declaration)


@pytest.mark.parametrize("reads", [0, 200])
@pytest.mark.parametrize("clock", ["processing", "event"])
def test_what_has_expired_since_the_last_run_does_not_come_back_without_a_ttl(
    clock: Literal["processing", "event"], reads: int
) -> None:
    """`reads`: so many that the backend has removed it by then."""
    one = Expiring(ValueState(int, name="seen", ttl=Ttl(100, clock=clock)), "values")
    for number, (time_ms, keys) in enumerate([(0, range(50)), (60, range(40)), (120, range(40, 42))], 1):
        one.hands.now_ms = time_ms
        one.backend.read_ahead(keys)
        for one.backend.current_key in keys:
            one.state.update(number)
        for _ in range(reads):
            one.state.value()
        one.checkpoint(number)
    again, _ = one.restored(ValueState(int, name="seen", ttl=Ttl(10_000, clock=clock)))
    assert sorted(again.keys("seen")) == list(range(42))


@pytest.mark.parametrize("reads", [0, 400])
@pytest.mark.parametrize("clock", ["processing", "event"])
def test_items_that_have_expired_since_the_last_run_do_not_come_back_either(
    clock: Literal["processing", "event"], reads: int
) -> None:
    one = Expiring(ListState(int, name="seen", ttl=Ttl(100, clock=clock)), "items")
    for number, (time_ms, keys) in enumerate([(0, range(5)), (60, range(200)), (120, range(200, 202))]):
        one.hands.now_ms = time_ms
        one.backend.read_ahead(keys)
        for one.backend.current_key in keys:
            one.state.add(number)
        for _ in range(reads):
            one.state.get()
        if number:
            one.checkpoint(number)
    again, longer = one.restored(ListState(int, name="seen", ttl=Ttl(10_000, clock=clock)))
    again.current_key = 0
    assert list(longer.get()) == [1]


def test_what_a_late_record_wrote_expires_early_and_does_not_come_back_either() -> None:
    """All that is as old had been removed before it came."""
    one = Expiring(ValueState(int, name="seen", ttl=Ttl(100, clock="event")), "late")
    for number, (time_ms, keys, late_keys) in enumerate([(200, range(50), range(50, 52)), (260, range(2), ())], 1):
        one.hands.now_ms = time_ms
        one.backend.read_ahead([*keys, *late_keys])
        for one.hands.late_ms, some in ((0, keys), (50, late_keys)):
            for one.backend.current_key in some:
                one.state.update(number)
            for _ in range(200):
                one.state.value()
        one.checkpoint(number)
    assert one.handle is not None
    assert len(one.handle.shared) == 2, "the newer run says only what has changed"
    again, _ = one.restored(ValueState(int, name="seen", ttl=Ttl(10_000, clock="event")))
    assert sorted(again.keys("seen")) == list(range(50))


def test_what_was_written_before_event_time_was_known_gets_no_younger_with_a_restore() -> None:
    """It has the time at which event time was known first, in the next checkpoint, too."""
    expiring = ValueState(int, name="seen", ttl=Ttl(100, clock="event"))
    one = Expiring(expiring, "unknown")
    for number, (time_ms, keys) in enumerate([(NO_TIME, range(50)), (1_000, range(50, 52))], 1):
        one.hands.now_ms = time_ms
        one.backend.read_ahead(keys)
        for one.backend.current_key in keys:
            one.state.update(number)
        one.backend.current_key = 0
        one.state.value()
        one.checkpoint(number)
    again, _ = one.restored(expiring)
    again.clock.now_ms = 1_090
    assert len(list(again.keys("seen"))) == 52
    again.clock.now_ms = 1_100
    assert not list(again.keys("seen"))


def test_the_last_timer_of_a_part_counts_as_a_change_though_nobody_asks_for_the_next_one() -> None:
    """As where many are due: the operator fires some, and goes on with the rest when it has looked at its input."""
    one = Expiring(ValueState(int, name="seen"), "timers")
    one.backend.read_ahead(range(50))
    for one.backend.current_key in range(50):
        one.state.update(0)
        one.backend.timers().event.add((7, one.backend.current_key, ()))
    one.checkpoint(1)
    for _, key, _ in one.backend.timers().event.due(7):
        one.backend.current_key = key
        one.state.update(1)
        if key == 2:
            break
    one.checkpoint(2)
    again, state = one.restored(ValueState(int, name="seen"))
    found = {}
    for again.current_key in range(50):
        found[again.current_key] = state.value()
    assert [key for key, value in found.items() if value] == [0, 1, 2]
    assert len(again.timers().event) == 47
