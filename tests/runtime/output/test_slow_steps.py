"""SlowSteps on a clock of its own: what is logged of a turn that takes long, and how often."""

from __future__ import annotations

import logging
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.actors.actor import Actor, Step
from understudy.actors.operators.operator import Operator
from understudy.runtime.output.running_code import RunningCode
from understudy.runtime.output.slow_places import LOGGED_IN_FULL, ONCE_IN_MS
from understudy.runtime.output.slow_steps import SlowSteps
from understudy.runtime.system import ActorSystem
from understudy.runtime.system.stepping_dispatcher import SteppingDispatcher
from understudy.state.backends import shared_backend
from understudy.state.backends.shared_backend import SharedBackend

WAIT_S = 120
LOCKS_FILE = shared_backend.__file__


class Clock:
    ms = 0.0

    def now_ms(self) -> float:
        return self.ms

    def wall_ms(self) -> int:
        return int(self.ms)


class Slow(Operator):
    def process_batch(self, batch: Any, out: Any) -> None:
        batch()  # it takes its time


def slow_operator(attempt: int = 2) -> Slow:
    made = Slow()
    made.context = SimpleNamespace(name="slow", subtask_index=1, attempt_number=attempt)  # type: ignore[assignment]
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> SlowSteps:
    return SlowSteps(1000, clock)


class _Group:
    turning: Any = None
    began_ms = 0.0


class Stage:
    """A group that is in a turn, on this thread, whenever the test says so."""

    def __init__(self, watch: SlowSteps, clock: Clock) -> None:
        self.watch, self.clock = watch, clock
        self.group: Any = _Group()
        self.cell: Any = SimpleNamespace(actor=None)
        watch.begin(self.group)

    def turn(self, *looks_after_ms: float, ends_after_ms: float, attempt: int = 2) -> None:
        began_ms = self.clock.ms
        self.group.began_ms, self.group.turning = began_ms, self.cell

        def work() -> None:
            for after_ms in looks_after_ms:
                self.clock.ms = began_ms + after_ms
                self.watch.look()

        slow_operator(attempt).process_batch(work, None)
        self.clock.ms = began_ms + ends_after_ms
        self.group.turning = None
        if ends_after_ms >= self.watch.slow_ms:
            self.watch.slow_turn_ended(self.group, self.cell, began_ms, ends_after_ms)


@pytest.fixture
def stage(watch: SlowSteps, clock: Clock) -> Stage:
    return Stage(watch, clock)


def test_a_slow_turn_is_logged_once_while_it_lasts_and_once_when_it_has_ended(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.turn(250, 999, 1250, 1500, 4000, ends_after_ms=4200)
    first, second = caplog.records
    assert first.getMessage().startswith("operator 'slow' in process_batch (subtask 1, attempt 2) has held its thread ")
    assert f"for 1.2 s: {__file__}:" in first.getMessage()
    assert "self.watch.look()" in first.getMessage()
    assert "held its thread for 4.2 s in all" in second.getMessage()
    assert f"{__file__}:" in second.getMessage()
    for record in (first, second):
        assert record.levelno == logging.WARNING
        assert (record.operator, record.subtask, record.attempt) == ("slow", 1, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("looks_after_ms", "logged"), [((1250, 4000), []), ((1250, 9000, 10_250), ["10.2", "10.3"])])
def test_an_import_is_slow_when_it_takes_ten_times_as_long(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture, looks_after_ms: list[float], logged: list[str]
) -> None:
    """A program's imports take their time when it arrives, and there is nothing to correct."""
    (tmp_path / "slow_to_import.py").write_text("import builtins; builtins.look_here()")
    stage.group.began_ms, stage.group.turning = 0.0, stage.cell

    def look() -> None:
        for after_ms in looks_after_ms:
            stage.clock.ms = after_ms
            stage.watch.look()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.look_here", look, raising=False)
        patch.syspath_prepend(tmp_path)
        patch.delitem(sys.modules, "slow_to_import", raising=False)
        import_module("slow_to_import")
    stage.group.turning = None
    stage.watch.slow_turn_ended(stage.group, stage.cell, 0.0, looks_after_ms[-1] + 10)
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition(" for ")[2].partition(" s")[0] for text in texts] == logged


