"""Snapshots of RocksDB: which files they write, share and need, and what becomes of damaged ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    VertexId,
)
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.backends.expiring_state import ACCESSES_PER_CLEANING, LOOKS_PER_CLEANING
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.checkpoints.local_copies import LocalCopies
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot, state_size_bytes, store_in_file
from understudy.state.errors import CorruptState, LocalStateFailed, MissingState, StateIncompatible
from understudy.state.handle_bytes import verified
from understudy.state.keys.key_groups import key_group
from understudy.state.kinds.descriptors import ValueState
from understudy.state.kinds.ttl import Ttl
from understudy.state.rocks import rocks_state
from understudy.state.rocks.memory import RocksMemory
from understudy.state.rocks.rocks_backend import RocksBackend
from understudy.state.rocks.rocks_snapshot import FORMAT_NAME
from understudy.state.rocks.store import StoreOptions
from understudy.state.storage import CheckpointStorage, handle_reader

from ...contracts.expiring_state import Hands

MAX_PARALLELISM = 16
ALL = range(MAX_PARALLELISM)
JOB, VERTEX, OPERATOR = JobId("job"), VertexId("v"), OperatorId("op")
TEXT = ValueState(str, name="text", default="")
NUMBER = ValueState(int, name="number", default=-1)


class Subtask:
    """One subtask's state, and the checkpoint directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage = CheckpointStorage(str(folder / "checkpoints"))
        self.copies = LocalCopies(str(folder / "copies"), VERTEX, SubtaskIndex(0))
        self.attempts = count(1)
        self.made: list[RocksBackend] = []
        (folder / "working").mkdir()
        self.options = StoreOptions(str(folder / "working"), RocksMemory(8))

    def backend(self, own: range = ALL, max_parallelism: int = MAX_PARALLELISM) -> RocksBackend:
        backend = RocksBackend(own[0], own[-1], max_parallelism, self.options)
        self.made.append(backend)
        return backend

    def checkpoint(self, backend: RocksBackend, number: int, attempt: str = "a") -> SubtaskState:
        parts = SubtaskSnapshot()
        parts.add(OPERATOR, backend.snapshot(CheckpointId(number)))
        target = SnapshotTarget(
            self.storage,
            JOB,
            CheckpointId(number),
            VERTEX,
            SubtaskIndex(0),
            ExecutionAttemptId(attempt),
            inline_below_bytes=1,
            copies=self.copies,
        )
        state = parts.write(target, store_in_file)
        self.copies.written(CheckpointId(number), state)
        return state

    def complete(self, backend: RocksBackend, number: int) -> None:
        backend.checkpoint_complete(CheckpointId(number))
        self.copies.complete(CheckpointId(number))

    def restored(self, state: SubtaskState, own: range = ALL, read: Any = None) -> RocksBackend:
        backend = self.backend(own)
        shares = [share for handle in keyed(state) if (share := cut_handle(handle, own)) is not None]
        backend.restore(shares, handle_reader(self.storage) if read is None else read)
        return backend

    def files(self, part: str = "") -> set[str]:
        return {path for path in self.storage.list_files() if part in path}


def keyed(state: SubtaskState) -> tuple[KeyedStateHandle, ...]:
    return state.operators[OPERATOR].keyed


def fill(backend: RocksBackend, keys: range, text: str) -> None:
    state = backend.state(TEXT)
    for key in keys:
        backend.current_key = key
        state.update(f"{text} {key}")


def held(backend: RocksBackend) -> dict[int, str]:
    state, found = backend.state(TEXT), {}
    for key in backend.each_key():
        found[key] = state.value()
    return found


def wanted(keys: range, text: str) -> dict[int, str]:
    return {key: f"{text} {key}" for key in keys}


