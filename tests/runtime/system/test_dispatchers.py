"""The contract that every dispatcher keeps: one message at a time, in order, from `on_start` to `on_stop`."""

from __future__ import annotations

import threading

import pytest

from understudy.actors.errors import InvalidJobGraph
from understudy.runtime.system import ActorDead, ActorSystem, AskTimeout, DeadLetterReason

WAIT_S = 120


def test_messages_are_handled_one_at_a_time_and_in_order(system, dispatcher, idler):
    seen, inside = [], threading.Semaphore(1)

    class Counter(idler):
        def on_receive(self, message):
            assert inside.acquire(blocking=False)
            seen.append(message)
            inside.release()

    ref = system.spawn(Counter(), dispatcher=dispatcher)
    for number in range(500):
        ref.tell(number)
    ref.ask("last").result(timeout=WAIT_S)
    assert seen == [*range(500), "last"]


def test_an_ask_gets_what_the_handler_returns(system, dispatcher, idler):
    class Doubler(idler):
        def on_receive(self, message):
            return 2 * message

    ref = system.spawn(Doubler(), name="doubler", dispatcher=dispatcher)
    assert ref.ask(21).result(timeout=WAIT_S) == 42
    assert system.actor_of("doubler").ask(4).result(timeout=WAIT_S) == 8
    assert system.actor_of(ref.address).ask(4).map(lambda n: n + 1).result(timeout=WAIT_S) == 9


def test_an_ask_gets_the_very_exception_that_the_handler_raised(system, dispatcher, idler):
    error = LookupError("no such role")

    class Raiser(idler):
        def on_receive(self, message):
            raise error

    with pytest.raises(LookupError) as caught:
        system.spawn(Raiser(), dispatcher=dispatcher).ask("?").result(timeout=WAIT_S)
    assert caught.value is error


def test_a_refusal_leaves_the_actor_well(system, dispatcher, idler):
    class Refuser(idler):
        def on_receive(self, message):
            if message == "bad":
                raise InvalidJobGraph("no source")
            return "well"

    ref = system.spawn(Refuser(), dispatcher=dispatcher)
    with pytest.raises(InvalidJobGraph):
        ref.ask("bad").result(timeout=WAIT_S)
    assert ref.ask("good").result(timeout=WAIT_S) == "well"


def test_the_hooks_frame_the_messages_and_run_where_the_handler_runs(system, dispatcher, idler):
    calls, threads = [], set()

    class Hooked(idler):
        def on_start(self):
            self.note("start")

        def on_receive(self, message):
            self.note(message)

        def on_stop(self):
            self.note("stop")

        def note(self, what):
            calls.append(what)
            threads.add(threading.current_thread())

    ref = system.spawn(Hooked(), dispatcher=dispatcher)
    ref.tell("message")
    assert ref.stop(timeout=WAIT_S)
    assert calls == ["start", "message", "stop"]
    assert len(threads) == 1


def test_a_stopped_actor_takes_nothing_and_says_so(system, dispatcher, idler):
    ref = system.spawn(idler(), name="gone", dispatcher=dispatcher)
    assert ref.stop(timeout=WAIT_S) is True
    assert ref.stop(timeout=WAIT_S) is False
    assert not ref.is_alive()
    ref.tell("too late")
    with pytest.raises(ActorDead, match="has stopped"):
        ref.ask("too late").result(timeout=WAIT_S)
    assert system.dead_letters.by_reason == {DeadLetterReason.STOPPED: 2}
    assert system.dead_letters.recent[-1].address == ref.address


def test_what_waits_behind_the_stop_is_refused(system, dispatcher, idler):
    entered, go_on = threading.Event(), threading.Event()

    class Slow(idler):
        def on_receive(self, message):
            entered.set()
            go_on.wait(WAIT_S)
            return message

    ref = system.spawn(Slow(), dispatcher=dispatcher)
    first = ref.ask("first")
    assert entered.wait(WAIT_S)
    stopped, behind = ref.stop(block=False), ref.ask("behind")
    go_on.set()
    assert first.result(timeout=WAIT_S) == "first"
    assert stopped.get(timeout=WAIT_S)
    with pytest.raises(ActorDead):
        behind.result(timeout=WAIT_S)