def test_quick_turns_are_not_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(10):
        stage.turn(250, 999, ends_after_ms=999.9)
    stage.clock.ms += 5000
    stage.watch.look()
    assert caplog.records == []


def test_a_turn_that_held_the_lock_to_its_end_is_logged_when_it_has_ended(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.turn(ends_after_ms=3000)
    (record,) = caplog.records
    assert "held its thread for 3.0 s; at which line is not known" in record.getMessage()


def test_one_place_is_logged_a_few_times_and_then_once_in_a_while(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10):
        stage.turn(1000, ends_after_ms=1001)
    assert len(caplog.records) == 2 * LOGGED_IN_FULL
    stage.clock.ms += ONCE_IN_MS
    stage.turn(1000, ends_after_ms=1001)
    assert "(7 more times since it was last logged)" in caplog.records[-2].getMessage()
    assert len(caplog.records) == 2 * LOGGED_IN_FULL + 2


def test_one_place_stays_one_through_all_attempts(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """In a restart loop each attempt meets it again."""
    for attempt in range(10):
        stage.turn(1000, ends_after_ms=1001, attempt=attempt)
    assert len(caplog.records) == 2 * LOGGED_IN_FULL
    stage.clock.ms += ONCE_IN_MS
    stage.turn(1000, ends_after_ms=1001, attempt=10)
    text = caplog.records[-2].getMessage()
    assert "(subtask 1, attempt 10)" in text
    assert "(7 more times since it was last logged)" in text


def test_a_group_that_has_ended_is_not_looked_at(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.group.turning = stage.cell
    stage.watch.end(stage.group)
    stage.clock.ms += 5000
    stage.watch.look()
    assert caplog.records == []


def test_a_stepping_actor_is_watched_on_its_own_thread(caplog: pytest.LogCaptureFixture) -> None:
    """With the real dispatcher: the step blocks until the watch has seen it."""
    clock, ended = Clock(), threading.Event()
    watch = SlowSteps(1000, clock)

    class Blocking(Actor):
        def step(self) -> Step:
            clock.ms += 2000
            watch.look()
            clock.ms += 2000
            return Step.DONE

        def on_stop(self) -> None:
            ended.set()

    with ActorSystem("watched", clock=clock, dispatchers={"stepping": SteppingDispatcher(clock, watch)}) as system:
        system.spawn(Blocking(), dispatcher="stepping:slot")
        assert ended.wait(WAIT_S)
    said = [record.getMessage() for record in caplog.records if "its thread for" in record.getMessage()]
    assert [text.partition(" for ")[2].partition(" s")[0] for text in said] == ["2.0", "4.0"]
    assert all("a step of Blocking" in text for text in said)


def test_no_threshold_is_too_long_for_its_thread(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    with SlowSteps(10.0**17, clock):
        pass
    assert died == []


def test_a_task_that_waits_for_the_lock_of_its_state_names_the_coroutine_that_holds_it(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """And not the line of our own at which it waits."""
    lock = threading.Lock()
    lock.acquire()
    inner: Any = SimpleNamespace()
    backend = SharedBackend(inner, lock)

    def wait() -> None:
        with backend._as_committed():
            pass

    waiting = threading.Thread(target=wait)
    waiting.start()
    while (top := sys._current_frames().get(waiting.ident or 0)) is None or top.f_code.co_filename != LOCKS_FILE:
        pass
    held = RunningCode(slow_operator(), "process", "job.py", 8)
    frames = dict.fromkeys([threading.get_ident()], top)
    stage = Stage(SlowSteps(1000, clock, lambda: frames, on_the_loop=lambda: held), clock)
    stage.turn(1250, ends_after_ms=1300)
    lock.release()
    waiting.join()
    assert [record.getMessage().partition(" has held")[0].partition(" held")[0] for record in caplog.records] == [
        "operator 'slow' in process (subtask 1, attempt 2)"
    ] * 2
    assert all("job.py:8" in record.getMessage() for record in caplog.records)
