"""What becomes of an actor whose handler raises."""

from __future__ import annotations

import logging
import queue
import time

import pytest

from understudy.actors.actor import Actor, RestartLimit, SupervisorStrategy
from understudy.runtime.system import ActorDead, ActorSystem
from understudy.runtime.system.errors import NameTaken
from understudy.runtime.system.supervision import Supervision

WAIT_S = 120
RESTART, STOP, ESCALATE = SupervisorStrategy.RESTART, SupervisorStrategy.STOP, SupervisorStrategy.ESCALATE


@pytest.fixture
def fragile(idler):
    class Fragile(idler):
        """Counts; "boom" raises. Notes its hooks."""

        def __init__(self):
            self.calls = []

        def on_start(self):
            self.count = 0
            self.calls.append("start")

        def on_stop(self):
            self.calls.append("stop")

        def on_failure(self, exception_type, exception_value, traceback):
            self.calls.append(exception_type.__name__)

        def on_receive(self, message):
            if message == "boom":
                raise ValueError("boom")
            self.count += 1
            return self.count

    return Fragile


def test_stop_tells_the_actor_of_its_failure_and_then_cleans_up(system, dispatcher, fragile, recorder):
    actor = fragile()
    ref = system.spawn(actor, dispatcher=dispatcher)
    watcher = recorder(ref)
    system.spawn(watcher).ask("are you watching?").result(timeout=WAIT_S)
    watcher.next()
    ref.tell("boom")
    assert watcher.next().reason == "failed: ValueError: boom"
    assert actor.calls == ["start", "ValueError", "stop"]


def test_an_actor_whose_start_meets_the_end_of_the_system_ends_without_a_failure(idler, caplog):
    class Late(idler):
        """Spawns a child as it starts, when the system is already at its end."""

        def on_start(self):
            while system.is_running:
                time.sleep(0.001)
            self.context.spawn(idler())

    with ActorSystem("late") as system:
        system.spawn(Late(), dispatcher="thread")
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_restart_makes_the_state_fresh_and_keeps_the_inbox(system, dispatcher, fragile):
    actor = fragile()
    ref = system.spawn(actor, dispatcher=dispatcher, supervisor_strategy=RESTART)
    ref.tell("one")
    ref.tell("boom")
    assert ref.ask("one again").result(timeout=WAIT_S) == 1
    assert actor.calls == ["start", "stop", "start"]


def test_on_restart_takes_the_place_of_on_stop(system, dispatcher, fragile):
    class Careful(fragile):
        def on_restart(self, error):
            self.calls.append(str(error))

    actor = Careful()
    ref = system.spawn(actor, dispatcher=dispatcher, supervisor_strategy=RESTART)
    ref.tell("boom")
    ref.ask("?").result(timeout=WAIT_S)
    assert actor.calls == ["start", "boom", "start"]


def test_an_actor_that_fails_too_often_is_stopped(system, dispatcher, fragile):
    class Hopeless(fragile):
        restart_limit = RestartLimit(max_restarts=2, within_ms=60_000)

    actor = Hopeless()
    ref = system.spawn(actor, dispatcher=dispatcher, supervisor_strategy=RESTART)
    for _ in range(3):
        ref.tell("boom")
    with pytest.raises(ActorDead):
        ref.ask("?").result(timeout=WAIT_S)
    assert actor.calls == ["start", "stop", "start", "stop", "start", "ValueError", "stop"]


def test_a_start_that_fails_again_and_again_ends_in_a_stop(system, dispatcher, idler, recorder):
    class Stillborn(idler):
        def on_start(self):
            raise OSError("no disk")

    ref = system.spawn(Stillborn(), dispatcher=dispatcher, supervisor_strategy=RESTART)
    with pytest.raises(ActorDead):
        ref.ask("?").result(timeout=WAIT_S)


