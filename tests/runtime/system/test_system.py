"""The life of a system: it starts once, ends once, and refuses politely at other times."""

from __future__ import annotations

import asyncio
import threading

import pytest

from understudy.actors.actor import Actor
from understudy.runtime.system import ActorDead, ActorSystem, DeadLetterReason, SystemStopped

WAIT_S = 120


class Echo(Actor):
    def on_receive(self, message):
        return message


def test_it_lives_once():
    system = ActorSystem("once")
    with system:
        with pytest.raises(SystemStopped, match="before"):
            system.start()
        ref = system.spawn(Echo())
    system.shutdown()
    with pytest.raises(SystemStopped, match="before"):
        system.start()
    with pytest.raises(SystemStopped, match="does not run"):
        system.spawn(Echo())
    with pytest.raises(ActorDead):
        ref.ask("?").result(timeout=WAIT_S)


def test_only_one_of_two_shutdowns_does_it():
    system = ActorSystem("twice").start()
    threads = [threading.Thread(target=system.shutdown) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_before_the_start_nothing_can_be_spawned():
    with pytest.raises(SystemStopped):
        ActorSystem("later").spawn(Echo())


def test_it_can_be_entered_from_an_event_loop_and_keep_its_own_thread():
    async def main():
        async with ActorSystem("own-thread") as system:
            return await system.spawn(Echo()).ask("hello")

    assert asyncio.run(main()) == "hello"


def test_an_actor_that_shuts_its_own_loop_down_is_told_not_to(system):
    class Presumptuous(Actor):
        def on_receive(self, message):
            self.system.shutdown()  # type: ignore[attr-defined]

    actor = Presumptuous()
    actor.system = system  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"await system\.close"):
        system.spawn(actor).ask("now").result(timeout=WAIT_S)


def test_a_handler_that_never_ends_does_not_keep_the_system(caplog):
    entered, let_go = threading.Event(), threading.Event()

    class Stuck(Actor):
        def on_receive(self, message):
            entered.set()
            let_go.wait(WAIT_S)

    system = ActorSystem("stuck").start()
    answer = system.spawn(Stuck(), name="stuck-one", dispatcher="thread").ask("?")
    assert entered.wait(WAIT_S)
    system.shutdown(timeout=0.01)
    with pytest.raises(ActorDead):
        answer.result(timeout=WAIT_S)
    assert "stuck-one did not stop" in caplog.text
    let_go.set()


def test_what_is_told_to_nobody_is_a_dead_letter(system):
    class Shy:
        def __repr__(self):
            raise RuntimeError

    system.actor_of("nobody").tell(Shy())
    (letter,) = system.dead_letters.recent
    assert (letter.address, letter.message) == (f"{system.address}/nobody", "a Shy")
    assert system.dead_letters.by_reason == {DeadLetterReason.UNKNOWN: 1}


def test_ids_and_chance_come_from_what_was_injected():
    with ActorSystem("fixed", new_id=lambda prefix: f"{prefix}-7") as system:

        class Namer(Actor):
            def on_receive(self, message):
                return self.context.new_id("attempt")

        assert system.spawn(Namer()).ask("?").result(timeout=WAIT_S) == "attempt-7"


def test_an_unknown_dispatcher_is_named(system):
    with pytest.raises(ValueError, match="'fibre'"):
        system.spawn(Echo(), dispatcher="fibre")
