"""A job's keyed state through drawn changes, checkpoints of every fate, restores, rescalings: a history for each seed.

The subtasks are real backends, with real files and the real registry of who needs which. What a checkpoint must give
back is read from a backend in dicts that takes no part in any checkpoint. What was seen is counted, so that a test can
show that it reached what it is there for: a `case` is a completed checkpoint that was restored and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from understudy.messages import (
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    KeyedStateHandle,
    SubtaskIndex,
    VertexId,
)
from understudy.state.backends.backend import KeyedSnapshot, SnapshotTarget
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.checkpoints.assignment import cut_handle
from understudy.state.checkpoints.shared_state import CheckpointOf, SharedStateRegistry, StateFile
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.keys.key_groups import key_group
from understudy.state.rocks.common_format import in_common_format
from understudy.state.storage import CheckpointStorage

from .keyed_state import MAX_PARALLELISM, Declared, apply, pending, reads

JOB = JobId("job")
NUMBERS = range(24)
MakeBackend = Callable[[range], Any]

OPERATIONS = ("value", "box", "in place", "items", "table", "remove", "total", "folded", "clear")
COMPILED_OPERATIONS = ("value", "total", "clear")
_COMPILED_STATES = (0, 4)
"""Which of the states that `clear` knows a compiled operator has."""


def heap(own: range) -> HeapBackend:
    return HeapBackend(own[0], own[-1], MAX_PARALLELISM)


def compiled(own: range) -> SlotBackend:
    return SlotBackend(own[0], own[-1], MAX_PARALLELISM)


@dataclass
class Taken:
    """One checkpoint, and what it must give back."""

    number: CheckpointId
    snapshots: list[KeyedSnapshot]
    expected: tuple[Any, Any]
    is_savepoint: bool = False
    handles: list[KeyedStateHandle] | None = None


@dataclass
class Job:
    """`makers`: a way to make each kind of backend."""

    draw: Random
    makers: dict[str, MakeBackend]
    storage: CheckpointStorage
    seen: Counter[str]
    kinds: list[str]
    has_all: bool
    """Whether there are states that a compiled operator does not have."""
    kind: str = ""
    cuts: list[range] = field(default_factory=list)
    subtasks: list[Any] = field(default_factory=list)
    model: HeapBackend = field(default_factory=lambda: heap(range(MAX_PARALLELISM)))
    registry: SharedStateRegistry = field(default_factory=SharedStateRegistry)
    open: list[Taken] = field(default_factory=list)
    completed: Taken | None = None
    number: int = 0
    attempt: int = 0
    held: dict[Any, Any] = field(default_factory=dict)
    """What is read of the model."""

    def begin(self, kind: str) -> None:
        self.kind = kind
        self._place([])
        self.change([(what, key, 1) for key in NUMBERS for what in ("value", "total")])

    def change(self, script: Sequence[tuple[str, Any, int]]) -> None:
        """As an operator does: each subtask is given the keys of a batch, then one record after the other."""
        apply(self.model, script)
        self._read_again({key for _, key, _ in script})
        for own, subtask in zip(self.cuts, self.subtasks, strict=True):
            mine = [each for each in script if key_group(each[1], MAX_PARALLELISM) in own]
            if mine:
                subtask.read_ahead([key for _, key, _ in mine])
                apply(subtask, mine)

    def set_timers(self, keys: Sequence[int], time_ms: int) -> None:
        for key in keys:
            for backend in (self.model, self._subtask_of(key)):
                backend.read_ahead([key])
                backend.timers().event.add((time_ms, key, ()))

    def fire(self, until_ms: int) -> None:
        """Each timer that fires changes a value."""
        for backend in (self.model, *self.subtasks):
            for _, key, _ in backend.timers().event.due(until_ms):
                backend.current_key = key
                backend.state(Declared.value).update(until_ms)
                if backend is self.model:
                    self._read_again({key})

    def take(self, *, is_savepoint: bool = False) -> None:
        self.number += 1
        number = CheckpointId(self.number)
        snapshots = [
            each.snapshot(number) if is_savepoint or self.kind == "rocksdb" else each.increment(number)
            for each in self.subtasks
        ]
        self.open.append(Taken(number, snapshots, self._now(), is_savepoint))

    def write(self, taken: Taken) -> None:
        """All subtasks acknowledge."""
        taken.handles = []
        for index, snapshot in enumerate(taken.snapshots):
            attempt = ExecutionAttemptId(f"{index}-{self.attempt}")
            target = SnapshotTarget(
                self.storage, JOB, taken.number, VertexId("v"), SubtaskIndex(index), attempt, inline_below_bytes=1
            )
            handle = snapshot(target)
            if handle is not None:
                taken.handles.append(handle)
                self.seen["runs"] += len(handle.shared)
                self.seen["increments"] += len(handle.shared) > 1
                self.registry.register(CheckpointOf(JOB, taken.number), self._files(handle))
        taken.snapshots = []

    def complete(self, taken: Taken, *, is_known: bool) -> None:
        """The older ones go, be they complete or not. `is_known`: the subtasks hear of it."""
        if taken.handles is None:
            self.write(taken)
        if taken.is_savepoint:  # it takes no other one's place
            self.open.remove(taken)
            self.check(taken)
            self._forget(taken)
            return
        older = [each for each in self.open if each.number < taken.number and not each.is_savepoint]
        self.open = [each for each in self.open if each is not taken and each not in older]
        for each in [*older, *([] if self.completed is None else [self.completed])]:
            self._forget(each)
        self.completed = taken
        self.seen["completed"] += 1
        if is_known:
            for subtask in self.subtasks:
                subtask.checkpoint_complete(taken.number)
        self.check(taken)
        self.check(taken)

    def check(self, taken: Taken) -> None:
        """Some key groups, as a subtask of another parallelism and maybe another backend would restore them."""
        first = self.draw.randrange(MAX_PARALLELISM)
        own = range(first, self.draw.randint(first + 1, MAX_PARALLELISM))
        kind = self.draw.choice(self.kinds)
        backend = self._made(kind, own, taken.handles or [])
        held, timers = taken.expected
        found = self._state_of([backend])
        backend.close()
        assert found[0] == {key: each for key, each in held.items() if key_group(key, MAX_PARALLELISM) in own}
        assert found[1] == [each for each in timers if key_group(each[1][1], MAX_PARALLELISM) in own]
        self.seen["cases"] += 1

    def decline(self, taken: Taken) -> None:
        self.open.remove(taken)
        self._forget(taken)
        self.seen["declined"] += 1

    def restore(self, kind: str) -> None:
        """The job starts again, from its newest checkpoint, with another parallelism and maybe another backend."""
        taken = self.completed
        if taken is None:
            return
        for each in list(self.open):
            self.decline(each)
        self.kind = kind
        self._place(taken.handles or [])
        assert self._state_of(self.subtasks) == taken.expected
        self.model = self._made("heap", range(MAX_PARALLELISM), taken.handles or [])
        self.held = dict(taken.expected[0])
        self.seen["cases"] += 1
        self.seen["restores"] += 1

    def _place(self, handles: Sequence[KeyedStateHandle]) -> None:
        self.attempt += 1
        for subtask in self.subtasks:
            subtask.close()
        inner = sorted(self.draw.sample(range(1, MAX_PARALLELISM), self.draw.choice((0, 1, 2))))
        self.cuts = list(map(range, [0, *inner], [*inner, MAX_PARALLELISM]))
        self.subtasks = [self._made(self.kind, own, handles) for own in self.cuts]

    def _made(self, kind: str, own: range, handles: Sequence[KeyedStateHandle]) -> Any:
        backend = self.makers[kind](own)
        if kind != "rocksdb":
            backend.track_changes("op")
        shares = [share for handle in handles if (share := cut_handle(handle, own)) is not None]
        if shares:
            backend.restore(self._readable(kind, shares, own), self._read)
        states = (Declared.value, Declared.total)
        if self.has_all:
            states += (Declared.box, Declared.items, Declared.table, Declared.folded)  # type: ignore[assignment]
        for state in states:
            backend.state(state)
        backend.timers()
        return backend

    def _read_again(self, keys: Collection[Any]) -> None:
        for key in keys:
            self.held.pop(key, None)
        self.held |= reads(self.model, list(keys))

    def _readable(self, kind: str, handles: Sequence[KeyedStateHandle], own: range) -> Sequence[KeyedStateHandle]:
        return handles if kind == "rocksdb" else in_common_format(tuple(handles), self._read, own)

    def _read(self, handle: Any) -> bytes:
        return handle.data if handle.path is None else self.storage.read(handle)

    def _subtask_of(self, key: Any) -> Any:
        group = key_group(key, MAX_PARALLELISM)
        return next(each for own, each in zip(self.cuts, self.subtasks, strict=True) if group in own)

    def _now(self) -> tuple[Any, Any]:
        timers = pending(self.model)
        return dict(self.held), sorted(timers)

    def _state_of(self, backends: Sequence[Any]) -> tuple[Any, Any]:
        held: dict[Any, Any] = {}
        timers: list[Any] = []
        for backend in backends:
            held |= reads(backend, NUMBERS) if self.has_all else _numbers(backend)
            timers += pending(backend)
        return held, sorted(timers)

    def _files(self, handle: KeyedStateHandle) -> list[StateFile]:
        paths = [each.path for each in (handle.handle, *(shared.handle for shared in handle.shared))]
        return [StateFile("root", path) for path in paths if path is not None]

    def _forget(self, taken: Taken) -> None:
        taken.snapshots = []
        for file in self.registry.release(CheckpointOf(JOB, taken.number)):
            self.storage.delete(file.path)


def _numbers(backend: Any) -> dict[Any, Any]:
    """As `reads`, of the states that compiled operators have too."""
    value, total, found = backend.state(Declared.value), backend.state(Declared.total), {}
    for backend.current_key in NUMBERS:
        if (own := (value.value(), total.get())) != (-1, None):
            found[backend.current_key] = (own[0], {}, [], {}, own[1], [])
    return found


def play(
    seed: int, makers: dict[str, MakeBackend], storage: CheckpointStorage, seen: Counter[str], make: type[Job] = Job
) -> None:
    """One history. Raises what is wrong: AssertionError, or what a backend or the storage raises."""
    draw = Random(seed)
    kinds = sorted(makers)
    has_all = "compiled" not in kinds or draw.random() < 0.5
    if has_all:
        kinds = [kind for kind in kinds if kind != "compiled"]
    job = make(draw, makers, storage, seen, kinds, has_all)
    job.begin(draw.choice(kinds))
    job.take()
    job.complete(job.open[-1], is_known=True)
    for step in range(draw.randint(8, 14)):
        names = OPERATIONS if has_all else COMPILED_OPERATIONS
        keys = draw.sample(NUMBERS, draw.choice((1, 1, 2, 4)))
        script = [(draw.choice(names), draw.choice(keys), draw.randrange(6)) for _ in range(draw.randint(1, 6))]
        if not has_all:
            script = [(what, key, draw.choice(_COMPILED_STATES) if what == "clear" else n) for what, key, n in script]
        job.change(script)
        seen["operations"] += len(script)
        match draw.randrange(12):
            case 0:
                job.set_timers(keys, 100 + step)
            case 1:
                job.fire(100 + draw.randrange(14))
            case 2 | 3 | 4:
                job.take(is_savepoint=draw.random() < 0.1)
            case 5 | 6 | 7:
                job.take()
                job.complete(job.open[-1], is_known=draw.random() < 0.9)
            case 8 if job.open:
                job.decline(draw.choice(job.open))
            case 9 if job.open:
                job.complete(draw.choice(job.open), is_known=draw.random() < 0.8)
            case 10 if job.open and job.open[0].handles is None:
                job.write(job.open[0])
            case 11:
                job.restore(draw.choice(kinds))
    job.restore(draw.choice(kinds))
    for subtask in job.subtasks:
        subtask.close()
    if job.completed is not None:
        job._forget(job.completed)