def test_a_restart_stops_the_children_and_cancels_the_timers(system, dispatcher, idler, recorder):
    heard = queue.Queue()

    class Child(idler):
        def on_stop(self):
            heard.put("child stopped")

    class Parent(idler):
        starts = 0

        def on_start(self):
            self.starts += 1
            heard.put(f"start {self.starts}")
            if self.starts == 1:
                self.context.spawn(Child(), name="child", dispatcher=dispatcher)
                self.context.schedule(200, "of my former life")
            else:
                self.context.spawn(Child(), name="child", dispatcher=dispatcher)
                self.context.schedule(400, "of this life")

        def on_receive(self, message):
            heard.put(message)
            if message == "boom":
                raise ValueError

    ref = system.spawn(Parent(), dispatcher=dispatcher, supervisor_strategy=RESTART)
    ref.tell("boom")
    expected = ["start 1", "boom", "child stopped", "start 2", "of this life"]
    assert [heard.get(timeout=WAIT_S) for _ in expected] == expected


@pytest.mark.parametrize(
    ("strategy", "calls"), [(RESTART, ["start", "stop", "start"]), (STOP, ["start", "ValueError", "stop"])]
)
def test_the_parents_strategy_decides_about_its_children(system, dispatcher, fragile, idler, strategy, calls):
    child = fragile()

    class Parent(idler):
        supervisor_strategy = strategy

        def on_start(self):
            self.context.spawn(child, name="child", dispatcher=dispatcher)

    parent = system.spawn(Parent(), dispatcher=dispatcher)
    parent.ask("are you there?").result(timeout=WAIT_S)
    with pytest.raises(ValueError, match="boom"):
        system.actor_of("child").ask("boom").result(timeout=WAIT_S)
    if strategy is RESTART:
        system.actor_of("child").ask("?").result(timeout=WAIT_S)
    else:
        assert child.actor_stopped.wait(WAIT_S)
    assert child.calls == calls
    assert parent.is_alive()


def test_escalate_makes_the_parent_fail_with_the_same_error(system, dispatcher, fragile, idler, recorder):
    failures = queue.Queue()

    class Parent(idler):
        supervisor_strategy = ESCALATE

        def on_start(self):
            self.context.spawn(fragile(), name="child", dispatcher=dispatcher)

        def on_failure(self, exception_type, exception_value, traceback):
            failures.put(exception_value)

    parent = system.spawn(Parent(), dispatcher=dispatcher)
    parent.ask("has the child been spawned?").result(timeout=WAIT_S)
    watcher = recorder(parent)
    system.spawn(watcher).ask("are you watching?").result(timeout=WAIT_S)
    watcher.next()
    system.actor_of("child").tell("boom")
    assert str(failures.get(timeout=WAIT_S)) == "boom"
    assert watcher.next().reason == "failed: ValueError: boom"


def test_a_raising_on_stop_does_not_keep_the_actor_alive(system, dispatcher, idler):
    class Clinging(idler):
        def on_stop(self):
            raise RuntimeError("not yet")

    assert system.spawn(Clinging(), name="clinging", dispatcher=dispatcher).stop(timeout=WAIT_S)
    system.spawn(idler(), name="clinging", dispatcher=dispatcher)


def test_a_name_is_taken_while_its_actor_lives(system, idler):
    system.spawn(idler(), name="hamlet")
    with pytest.raises(NameTaken):
        system.spawn(idler(), name="hamlet")


def test_an_actor_object_is_spawned_once(system, idler):
    actor = idler()
    system.spawn(actor)
    with pytest.raises(ValueError, match="already"):
        system.spawn(actor)


def test_start_is_refused_because_an_actor_belongs_to_a_system():
    with pytest.raises(TypeError, match="spawn"):
        Actor.start()


def test_restarts_long_ago_do_not_count():
    supervision = Supervision(RESTART, RestartLimit(max_restarts=2, within_ms=100))
    assert [supervision.decide(now) for now in (0, 1, 2, 100, 101, 102)] == [
        RESTART,
        RESTART,
        STOP,
        RESTART,
        RESTART,
        STOP,
    ]