def test_a_handler_may_promise_its_answer(system, dispatcher, idler):
    class Promiser(idler):
        def on_receive(self, message):
            if message == "ask":
                self.promised = self.context.promise()
                return self.promised
            self.promised.set(message)

    ref = system.spawn(Promiser(), dispatcher=dispatcher)
    answer = ref.ask("ask")
    ref.tell("kept")
    assert answer.result(timeout=WAIT_S) == "kept"


def test_an_ask_that_nobody_answers_times_out(system, dispatcher, idler):
    class Silent(idler):
        def on_receive(self, message):
            return self.context.promise()

    with pytest.raises(AskTimeout, match="within 20 ms"):
        system.spawn(Silent(), dispatcher=dispatcher).ask("?", timeout_ms=20).result(timeout=WAIT_S)


def test_timers_come_in_the_order_of_their_delays(system, dispatcher, recorder):
    class Timed(recorder):
        def on_start(self):
            self.context.schedule(60, "second")
            self.context.schedule(1, "first")

    actor = Timed()
    system.spawn(actor, dispatcher=dispatcher)
    assert [actor.next(), actor.next()] == ["first", "second"]


def test_a_cancelled_timer_is_not_heard_even_when_it_was_due(system, dispatcher, recorder):
    fired = threading.Event()

    class Canceller(recorder):
        def on_start(self):
            timer = self.context.schedule(0, "cancelled")
            self.context.schedule(1, "kept")
            fired.wait(0.05)  # the thread dispatchers: let it fire into the inbox
            timer.cancel()

    actor = Canceller()
    system.spawn(actor, dispatcher=dispatcher)
    assert actor.next() == "kept"
    assert actor.heard.empty()


def test_blocking_work_is_piped_to_the_actor(system, dispatcher, recorder):
    class Piper(recorder):
        def on_start(self):
            work = self.context.run_blocking(divmod, 7, 2)
            self.context.pipe_to_self(work, lambda value: ("done", value), repr)
            fail = self.context.run_blocking(divmod, 7, 0)
            self.context.pipe_to_self(fail, repr, lambda error: ("failed", type(error)))

    actor = Piper()
    system.spawn(actor, dispatcher=dispatcher)
    assert {actor.next(), actor.next()} == {("done", (3, 1)), ("failed", ZeroDivisionError)}


def test_children_stop_before_their_parent(system, dispatcher, idler):
    stopped = []

    class Child(idler):
        def on_stop(self):
            stopped.append("child")

    class Parent(idler):
        def on_start(self):
            self.context.spawn(Child(), dispatcher=dispatcher)
            self.context.spawn(Child(), dispatcher=dispatcher)

        def on_stop(self):
            stopped.append("parent")

    assert system.spawn(Parent(), dispatcher=dispatcher).stop(timeout=WAIT_S)
    assert stopped == ["child", "child", "parent"]


def test_pykkas_proxy_works(system, dispatcher, idler):
    class Proxied(idler):
        lines = 3

        def say(self, text):
            return text.upper()

    proxy = system.spawn(Proxied(), dispatcher=dispatcher).proxy()
    assert proxy.say("to be").get(timeout=WAIT_S) == "TO BE"
    assert proxy.lines.get(timeout=WAIT_S) == 3


def test_shutdown_stops_the_last_spawned_first_and_ends_every_ask(dispatcher, idler):
    class Silent(idler):
        def on_receive(self, message):
            return self.context.promise()

    with ActorSystem("theatre") as system:
        answer = system.spawn(Silent(), dispatcher=dispatcher).ask("?")
    with pytest.raises(ActorDead):
        answer.result(timeout=WAIT_S)
