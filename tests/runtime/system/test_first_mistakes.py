"""What people write in their first hour with actors, and what they are told."""

from __future__ import annotations

import asyncio
import logging

import pytest

from understudy.actors.actor import Actor, SupervisorStrategy
from understudy.runtime.system import ActorDead, ActorSystem, MessageNotHandled

WAIT_S = 120


class Echo(Actor):
    def on_receive(self, message):
        return message


class Misspelt(Actor):
    def receive(self, message):
        return message


class Picky(Actor):
    def on_receive(self, message):
        match message:
            case "known":
                return "yes"
            case _:
                return super().on_receive(message)


class Blocking(Actor):
    """Waits for an answer as a thread would."""

    def __init__(self, other):
        self.other = other

    def on_receive(self, message):
        return self.other.ask(message).result(timeout=WAIT_S)


def test_a_class_is_not_spawned_and_stays_as_it_is(system):
    with pytest.raises(TypeError, match=r"found the class Echo: write spawn\(Echo\(\)\)"):
        system.spawn(Echo)
    assert system.spawn(Echo()).ask("?").result(timeout=WAIT_S) == "?"


def test_what_is_no_actor_is_not_spawned(system):
    with pytest.raises(TypeError, match="found int 3"):
        system.spawn(3)


def test_who_asks_an_actor_without_on_receive_is_told_what_to_define(system):
    misspelt = system.spawn(Misspelt(), name="misspelt")
    with pytest.raises(MessageNotHandled, match=r"no Misspelt.on_receive.*def on_receive\(self, message\)"):
        misspelt.ask("?").result(timeout=WAIT_S)
    assert misspelt.is_alive()


def test_what_is_told_to_an_actor_without_on_receive_is_logged(system, caplog):
    caplog.set_level(logging.WARNING)
    misspelt = system.spawn(Misspelt(), name="misspelt")
    misspelt.tell("hello")
    with pytest.raises(MessageNotHandled):
        misspelt.ask("?").result(timeout=WAIT_S)
    assert "misspelt has left a message: no Misspelt.on_receive for str 'hello'" in caplog.text
    assert misspelt.is_alive()


def test_an_actor_refuses_what_it_does_not_know(system):
    picky = system.spawn(Picky(), name="picky")
    with pytest.raises(MessageNotHandled, match=r"Picky\.on_receive does not know str 'other'"):
        picky.ask("other").result(timeout=WAIT_S)
    assert picky.ask("known").result(timeout=WAIT_S) == "yes"


def test_a_handler_that_another_actor_refuses_has_failed(system, caplog):
    """Its own message is half handled: that is its supervisor's business, as with any error."""

    class Relay(Actor):
        def __init__(self, other):
            self.other = other

        async def on_receive(self, message):
            return await self.other.ask(message)

    picky = system.spawn(Picky(), name="picky")
    relay = system.spawn(Relay(picky), name="relay", supervisor_strategy=SupervisorStrategy.STOP)
    relay.tell("other")
    with pytest.raises(ActorDead):
        relay.ask("known").result(timeout=WAIT_S)
    assert "relay has left a message" not in caplog.text
    assert picky.is_alive()


def test_a_handler_on_the_loop_that_waits_for_an_answer_is_told_to_await(system):
    echo = system.spawn(Echo())
    blocking = system.spawn(Blocking(echo), supervisor_strategy=SupervisorStrategy.RESTART)
    with pytest.raises(RuntimeError, match=r"await.*dispatcher=\"thread\""):
        blocking.ask("?").result(timeout=WAIT_S)
    assert echo.ask("?").result(timeout=WAIT_S) == "?"


def test_a_handler_on_a_thread_may_wait(system):
    blocking = system.spawn(Blocking(system.spawn(Echo())), dispatcher="thread")
    assert blocking.ask("?").result(timeout=WAIT_S) == "?"


def test_a_thread_that_a_handler_waits_for_may_wait(system):
    class InThread(Actor):
        def __init__(self, other):
            self.other = other

        async def on_receive(self, message):
            return await asyncio.to_thread(lambda: self.other.ask(message).result(timeout=WAIT_S))

    assert system.spawn(InThread(system.spawn(Echo()))).ask("?").result(timeout=WAIT_S) == "?"


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "localhost:4000", "http://127.0.0.1:0", "tcp://127.0.0.1", 4000])
def test_a_bind_that_is_no_address_is_told_what_one_is(bind):
    with pytest.raises(ValueError, match=r"wanted tcp://host:port, as in 'tcp://127.0.0.1:0'"):
        ActorSystem("theatre", bind=bind).start()


def test_keys_that_are_none_are_refused():
    with pytest.raises(TypeError, match=r"curve: wanted CurveKeys.*CurveKeys.load.*found a str"):
        ActorSystem("theatre", bind="tcp://127.0.0.1:0", curve="keys.txt").start()
