"""Terminated comes once, whatever ended the actor, and however often it was asked for."""

from __future__ import annotations

from understudy.actors.actor import Terminated

WAIT_S = 120


def watching(system, watcher, dispatcher):
    """Spawn the watcher, and return when it watches."""
    system.spawn(watcher, dispatcher=dispatcher).ask("are you watching?").result(timeout=WAIT_S)
    watcher.next()


def test_a_stop_is_told_once_to_each_watcher(system, dispatcher, idler, recorder):
    ref = system.spawn(idler(), dispatcher=dispatcher)
    twice, once = recorder(ref, ref), recorder(system.actor_of(ref.address))
    watching(system, twice, dispatcher)
    watching(system, once, dispatcher)
    ref.stop(timeout=WAIT_S)
    assert twice.next() == once.next() == Terminated(ref.address, "stopped")
    system.actor_of(twice.context.self_ref.address).ask("anything else?").result(timeout=WAIT_S)
    assert twice.next() == "anything else?"


def test_whoever_is_dead_already_is_told_at_once(system, dispatcher, idler, recorder):
    ref = system.spawn(idler(), dispatcher=dispatcher)
    ref.stop(timeout=WAIT_S)
    watcher = recorder(ref, system.actor_of("nobody"))
    system.spawn(watcher, dispatcher=dispatcher)
    assert watcher.next() == Terminated(ref.address, "it had stopped before")
    assert watcher.next() == Terminated(f"{system.address}/nobody", "there is no such actor")


def test_the_name_is_free_when_the_watcher_hears(system, dispatcher, idler, recorder):
    class Understudy(recorder):
        def on_receive(self, message):
            if isinstance(message, Terminated):
                self.context.spawn(idler(), name="hamlet", dispatcher=dispatcher)
            super().on_receive(message)

    ref = system.spawn(idler(), name="hamlet", dispatcher=dispatcher)
    watcher = Understudy(ref)
    watching(system, watcher, dispatcher)
    ref.tell("a line")
    ref.stop(timeout=WAIT_S)
    watcher.next()
    assert system.actor_of("hamlet").ask("are you there?").result(timeout=WAIT_S) is None


def test_a_watcher_that_stopped_is_forgotten(system, dispatcher, idler, recorder):
    ref = system.spawn(idler(), dispatcher=dispatcher)
    watcher = recorder(ref)
    watching(system, watcher, dispatcher)
    watcher.context.self_ref.stop(timeout=WAIT_S)
    ref.stop(timeout=WAIT_S)
    assert system.dead_letters.count == 0
