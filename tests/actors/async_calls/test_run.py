"""Run, against a model: whatever its records do, each one's output, state and timers are those of a loop over them.

The examples find faults that were planted in run.py; of five of them 150 to 300 simulated histories each found none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy import KeyedOperator, OutputTag, ValueState
from understudy.actors.async_calls import run as module
from understudy.actors.async_calls.backlog import Piece
from understudy.actors.async_calls.frozen_calls import CallInFlight
from understudy.actors.async_calls.run import PlainStates, Run, RunResults
from understudy.actors.flow.elements import NO_WATERMARK, TimedBatch
from understudy.actors.flow.key_selector import KeySelector
from understudy.actors.operators.collector import Collector
from understudy.state.errors import CallIsOver

from ...examples import examples
from .async_stage import Never, Stage

SIDE = OutputTag("side")
ELSEWHERE = ("elsewhere",)
ENDS = ("waits", "raises", "returns")
STEPS = ("collect", "side", "emit", "task", "add", "add elsewhere", "add to both", "timer")

Emitted = list[tuple[str, Any, int | None]]
"""Tag, record and event time."""


@dataclass
class Loop:
    """Its records say when one makes an asyncio.Task."""

    begun_so_far: int = 0


@dataclass
class Scripted:
    """A record: its key, and what the coroutine does."""

    number: int
    key: int
    steps: tuple[str, ...]


class Follows(KeyedOperator):
    """Does what the record says."""

    count = ValueState(int, default=0)

    def __init__(self, loop: Loop) -> None:
        self._own_loop = loop

    async def process(self, record: Any, out: Collector) -> Any:
        for at, step in enumerate(record.steps):
            what = record.number, at
            match step:
                case "collect":
                    out.collect(what)
                case "side":
                    out.collect_to(SIDE, what)
                case "emit":
                    out.emit([what])
                case "task":
                    self._own_loop.begun_so_far += 1
                case "add":
                    self._add()
                case "add elsewhere":
                    self._add_elsewhere()
                case "add to both":
                    self._add()
                    self._add_elsewhere()
                    self.count.set_namespace(())
                    self._add()
                case "timer" if isinstance(self, FollowsWithTimers):
                    self.timers.at_processing_time(record.number)
                case "waits":
                    await Never()
                case "raises":
                    raise ValueError(record.number)
                case "returns":
                    return what
        return None

    def _add(self) -> None:
        self.count.update(self.count.value() + 1)

    def _add_elsewhere(self) -> None:
        self.count.set_namespace(ELSEWHERE)
        self._add()


class FollowsWithTimers(Follows):
    async def on_timer(self, timer: Any, out: Collector) -> None:
        await Never()


@dataclass
class Model:
    """What a loop over the records comes to, until one does not end."""

    has_timers: bool
    emitted: list[tuple[Scripted, Emitted]] = field(default_factory=list)
    counts: dict[tuple[int, Any], int] = field(default_factory=dict)
    timers: set[tuple[int, int]] = field(default_factory=set)

    def add(self, record: Scripted, time_ms: int | None) -> None:
        """This record is done."""
        self.emitted.append((record, emitted_by(record, time_ms)))
        namespace: Any = ()
        for step in record.steps:
            for place in {"add": (namespace,), "add to both": (namespace, ELSEWHERE, ())}.get(step, ()):
                self._add(record.key, place)
            if step == "add elsewhere":
                namespace = ELSEWHERE
                self._add(record.key, namespace)
            elif step == "add to both":
                namespace = ()
            elif step == "timer" and self.has_timers:
                self.timers.add((record.number, record.key))

    def _add(self, key: int, namespace: Any) -> None:
        self.counts[key, namespace] = self.counts.get((key, namespace), 0) + 1


def emitted_by(record: Scripted, time_ms: int | None) -> Emitted:
    tags = {"collect": "", "emit": "", "side": "side"}
    return [(tags[step], (record.number, at), time_ms) for at, step in enumerate(record.steps) if step in tags]


def flat(elements: Iterator[tuple[str, Any]] | list[tuple[str, Any]]) -> Emitted:
    found: Emitted = []
    for tag, element in elements:
        if isinstance(element, TimedBatch):
            found += [(tag, each, ms) for each, ms in zip(element.records, element.times.tolist(), strict=True)]
        else:
            found += [(tag, each, None) for each in element]
    return found


def by_tag(emitted: Emitted) -> tuple[Emitted, Emitted]:
    """Order is kept for each output."""
    return [each for each in emitted if not each[0]], [each for each in emitted if each[0]]


def by_number(frozen: Iterator[CallInFlight]) -> dict[int, tuple[Emitted, Emitted]]:
    """What a snapshot has of each record."""
    found: dict[int, Emitted] = {}
    for call in frozen:
        assert call.results is not None
        found.setdefault(call.number, []).extend(flat(call.results))
    return {number: by_tag(emitted) for number, emitted in found.items()}


def wanted_in_snapshot(model: Model) -> dict[int, tuple[Emitted, Emitted]]:
    return {record.number: by_tag(emitted) for record, emitted in model.emitted if emitted}


def numbered(*batches: Sequence[Sequence[str]]) -> list[list[Scripted]]:
    """Batches of records that do these steps; all of one key."""
    numbers = count()
    return [[Scripted(next(numbers), 0, tuple(steps)) for steps in batch] for batch in batches]


@st.composite
def batches(draw: st.DrawFn) -> list[list[Scripted]]:
    steps = st.lists(st.sampled_from(STEPS), max_size=4)
    scripts = draw(st.lists(st.lists(steps, min_size=1, max_size=7), min_size=1, max_size=4))
    if end := draw(st.sampled_from(("", *ENDS))):
        scripts[-1].append([*draw(steps), end, "collect"])
        scripts[-1].append(["collect"])  # it does not have its turn
    found = numbered(*scripts)
    for record in (record for batch in found for record in batch):
        record.key = draw(st.integers(0, 1))
    return found


C = ("collect",)


@pytest.mark.usual_sizes
@examples(120)
@given(batches(), st.booleans(), st.booleans(), st.integers(1, 4))
@example(numbered([C], [C]), False, False, 4)
@example(numbered([C], [C, ("side",)]), False, False, 4)
@example(numbered([("side",), ("side",)]), False, False, 1)
@example(numbered([C, ("collect", "emit"), ("collect", "side", "collect")]), False, False, 4)
@example(numbered([C, ("collect", "emit"), ("collect", "side", "collect")]), True, False, 4)
@example(numbered([C, ("task", "collect"), C, C]), True, False, 4)
@example(numbered([("add elsewhere",), ("add",)]), False, False, 4)
@example(numbered([("add to both", "waits", "collect"), C]), False, False, 4)
@example(numbered([("timer",), C]), False, True, 4)
def test_a_run_comes_to_the_same_as_a_loop(
    given_batches: list[list[Scripted]], is_timed: bool, has_timers: bool, at_once: int
) -> None:
    loop, model, results = Loop(), Model(has_timers), RunResults()
    operator = (FollowsWithTimers if has_timers else Follows)(loop)
    stage = Stage(operator)
    operator._selectors = (KeySelector(lambda record: record.key),)
    plain = PlainStates.of(operator)
    snapshots: list[tuple[list[RunResults], dict[int, Any]]] = []
    first = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "LOCKED_RECORDS", at_once)
        for batch in given_batches:
            times = np.array([100 + each.number for each in batch], np.int64) if is_timed else None
            piece = Piece(operator, batch, 0, 0, NO_WATERMARK, times, None)
            run = Run(piece, first, stage.backend, operator.process, "p-", plain, loop, None, has_timers)
            waiting = None
            while not run.is_over:
                waiting = copy_context().run(run.go_on, lambda result: TypeError(str(result)))
                done = run.number - (run.stopped is not None)
                for record in batch[len(model.emitted) - first : done - first]:
                    model.add(record, 100 + record.number if is_timed else None)
                # as a snapshot now has it, and writes it later
                snapshots.append(([results.copy(), run.results.copy()], wanted_in_snapshot(model)))
            results.take_over(run.results)
            assert piece.taken == run.number - first
            first = run.number
            if run.stopped is not None:
                check_the_one_that_ended_it(run, waiting, is_timed)
                stage.backend.roll_back(run.stopped)

    for kept, wanted in snapshots:
        found: dict[int, Any] = {}
        for each in kept:
            found |= by_number(each.frozen(keyed=True))
        assert found == wanted
    out = Collector()
    results.move_to(out)
    assert by_tag(flat(out.all_taken())) == by_tag([each for _, emitted in model.emitted for each in emitted])
    assert counts_of(stage) == model.counts
    assert {(ms, key) for ms, key, _ in stage.backend.timers().processing} == model.timers


class Keeping(KeyedOperator):
    def __init__(self) -> None:
        self.outs: list[Collector] = []

    async def process(self, record: Any, out: Collector) -> None:
        self.outs.append(out)
        out.collect(record)


def test_what_records_leave_behind_emits_nothing_once_others_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a callback of the event loop's does."""
    monkeypatch.setattr(module, "LOCKED_RECORDS", 2)
    operator, misused = Keeping(), list[CallIsOver]()
    stage = Stage(operator)
    stage.backend.misused = misused.append
    piece = Piece(operator, [(0, number) for number in range(3)], 0, 0, NO_WATERMARK, None, None)
    run = Run(piece, 0, stage.backend, operator.process, "p-", PlainStates.of(operator), Loop(), None, False)
    for done in (2, 3):
        run.go_on(lambda result: TypeError(str(result)))
        with pytest.raises(CallIsOver):
            operator.outs[-1].collect("late")
        assert len(operator.outs) == done
    assert len(misused) == 2
    assert run.is_over
    assert run.results.records == list(piece.batch)


