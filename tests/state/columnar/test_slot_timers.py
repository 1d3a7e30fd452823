"""SlotTimers: the timers of a TimerQueue, whatever is logged, fired and moved; and in snapshots, there and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import CheckpointId
from understudy.state.backends.backend import KeyedStateBackend
from understudy.state.columnar import slot_backend, slot_timers
from understudy.state.columnar.slot_backend import SlotBackend
from understudy.state.columnar.slot_timer_queue import _times
from understudy.state.columnar.slot_timers import NO_TIME, SlotTimers
from understudy.state.columnar.timer_runs import TimerRun
from understudy.state.errors import StateIncompatible
from understudy.state.keys.key_groups import key_group
from understudy.state.kinds.descriptors import ValueState

from ...examples import examples
from .slot_scripts import MAX_PARALLELISM, compiled, interpreted, restored_into, written

TIMES = st.integers(0, 12) | st.sampled_from([-(2**63), -5, 2**40, 2**63 - 1])
SLOTS = st.integers(0, 4)
CHANGES = st.lists(st.tuples(TIMES, SLOTS, st.booleans()), max_size=12)
STEPS = st.lists(
    st.tuples(st.just("log"), CHANGES)
    | st.tuples(st.sampled_from(["add", "remove"]), st.tuples(TIMES, SLOTS))
    | st.tuples(st.just("fire"), st.tuples(TIMES, st.integers(0, 5)))
    | st.tuples(st.just("snapshot"), st.none())
    | st.tuples(st.just("move"), st.none()),
    max_size=25,
)
some_examples = examples(150)


def log(changes: Iterable[tuple[int, int, bool]]) -> TimerRun:
    times, slots, live = zip(*changes, strict=True)
    return TimerRun(np.array(times, np.int64), np.array(slots, np.int64), np.array(live, np.bool_))


@some_examples
@given(steps=STEPS, at_once=st.sampled_from([1, 2, 1000]))
def test_it_is_the_set_of_its_timers(steps: list[tuple[str, Any]], at_once: int) -> None:
    timers, model = SlotTimers(), set[tuple[int, int]]()
    taken = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_timers, "AT_ONCE", at_once)
        for what, given_ in steps:
            if what == "log" and given_:
                timers.apply(log(given_))
                for time_ms, slot, is_live in given_:
                    (model.add if is_live else model.discard)((time_ms, slot))
            elif what == "add":
                assert timers.add(*given_) == (given_ not in model)
                model.add(given_)
            elif what == "remove":
                assert timers.remove(*given_) == (given_ in model)
                model.discard(given_)
            elif what == "fire":
                _fire(timers, model, *given_)
            elif what == "snapshot":
                taken.append((timers.frozen(), sorted(model)))
            elif what == "move":
                model = _moved(timers, model)
            if taken:  # which makes one run of all: the histories without it have several
                assert sorted(timers.pending()) == sorted(model)
    for runs, expected in taken:
        live = [pair for pair, is_live in _last_of(runs).items() if is_live]
        assert sorted(live) == expected
    assert len(timers) == len(model)
    assert all(timers.has(*timer) for timer in model)
    assert sorted(timers.pending()) == sorted(model)


def _fire(timers: SlotTimers, model: set[tuple[int, int]], until_ms: int, most: int) -> None:
    times, slots, live = timers.due(until_ms)
    due = list(zip(times.tolist(), slots.tolist(), strict=True))
    assert due == sorted(each for each in model if each[0] <= until_ms)[: len(due)]
    assert live.all()
    assert len(due) or not any(time_ms <= until_ms for time_ms, _ in model)
    timers.fired(min(most, len(due)))
    model.difference_update(due[:most])


def _moved(timers: SlotTimers, model: set[tuple[int, int]]) -> set[tuple[int, int]]:
    kept = timers.slots()
    assert kept.tolist() == sorted({slot for _, slot in model})
    moved = kept[::-1].copy()
    timers.move(kept, moved)
    new_slot = dict(zip(kept.tolist(), moved.tolist(), strict=True))
    return {(time_ms, new_slot[slot]) for time_ms, slot in model}


def _last_of(runs: Iterable[TimerRun]) -> dict[tuple[int, int], bool]:
    found: dict[tuple[int, int], bool] = {}
    for run in runs:
        rows = zip(*(column.tolist() for column in run), strict=True)
        found.update({(time_ms, slot): is_live for time_ms, slot, is_live in rows})
    return found


def test_deleted_timers_do_not_pile_up() -> None:
    """A session that gets a record moves its timer each time."""
    timers = SlotTimers()
    slots = np.arange(100)
    for number in range(2_000):
        before, after = np.full(100, number), np.full(100, number + 1)
        moves = (np.concatenate(pair) for pair in ((before, after), (slots, slots), (slots < 0, slots >= 0)))
        timers.apply(TimerRun(*moves))
    assert sum(len(run.times) for run in timers.frozen()) < 1_000
    assert len(timers) == 100


@pytest.mark.usual_sizes
def test_what_fires_piece_by_piece_is_let_go() -> None:
    timers, count = SlotTimers(), 300_000
    timers.apply(log((time_ms, 0, True) for time_ms in range(count)))
    while len(timers.due(count - 100).times):
        timers.fired(1_000_000)
    (left,) = timers.frozen()
    assert len(left.times) == 99
    assert left.times.base is None


@pytest.mark.usual_sizes
def test_what_is_registered_and_deleted_while_a_slice_fires_holds_for_the_rest_of_it() -> None:
    timers = SlotTimers()
    timers.apply(log((time_ms, 0, True) for time_ms in (1, 2, 3, 4)))
    assert len(timers.due(10).times) == 4
    timers.fired(1)
    timers.apply(log([(3, 0, False), (2, 1, True), (20, 0, True)]))
    times, slots, _ = timers.due(10)
    assert list(zip(times.tolist(), slots.tolist(), strict=True)) == [(2, 0), (2, 1), (4, 0)]


def test_what_is_registered_last_is_forgotten_where_slots_are_others() -> None:
    timers = SlotTimers()
    timers.reserve(3)
    timers.apply(log([(5, 2, True)]))
    timers.last[2] = 5
    timers.move(np.array([2]), np.array([0]))
    timers.reserve(3)
    assert set(timers.last.tolist()) == {NO_TIME}
    assert list(timers.pending()) == [(5, 0)]


def test_a_small_run_counts_before_the_large_one_that_is_older() -> None:
    timers = SlotTimers()
    timers.apply(log((time_ms, 0, True) for time_ms in range(10)))
    timers.apply(log([(5, 0, False), (20, 0, True)]))
    assert not timers.has(5, 0)
    assert timers.has(20, 0)
    assert not timers.remove(5, 0)
    assert timers.add(5, 0)
    assert len(timers) == 11


@given(changes=CHANGES.filter(bool))
def test_what_is_registered_last_is_forgotten_where_it_is_deleted_from_python(
    changes: list[tuple[int, int, bool]],
) -> None:
    timers = SlotTimers()
    timers.reserve(5)
    timers.apply(log(changes))
    for time_ms, slot, _ in changes:
        timers.last[slot] = time_ms
        timers.remove(time_ms, slot)
        assert timers.last[slot] == NO_TIME


@given(changes=CHANGES.filter(bool))
def test_what_is_registered_last_is_forgotten_where_it_fires_for_python(changes: list[tuple[int, int, bool]]) -> None:
    """A kernel would take it for pending, and not register it again."""
    timers = SlotTimers()
    timers.reserve(5)
    timers.apply(log(changes))
    while (due := timers.next_ms()) is not None:
        timers.last[:] = due
        fired = timers.pop(due)
        if fired is None:  # that one was deleted
            continue
        assert timers.last[fired[1]] == NO_TIME


# -- by key, in a backend

KEYS = ("JFK", "LGA", "Ødegård", "", "x" * 40)
TIMER_SCRIPTS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove"]), TIMES, st.sampled_from(KEYS)), max_size=30
)
Script = list[tuple[str, int, str]]


def set_timers(backend: KeyedStateBackend, script: Script) -> None:
    queue = backend.timers().event
    for what, time_ms, key in script:
        (queue.add if what == "add" else queue.remove)((time_ms, key, ()))


def filled(script: Script) -> SlotBackend:
    backend = compiled()
    set_timers(backend, script)
    return backend


@some_examples
@given(script=TIMER_SCRIPTS, more=TIMER_SCRIPTS, cut=st.integers(1, MAX_PARALLELISM - 1))
def test_timers_come_back_each_in_its_key_group_and_from_and_into_state_in_dicts(
    script: Script, more: Script, cut: int
) -> None:
    slots, heap = filled(script), interpreted()
    set_timers(heap, script)
    expected = sorted(heap.timers().event)
    assert sorted(slots.timers().event) == expected
    for source in (slots, heap):
        handles = written(source)
        for make in (compiled, interpreted):
            parts = [restored_into(make(own), handles) for own in (range(cut), range(cut, MAX_PARALLELISM))]
            for part in parts:
                assert all(key_group(key, MAX_PARALLELISM) in part.key_groups for _, key, _ in part.timers().event)
            assert sorted(timer for part in parts for timer in part.timers().event) == expected
    whole, wanted = restored_into(compiled(), written(slots)), restored_into(interpreted(), written(heap))
    set_timers(whole, more)
    set_timers(wanted, more)
    fired = list(popped(whole))
    assert [timer[0] for timer in fired] == sorted(timer[0] for timer in fired)
    assert sorted(fired) == sorted(popped(wanted))
    assert len(whole.timers().event) == 0


def popped(backend: KeyedStateBackend) -> Iterator[Any]:
    return backend.timers().event.due(2**63 - 1)


@some_examples
@given(before=TIMER_SCRIPTS, after=TIMER_SCRIPTS)
def test_timers_set_after_the_synchronous_part_do_not_show_in_the_snapshot(before: Script, after: Script) -> None:
    backend = filled(before)
    expected = sorted(backend.timers().event)
    snapshot = backend.snapshot(CheckpointId(1))
    set_timers(backend, after)
    assert len(list(popped(backend))) <= len(before) + len(after)
    handle = snapshot(None)  # type: ignore[arg-type]
    assert sorted(restored_into(compiled(), [handle] if handle else []).timers().event) == expected


def test_timers_that_nobody_asked_for_are_kept() -> None:
    handles = written(filled([("add", 5, "JFK")]))
    assert list(restored_into(compiled(), written(restored_into(compiled(), handles))).timers().event) == [
        (5, "JFK", ())
    ]
    assert written(compiled()) == []


def test_keys_with_timers_are_not_forgotten_and_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_backend, "_FEWEST_KEYS", 8)
    backend, held = compiled(), ValueState(int, default=0, name="held")
    backend.state(held)
    for first in range(0, 200, 4):
        backend.slots_of([pa.array(range(first, first + 4))])
        backend.timers().event.add((first, first + 1, ()))
        backend.timers().event.remove((first - 40, first - 39, ()))
    assert len(backend.slot_keys) < 60
    assert sorted(backend.timers().event) == [(first, first + 1, ()) for first in range(160, 200, 4)]
    assert list(backend.each_key()) == []


@pytest.mark.parametrize("namespaces", [["plain", [(), "w"]], ["plain", ["w", ()]], ["same", "w", 2]], ids=str)
def test_timers_with_a_namespace_are_refused(namespaces: list[Any]) -> None:
    times = ["<i8", np.array([5, 6]).tobytes()]
    with pytest.raises(StateIncompatible, match="'w'"):
        _times(["tuples", times, namespaces])
    assert _times(["tuples", times, ["same", (), 2]]).tolist() == [5, 6]
