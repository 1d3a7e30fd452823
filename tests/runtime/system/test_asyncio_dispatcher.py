"""Handlers that are `async def`: their actor waits, the others do not."""

from __future__ import annotations

import asyncio

import pytest

from understudy.actors.actor import Actor
from understudy.runtime.system import ActorSystem
from understudy.runtime.system.event_loop import SystemLoop

WAIT_S = 120


class Waiter(Actor):
    """Handles "wait" until it is let go, through the event it was given."""

    def __init__(self, entered, let_go):
        self.entered, self.let_go = entered, let_go
        self.seen = []

    async def on_receive(self, message):
        if message == "wait":
            self.entered.set()
            await self.let_go.wait()
        self.seen.append(message)
        return list(self.seen)


class Echo(Actor):
    async def on_receive(self, message):
        return message


def test_an_awaiting_handler_holds_its_own_messages_only():
    asyncio.run(_hold())


async def _hold():
    entered, let_go = asyncio.Event(), asyncio.Event()
    async with ActorSystem("lent", loop=asyncio.get_running_loop()) as system:
        waiter = system.spawn(Waiter(entered, let_go))
        waiter.tell("wait")
        second = waiter.ask("second")
        await entered.wait()
        assert await system.spawn(Echo()).ask("free") == "free"
        assert not second.is_done
        let_go.set()
        assert await second == ["wait", "second"]


def test_a_handler_that_hangs_is_cancelled_by_shutdown():
    asyncio.run(_hang())


async def _hang():
    entered, never = asyncio.Event(), asyncio.Event()
    system = ActorSystem("lent", loop=asyncio.get_running_loop())
    await system.open()
    waiter = system.spawn(Waiter(entered, never))
    answer = waiter.ask("wait")
    await entered.wait()
    await system.close(timeout=0.01)
    with pytest.raises(Exception, match="shut down"):
        await answer
    assert not waiter.is_alive()


def test_async_handlers_need_the_asyncio_dispatcher(system):
    with pytest.raises(TypeError, match="dispatcher='asyncio'"):
        system.spawn(Echo(), dispatcher="thread").ask("?").result(timeout=WAIT_S)


def test_a_handler_that_awaits_something_cancelled_fails_like_any_other(system):
    class Confused(Actor):
        async def on_receive(self, message):
            cancelled = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled

    ref = system.spawn(Confused())
    with pytest.raises(RuntimeError, match="cancelled"):
        ref.ask("?").result(timeout=WAIT_S)


def test_sys_exit_in_a_handler_harms_nobody_else(system, dispatcher, idler):
    class Leaver(idler):
        def on_receive(self, message):
            raise SystemExit(3)

    other = system.spawn(Echo())
    leaver = system.spawn(Leaver(), dispatcher=dispatcher)
    with pytest.raises(SystemExit):
        leaver.ask("?").result(timeout=WAIT_S)
    assert other.ask("here").result(timeout=WAIT_S) == "here"


def test_when_ctrl_c_comes_in_the_middle_of_a_message_the_next_one_wakes_the_actor(monkeypatch):
    """Python raises KeyboardInterrupt wherever the main thread is, also between "it is woken" and that."""

    def interrupted(*_):
        raise KeyboardInterrupt

    with ActorSystem("interrupted") as system:
        echo = system.spawn(Echo())
        assert echo.ask("before").get(timeout=WAIT_S) == "before"
        with monkeypatch.context() as patch:
            patch.setattr(SystemLoop, "call", interrupted)
            with pytest.raises(KeyboardInterrupt):
                echo.tell("cut off")
        assert echo.ask("after").get(timeout=WAIT_S) == "after"