@pytest.fixture
def subtask(tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(tmp_path)
    yield subtask
    for backend in subtask.made:
        backend.close()
    assert list((tmp_path / "working").iterdir()) == []


# --- which files


def test_a_checkpoint_writes_only_the_files_that_no_completed_one_has(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(2000), "first")
    first = subtask.checkpoint(backend, 1)
    files_of_first = subtask.files("shared/1-")
    subtask.complete(backend, 1)
    fill(backend, range(20), "second")
    second = subtask.checkpoint(backend, 2)
    assert subtask.files("shared/1-") == files_of_first
    (new,) = subtask.files("shared/2-")
    paths = {shared.handle.path for shared in keyed(second)[0].shared}
    assert paths == {*files_of_first, new}
    written = sum(os.path.getsize(f"{subtask.storage.root}/{path}") for path in subtask.files("shared/2-"))
    assert written < 0.2 * state_size_bytes(first)
    assert held(subtask.restored(second)) == wanted(range(2000), "first") | wanted(range(20), "second")


def test_files_of_a_checkpoint_that_has_not_completed_are_written_again(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(10), "first")
    subtask.checkpoint(backend, 1)
    assert len(subtask.files("shared/")) == 1
    subtask.checkpoint(backend, 2)
    assert len(subtask.files("shared/")) == 2


def test_the_files_of_a_restored_checkpoint_are_not_written_again(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(2000), "first")
    state = subtask.checkpoint(backend, 1)
    again = subtask.restored(state)
    fill(again, range(5), "second")
    after = subtask.checkpoint(again, 2, "b")
    assert len(subtask.files("shared/2-")) == 1
    assert held(subtask.restored(after)) == wanted(range(2000), "first") | wanted(range(5), "second")


def test_after_the_start_from_another_job_the_first_snapshot_is_whole(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(50), "first")
    state = subtask.checkpoint(backend, 1)
    again = subtask.restored(state)
    fill(again, range(5), "second")
    target = SnapshotTarget(
        subtask.storage, JobId("other"), CheckpointId(1), VERTEX, SubtaskIndex(0), ExecutionAttemptId("a")
    )
    handle = again.snapshot(CheckpointId(1))(target)
    assert handle is not None
    assert all(str(shared.handle.path).startswith("other/shared/") for shared in handle.shared)


def test_a_snapshot_that_cannot_be_written_leaves_no_file(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(10), "first")

    class Full(CheckpointStorage):
        def write(self, path: str, *arguments: Any, **named: Any) -> Any:
            if "/chk-" in path:
                raise OSError(28, "no space left on device")
            return super().write(path, *arguments, **named)

    subtask.storage = Full(subtask.storage.url)
    with pytest.raises(OSError, match="no space"):
        subtask.checkpoint(backend, 1)
    assert subtask.files() == set()


def test_a_rescale_reads_ranges_of_several_snapshots(subtask: Subtask) -> None:
    halves = [range(8), range(8, 16)]
    whole = subtask.backend()
    fill(whole, range(500), "first")
    state = subtask.checkpoint(whole, 1)
    parts = []
    for at, own in enumerate(halves):
        half = subtask.restored(state, own)
        mine = held(half)
        for key in list(mine)[:50]:
            half.current_key = key
            half.state(TEXT).clear()
        parts += keyed(subtask.checkpoint(half, 2, f"half-{at}"))
    found: dict[int, str] = {}
    for own in (range(5), range(5, 11), range(11, 16)):
        backend = subtask.backend(own)
        backend.restore(
            [share for part in parts if (share := cut_handle(part, own)) is not None], handle_reader(subtask.storage)
        )
        found |= held(backend)
    assert len(found) == 400
    assert found.items() <= wanted(range(500), "first").items()


def test_a_rescale_reads_snapshots_whose_states_were_declared_in_another_order(subtask: Subtask) -> None:
    parts: list[KeyedStateHandle] = []
    for own, order in ((range(8), (TEXT, NUMBER)), (range(8, 16), (NUMBER, TEXT))):
        half = subtask.backend(own)
        for declared in order:
            half.state(declared)
        for half.current_key in (key for key in range(100) if key_group(key, MAX_PARALLELISM) in own):
            half.state(TEXT).update(f"text {half.current_key}")
            half.state(NUMBER).update(half.current_key)
        parts += keyed(subtask.checkpoint(half, 1, f"half-{own[0]}"))
    backend = subtask.backend()
    backend.restore(parts, handle_reader(subtask.storage))
    text, number, found = backend.state(TEXT), backend.state(NUMBER), {}
    for backend.current_key in range(100):
        found[backend.current_key] = text.value(), number.value()
    assert found == {key: (f"text {key}", key) for key in range(100)}


def test_what_one_subtask_has_removed_does_not_come_back_from_another_one(subtask: Subtask) -> None:
    """Rows of the key group behind one's own are no part of a subtask's files."""
    whole = subtask.backend()
    fill(whole, range(100), "first")
    state, parts = subtask.checkpoint(whole, 1), list[KeyedStateHandle]()
    for own in (range(15), range(15, 16)):
        part = subtask.restored(state, own)
        for key in [key for key in held(part) if key_group(key, MAX_PARALLELISM) == 15][1:]:
            part.current_key = key
            part.state(TEXT).clear()
        parts += keyed(subtask.checkpoint(part, 2, f"part-{own[0]}"))
    backend = subtask.backend()
    backend.restore(parts, handle_reader(subtask.storage))
    assert sum(key_group(key, MAX_PARALLELISM) == 15 for key in held(backend)) == 1


def test_timers_that_have_fired_are_in_no_snapshot_but_those_that_were_set_again(subtask: Subtask) -> None:
    backend = subtask.backend()
    queue = backend.timers().event
    for key in range(4):
        queue.add((5, key, ()))
    subtask.checkpoint(backend, 1)
    assert queue.pop(5) == (5, 0, ())
    for timer in queue.due(5):
        if timer[1] == 2:
            queue.add((5, 2, ()))
            break
    again = subtask.restored(subtask.checkpoint(backend, 2))
    assert sorted(again.timers().event) == [(5, 2, ()), (5, 3, ())]


def test_all_rows_that_have_expired_are_removed_bit_by_bit(subtask: Subtask) -> None:
    """More of one key group than a step of the cleaning looks at."""
    hands = Hands()
    backend = subtask.backend(range(1), 1)
    backend.clock = hands
    state: Any = backend.state(ValueState(int, name="held", ttl=Ttl(1000)))
    rows = 2 * LOOKS_PER_CLEANING + 50
    for backend.current_key in range(rows):
        state.update(1)
    state.write_back()
    state.drop()
    hands.now_ms += 1000
    backend.current_key = -1
    for _ in range((2 * rows // LOOKS_PER_CLEANING + 5) * ACCESSES_PER_CLEANING):
        state.value()
    assert list(backend.store.items(b"")) == []


def test_what_lives_behind_many_rows_that_have_expired_is_in_the_snapshot(
    subtask: Subtask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it holds anything is not looked for to the end."""
    monkeypatch.setattr(rocks_state, "MOST_LOOKS", 3)
    declared, hands, backend = ValueState(int, name="held", ttl=Ttl(1000)), Hands(), subtask.backend()
    backend.clock = hands
    state = backend.state(declared)
    for backend.current_key in (key for key in range(20) if key_group(key, MAX_PARALLELISM) < 8):
        state.update(1)
    hands.now_ms += 1000
    backend.current_key = next(key for key in range(20) if key_group(key, MAX_PARALLELISM) >= 8)
    state.update(2)
    again = subtask.restored(subtask.checkpoint(backend, 1))
    again.clock, again.current_key = hands, backend.current_key
    assert again.state(declared).value() == 2


def legs() -> tuple[Any, Any]:
    """A record of two versions of a program, whose fields stand in another order."""

    class Was(NamedTuple):
        minutes: int
        gate: int

    class Now(NamedTuple):
        gate: int
        minutes: int

    Was.__qualname__ = Now.__qualname__ = "Leg"
    return Was, Now


def test_the_fields_of_a_record_may_change_their_order(subtask: Subtask) -> None:
    """A half that was restored and not looked at since, beside one that was written after the change."""
    was, now = legs()
    parts: list[KeyedStateHandle] = []
    for own, leg in ((range(8), was), (range(8, 16), now)):
        half = subtask.backend(own)
        state = half.state(ValueState(leg, name="leg"))
        for half.current_key in (key for key in range(100) if key_group(key, MAX_PARALLELISM) in own):
            state.update(leg(minutes=half.current_key, gate=-1))
        parts += keyed(subtask.checkpoint(half, 1, f"half-{own[0]}"))
    for handles in (parts, parts[::-1]):
        backend = subtask.backend()
        backend.restore(handles, handle_reader(subtask.storage))
        state, found = backend.state(ValueState(now, name="leg")), {}
        for backend.current_key in range(100):
            found[backend.current_key] = state.value()
        assert found == {key: now(minutes=key, gate=-1) for key in range(100)}


def test_another_max_parallelism_is_refused(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(5), "first")
    (handle,) = keyed(subtask.checkpoint(backend, 1))
    with pytest.raises(StateIncompatible, match="max_parallelism 16"):
        subtask.backend(range(32), 32).restore([handle], handle_reader(subtask.storage))


# --- damage


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 11])
def test_every_flipped_byte_and_every_truncation_is_named(subtask: Subtask, step: int) -> None:
    backend = subtask.backend()
    fill(backend, range(3), "first")
    state = subtask.checkpoint(backend, 1)
    (handle,) = keyed(state)
    files = {
        str(each.path): subtask.storage.read(each) for each in (handle.handle, *(it.handle for it in handle.shared))
    }
    assert len(files) == 2

    def restored(damaged: str, data: bytes) -> RocksBackend:
        changed = files | {damaged: data}
        return subtask.restored(state, read=lambda handle: verified(changed[str(handle.path)], handle))

    for path, data in files.items():
        for at in range(0, len(data), step):
            for wrong in (data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :], data[:at]):
                with pytest.raises(CorruptState):
                    restored(path, wrong)
                subtask.made.pop().close()
    path, data = files.popitem()
    files[path] = data
    assert held(restored(path, data)) == wanted(range(3), "first")


def test_a_missing_file_is_named(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(3), "first")
    state = subtask.checkpoint(backend, 1)
    (shared,) = keyed(state)[0].shared
    subtask.storage.delete(shared.handle)
    with pytest.raises(MissingState, match=str(shared.handle.path)):
        subtask.restored(state)


def test_files_that_are_gone_from_the_working_folder_are_a_named_error(subtask: Subtask, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    backend = RocksBackend(0, 15, 16, StoreOptions(str(tmp_path / "file"), RocksMemory(8)))
    backend.current_key = 1
    state = backend.state(TEXT)
    with pytest.raises(LocalStateFailed, match=r"failed in its working folder .*state_dir"):
        state.value()
    backend.close()


# --- local copies


def test_the_local_copy_is_read_and_the_checkpoint_directory_is_not(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(50), "first")
    state = subtask.checkpoint(backend, 1)
    for path in subtask.files():
        subtask.storage.delete(path)
    reader = subtask.copies.reader(subtask.storage)
    assert held(subtask.restored(state, read=reader)) == wanted(range(50), "first")


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "gone"])
def test_a_damaged_local_copy_is_passed_over(subtask: Subtask, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    backend = subtask.backend()
    fill(backend, range(50), "first")
    state = subtask.checkpoint(backend, 1)
    copies = [path for path in (subtask.folder / "copies").rglob("*") if path.is_file()]
    assert len(copies) == 2
    for copy in copies:
        data = copy.read_bytes()
        copy.unlink()
        match damage:
            case "flipped":
                copy.write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
            case "cut":
                copy.write_bytes(data[:-1])
            case "empty":
                copy.write_bytes(b"")
    reader = subtask.copies.reader(subtask.storage)
    assert held(subtask.restored(state, read=reader)) == wanted(range(50), "first")
    assert len([each for each in caplog.records if "is not used" in each.message]) == (0 if damage == "gone" else 2)


def test_copies_of_older_checkpoints_and_of_earlier_attempts_go(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(50), "first")
    subtask.checkpoint(backend, 1, "dead")
    fill(backend, range(50, 60), "first")
    second = subtask.checkpoint(backend, 2)
    subtask.complete(backend, 2)
    third = subtask.checkpoint(backend, 3)
    names = {path.name for path in (subtask.folder / "copies").rglob("*") if path.is_file()}
    assert not any("dead" in name for name in names)
    for path in subtask.files():
        subtask.storage.delete(path)
    for state in (second, third):
        assert held(subtask.restored(state, read=subtask.copies.reader(subtask.storage))) == wanted(range(60), "first")
    kept = {str(shared.handle.path) for state in (second, third) for shared in keyed(state)[0].shared}
    assert len(names) == len(kept) + 2


def test_no_copy_is_no_failure(subtask: Subtask, caplog: pytest.LogCaptureFixture) -> None:
    (subtask.folder / "copies").write_text("a file is in the way")
    backend = subtask.backend()
    fill(backend, range(50), "first")
    state = subtask.checkpoint(backend, 1)
    subtask.complete(backend, 1)
    fill(backend, range(50), "second")
    subtask.checkpoint(backend, 2)
    said = [each.message for each in caplog.records if "there is no local copy" in each.message]
    assert len(said) == 1, "one line for each file of each checkpoint would fill the log"
    assert f"in {subtask.folder / 'copies'}" in said[0]
    reader = subtask.copies.reader(subtask.storage)
    assert held(subtask.restored(state, read=reader)) == wanted(range(50), "first")


def test_the_handle_names_the_format(subtask: Subtask) -> None:
    backend = subtask.backend()
    fill(backend, range(1), "first")
    assert [handle.backend for handle in keyed(subtask.checkpoint(backend, 1))] == [FORMAT_NAME]
