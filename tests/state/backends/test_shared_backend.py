"""SharedBackend: a backend like any other for its task's thread; for units of work, a model that is always right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from understudy import FoldingState, ListState, MapState, ReducingState, Ttl, ValueState
from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, OperatorId, SubtaskIndex, VertexId
from understudy.state.backends.backend import KeyedStateBackend, SnapshotTarget
from understudy.state.backends.heap_backend import HeapBackend
from understudy.state.backends.shared_backend import SharedBackend
from understudy.state.backends.unit_of_work import CURRENT, UnitOfWork
from understudy.state.checkpoints.snapshot_file import SubtaskSnapshot, store_in_file
from understudy.state.errors import CallIsOver
from understudy.state.storage import CheckpointStorage, handle_reader

from ...contracts.expiring_state import ExpiringStateContract, Hands
from ...contracts.keyed_state import MAX_PARALLELISM, KeyedStateContract


def shared(key_groups: range = range(MAX_PARALLELISM)) -> SharedBackend:
    return SharedBackend(HeapBackend(key_groups[0], key_groups[-1], MAX_PARALLELISM), nullcontext())


class TestSharedBackend(KeyedStateContract):
    def make_backend(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        return shared(key_groups)


class TestSharedExpiringState(ExpiringStateContract):
    def make_backend(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        return shared(key_groups)


def as_unit(unit: UnitOfWork | None, work: Callable[..., Any], *args: Any) -> Any:
    """Do it on behalf of the unit."""
    token = CURRENT.set(unit)
    try:
        return work(*args)
    finally:
        CURRENT.reset(token)


# ---- one unit after the other

COUNT = ValueState(int, default=0, name="count")
BOX = ValueState(dict, default={}, name="box")


def test_each_unit_finds_the_state_of_its_key() -> None:
    backend = shared()
    count = backend.state(COUNT)
    one, two = UnitOfWork("one"), UnitOfWork("two")
    as_unit(one, count.update, 1)
    as_unit(two, count.update, 2)

    assert (as_unit(one, count.value), as_unit(two, count.value)) == (1, 2)
    assert as_unit(one, lambda: backend.current_key) == "one"


def test_a_value_that_was_read_is_a_private_copy() -> None:
    backend = shared()
    box = backend.state(BOX)
    unit = UnitOfWork("key")
    as_unit(unit, box.update, {"a": 1})
    as_unit(unit, box.value)["a"] = 7

    assert as_unit(unit, box.value) == {"a": 1}


def test_a_value_that_was_written_and_is_changed_behind_its_back_is_rolled_back_too() -> None:
    backend = shared()
    box = backend.state(BOX)
    backend.current_key = "key"
    box.update({"a": 1})
    unit = UnitOfWork("key")
    held = as_unit(unit, box.value)
    held["b"] = 2
    as_unit(unit, box.update, held)
    backend.roll_back(unit)

    assert box.value() == {"a": 1}


def test_namespaces_that_a_unit_has_merged_are_apart_again_when_it_is_rolled_back() -> None:
    backend = shared()
    items = backend.state(ListState(int, name="items"))

    def of(namespace: int) -> list[int]:
        items.set_namespace(namespace)
        return items.get()

    def fill() -> None:
        for namespace in (1, 2):
            of(namespace)
            items.add(namespace)

    first, second, third = (UnitOfWork("JFK") for _ in range(3))
    as_unit(first, fill)
    backend.commit(first)
    as_unit(second, items.merge_namespaces, 1, [2])
    assert [as_unit(second, of, each) for each in (1, 2)] == [[1, 2], []]
    backend.roll_back(second)

    assert [as_unit(third, of, each) for each in (1, 2)] == [[1], [2]]


def test_units_that_are_over_may_touch_nothing() -> None:
    backend = shared()
    count, queue = backend.state(COUNT), backend.timers().event
    for end in (backend.commit, backend.roll_back):
        unit = UnitOfWork("key")
        as_unit(unit, count.update, 1)
        end(unit)
        for touched in (count.value, lambda: count.update(2), lambda: queue.add((1, "key", ()))):
            with pytest.raises(CallIsOver, match="outlived its record"):
                as_unit(unit, touched)


@dataclass
class Begun:
    """A task."""

    line: str
    is_done: bool = False


def test_code_that_outlives_its_unit_is_told_by_the_tasks_that_still_run() -> None:
    backend, misused = shared(), list[CallIsOver]()
    backend.misused = misused.append
    count, unit = backend.state(COUNT), UnitOfWork("key")
    unit.begun = [Begun("job.py:1", is_done=True), *map(Begun, ("job.py:2", "", "job.py:3", "job.py:2"))]
    backend.commit(unit)
    with pytest.raises(CallIsOver) as caught:
        as_unit(unit, count.value)
    assert caught.value.begun_at == "job.py:2 and job.py:3"
    assert misused == [caught.value]


def test_code_that_outlives_what_is_given_up_loses_nothing() -> None:
    backend, misused = shared(), list[CallIsOver]()
    backend.misused = misused.append
    count, failed, done = backend.state(COUNT), UnitOfWork("key"), UnitOfWork("key")
    backend.roll_back(failed)
    with pytest.raises(CallIsOver):
        as_unit(failed, count.value)
    backend.commit(done)
    backend.close()
    with pytest.raises(CallIsOver):
        as_unit(done, count.value)
    assert misused == []


def test_a_unit_forgets_tasks_that_are_done() -> None:
    unit, running = UnitOfWork("key"), Begun("job.py:2")
    unit.begun = [Begun("job.py:1", is_done=True), running]
    assert unit.left_running() == unit.begun == [running]
    running.is_done = True
    assert unit.left_running() == []
    assert unit.begun is None


def test_another_try_is_a_unit_of_its_own_and_the_one_before_stays_over() -> None:
    backend = shared()
    count = backend.state(COUNT)
    unit, again = UnitOfWork("key"), UnitOfWork("key")
    as_unit(unit, count.update, 1)
    backend.roll_back(unit)
    as_unit(again, count.update, as_unit(again, count.value) + 5)
    with pytest.raises(CallIsOver):
        as_unit(unit, count.update, 1)
    backend.commit(again)
    backend.current_key = "key"

    assert count.value() == 5


def test_a_backend_that_is_closed_is_over_for_all() -> None:
    backend = shared()
    count = backend.state(COUNT)
    unit = UnitOfWork("key")
    as_unit(unit, count.update, 1)
    backend.close()

    with pytest.raises(CallIsOver):
        as_unit(unit, count.value)


def test_a_unit_sees_its_own_timers_and_others_do_not() -> None:
    backend = shared()
    queue = backend.timers().event
    old, new = (1, "key", ()), (2, "key", ())
    queue.add(old)
    unit = UnitOfWork("key")

    assert as_unit(unit, queue.add, new)
    assert not as_unit(unit, queue.add, new)
    assert as_unit(unit, queue.remove, old)
    assert not as_unit(unit, queue.remove, old)
    assert (as_unit(unit, lambda: new in queue), as_unit(unit, lambda: old in queue)) == (True, False)
    assert list(queue) == [old]

    backend.commit(unit)
    assert list(queue) == [new]


def test_while_one_thread_has_the_lock_no_unit_reads_or_writes() -> None:
    lock = threading.RLock()
    backend = SharedBackend(HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM), lock)
    count, unit, done = backend.state(COUNT), UnitOfWork("key"), threading.Event()

    def work() -> None:
        CURRENT.set(unit)
        count.update(1)
        done.set()

    with backend.lock:
        thread = threading.Thread(target=work)
        thread.start()
        assert not done.is_set()
    thread.join(10)
    assert done.is_set()


# ---- many of them, in any order, against a model

TTL = Ttl(10)
STATES: dict[str, Any] = {
    "count": COUNT,
    "box": BOX,
    "items": ListState(int, name="items"),
    "table": MapState(int, int, name="table"),
    "total": ReducingState(int, lambda held, added: held + added, name="total"),
    "folded": FoldingState(list, [], lambda held, added: [*held, added], name="folded"),
    "brief": ValueState(int, default=0, name="brief", ttl=TTL),
    "briefs": MapState(int, int, name="briefs", ttl=TTL),
}
KEYS = ("JFK", "LGA", 3)
NAMESPACES: tuple[Any, ...] = ((), (0, 10))
changes = st.tuples(st.sampled_from([*STATES, "clear", "timer"]), st.integers(0, 3), st.sampled_from(NAMESPACES))


def change(backend: KeyedStateBackend, what: str, number: int, namespace: Any) -> Any:
    """Change the state of the current key."""
    if what == "timer":
        queue, timer = backend.timers()[number % 2], (number // 2, backend.current_key, namespace)
        return queue.remove(timer) if timer in queue else queue.add(timer)
    state = backend.state(list(STATES.values())[number] if what == "clear" else STATES[what])
    state.set_namespace(namespace)
    match what:
        case "clear":
            state.clear()
        case "count" | "brief":
            state.update(state.value() + number)
        case "box":
            held = state.value()
            held[str(number)] = held.get(str(number), 0) + 1
            state.update(held)
        case "table" | "briefs":
            state.put(number, (state.get(number) or 0) + 1)
        case _:
            state.add(number)
    return None


def seen(backend: KeyedStateBackend) -> dict[str, Any]:
    """All that the current key holds."""
    found: dict[str, Any] = {}
    for name, declared in STATES.items():
        state = backend.state(declared)
        for namespace in NAMESPACES:
            state.set_namespace(namespace)
            match name:
                case "count" | "box" | "brief":
                    value = state.value()
                case "table" | "briefs":
                    value = sorted(state.items())
                case _:
                    value = list(state.get() or []) if name != "total" else state.get()
            found[f"{name} {namespace}"] = value
        state.set_namespace(())
    return found


def held(backend: KeyedStateBackend) -> dict[Any, Any]:
    """All that all keys hold, and the timers."""
    found: dict[Any, Any] = {domain: sorted(queue, key=str) for domain, queue in backend.timers()._asdict().items()}
    for key in KEYS:
        backend.current_key = key
        found[key] = seen(backend)
    return found


class UnitsOfWork(RuleBasedStateMachine):
    """The model is a plain backend that gets a unit's changes when it is committed, each at the time it was made."""

    units = Bundle("units")

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.model_clock = Hands(), Hands()
        self.backend, self.model = shared(), HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
        self.backend.clock, self.model.clock = self.clock, self.model_clock
        for declared in STATES.values():
            self.backend.state(declared)
            modelled: Any = self.model.state(declared)
            if declared.ttl is not None:  # it may remove nothing: its clock is set back to when a unit has written
                modelled._count_access = lambda: None
        self.under_way: dict[Any, list[tuple[int, Any]]] = {}
        """By key, what its unit has done, and when."""

    @rule(target=units, key=st.sampled_from(KEYS))
    def begin(self, key: Any) -> UnitOfWork:
        """One at a time for each key."""
        if key in self.under_way:
            return UnitOfWork(None)
        self.under_way[key] = []
        return UnitOfWork(key)

    @rule(unit=units, script=st.lists(changes, min_size=1, max_size=4))
    def work(self, unit: UnitOfWork, script: list[Any]) -> None:
        if unit.key is None or unit.is_over:
            return
        for each in script:
            as_unit(unit, change, self.backend, *each)
            self.under_way[unit.key].append((self.clock.now_ms, each))
        with_it = self._copy_of_model()
        self._apply(with_it, unit.key)
        with_it.current_key = unit.key
        assert as_unit(unit, seen, self.backend) == seen(with_it)

    @rule(unit=consumes(units))
    def commit(self, unit: UnitOfWork) -> None:
        if unit.key is None:
            return
        self.backend.commit(unit)
        self._apply(self.model, unit.key)
        del self.under_way[unit.key]

    @rule(target=units, unit=consumes(units))
    def fail(self, unit: UnitOfWork) -> UnitOfWork:
        """It is tried again."""
        if unit.key is None:
            return unit
        self.backend.roll_back(unit)
        self.under_way[unit.key] = []
        return UnitOfWork(unit.key)

    @rule(key=st.sampled_from(KEYS), each=changes)
    def on_the_task(self, key: Any, each: Any) -> None:
        if key in self.under_way:
            return
        self.backend.current_key = self.model.current_key = key
        change(self.backend, *each)
        change(self.model, *each)

    @rule(ms=st.integers(1, 6))
    def pass_time(self, ms: int) -> None:
        self.clock.now_ms += ms
        self.model_clock.now_ms += ms

    @invariant()
    def a_snapshot_holds_what_is_committed(self) -> None:
        assert held(self._restored(self.backend)) == held(self._copy_of_model())

    @invariant()
    def a_question_sees_what_is_committed(self) -> None:
        with self.backend.read_only():
            for key in KEYS:
                self.backend.current_key = self.model.current_key = key
                assert seen(self.backend) == seen(self.model)

    def _apply(self, backend: KeyedStateBackend, key: Any) -> None:
        clock, backend.clock = backend.clock, None
        assert isinstance(clock, Hands)
        now_ms = clock.now_ms
        backend.clock = clock
        for at_ms, each in self.under_way[key]:
            clock.now_ms, backend.current_key = at_ms, key
            change(backend, *each)
        clock.now_ms = now_ms

    def _copy_of_model(self) -> HeapBackend:
        return self._restored(self.model)

    def _restored(self, backend: KeyedStateBackend) -> HeapBackend:
        storage = CheckpointStorage(f"memory://units-{uuid4().hex}")
        where = JobId("job"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a")
        parts = SubtaskSnapshot()
        parts.add(OperatorId("op"), backend.snapshot(CheckpointId(1)))
        state = parts.write(SnapshotTarget(storage, *where, inline_below_bytes=1), store_in_file)
        again = HeapBackend(0, MAX_PARALLELISM - 1, MAX_PARALLELISM)
        again.clock = Hands(self.clock.now_ms)
        again.restore([handle for part in state.operators.values() for handle in part.keyed], handle_reader(storage))
        for declared in STATES.values():
            again.state(declared)
        return again


TestUnitsOfWork = UnitsOfWork.TestCase
TestUnitsOfWork.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