def check_the_one_that_ended_it(run: Run, waiting: Any, is_timed: bool) -> None:
    """What it has emitted until then is its own, and what it emits when it goes on."""
    call = run.stopped
    assert call is not None
    steps = call.record.steps
    end = next(at for at, step in enumerate(steps) if step in ENDS)
    so_far = Scripted(call.record.number, call.record.key, steps[:end])
    time_ms = 100 + call.number if is_timed else None
    wanted = emitted_by(so_far, time_ms)
    assert run.waits == (steps[end] == "waits") == (waiting is not None)
    if waiting is not None:
        coroutine, _ = waiting
        with pytest.raises(StopIteration):
            coroutine.send(None)
        wanted.append(("", (call.number, end + 1), time_ms))
    else:
        assert isinstance(call.error, ValueError if steps[end] == "raises" else TypeError)
    assert by_tag(flat(call.out.all_taken())) == by_tag(wanted)


def counts_of(stage: Stage) -> dict[tuple[int, Any], int]:
    """By key and namespace."""
    found = {}
    state: Any = stage.operator.count  # type: ignore[attr-defined]
    for namespace in ((), ELSEWHERE):
        state.set_namespace(namespace)
        for key in stage.backend.keys("count", namespace):
            stage.backend.current_key = key
            found[key, namespace] = state.value()
    return found
