"""Stepping actors: one thread for a group, in turns, awake only when there is something to do."""

from __future__ import annotations

import queue
import threading

import pytest

from understudy.actors.actor import Actor, Step

WAIT_S = 120


class Stepper(Actor):
    """Makes `busy` steps, then idles."""

    def __init__(self, trace, name, busy, end=Step.IDLE):
        self.trace, self.name, self.busy, self.end = trace, name, busy, end

    def step(self):
        self.trace.put(self.name)
        self.busy -= 1
        return Step.BUSY if self.busy > 0 else self.end

    def on_receive(self, message):
        self.trace.put(message)


def drain(trace, count):
    return [trace.get(timeout=WAIT_S) for _ in range(count)]


def test_busy_actors_of_a_group_take_turns(system):
    trace, ready = queue.Queue(), threading.Event()

    class Gate(Stepper):
        def on_start(self):
            ready.wait(WAIT_S)

    system.spawn(Gate(trace, "a", 3), dispatcher="stepping:slot")
    system.spawn(Gate(trace, "b", 3), dispatcher="stepping:slot")
    ready.set()
    steps = drain(trace, 6)
    assert sorted(steps) == list("aaabbb")
    assert steps[-1] == "b"  # b never waits for more than one step of a


def test_messages_are_drained_before_the_step(system):
    trace = queue.Queue()
    ref = system.spawn(Stepper(trace, "step", 1), dispatcher="stepping:slot")
    assert drain(trace, 1) == ["step"]
    ref.tell("message")
    assert drain(trace, 2) == ["message", "step"]


def test_an_idle_actor_steps_again_only_when_it_is_woken(system):
    trace = queue.Queue()
    actor = Stepper(trace, "step", 1)
    ref = system.spawn(actor, dispatcher="stepping:slot")
    drain(trace, 1)
    neighbour = queue.Queue()
    system.spawn(Stepper(neighbour, "busy", 100), dispatcher="stepping:slot")
    drain(neighbour, 100)
    assert trace.empty()  # a hundred turns of the group passed it by
    ref.cell.context.wake()
    assert drain(trace, 1) == ["step"]


def test_idle_ms_bounds_the_idling(system):
    trace = queue.Queue()

    class Poller(Stepper):
        idle_ms = 1

    system.spawn(Poller(trace, "poll", 0), dispatcher="stepping:slot")
    assert drain(trace, 5) == ["poll"] * 5


def test_done_stops_the_actor_and_the_thread_ends_with_its_last_actor(system):
    trace = queue.Queue()
    ref = system.spawn(Stepper(trace, "a", 2, Step.DONE), dispatcher="stepping:brief")
    assert drain(trace, 2) == ["a", "a"]
    assert ref.cell.actor.actor_stopped.wait(WAIT_S)
    for thread in threading.enumerate():
        if thread.name == "stepping brief":
            thread.join(WAIT_S)
            assert not thread.is_alive()
    system.spawn(Stepper(trace, "again", 1, Step.DONE), dispatcher="stepping:brief")
    assert drain(trace, 1) == ["again"]


def test_groups_have_threads_of_their_own(system):
    entered, let_go, trace = threading.Event(), threading.Event(), queue.Queue()

    class Blocker(Actor):
        def step(self):
            entered.set()
            let_go.wait(WAIT_S)
            return Step.DONE

    system.spawn(Blocker(), dispatcher="stepping:one")
    assert entered.wait(WAIT_S)
    system.spawn(Stepper(trace, "free", 1), dispatcher="stepping:two")
    assert drain(trace, 1) == ["free"]
    let_go.set()


def test_a_step_that_raises_is_a_failure(system, recorder):
    class Failing(Actor):
        def step(self):
            raise ValueError("bad step")

    failing = system.spawn(Failing(), dispatcher="stepping:slot")
    watcher = recorder(failing)
    system.spawn(watcher)
    assert watcher.next().reason in ("failed: ValueError: bad step", "it had stopped before")


def test_an_actor_without_a_step_is_refused(system):
    with pytest.raises(TypeError, match="has no step"):
        system.spawn(Actor(), dispatcher="stepping:slot")
