"""Two systems: the same tell, ask and watch as inside one."""

from __future__ import annotations

import logging
import multiprocessing
import socket

import pytest

from understudy.actors.actor import Actor, Terminated
from understudy.messages import MessageError, message
from understudy.runtime.system import (
    ActorDead,
    ActorSystem,
    AskTimeout,
    CurveKeys,
    DeadLetterReason,
    InvalidAddress,
    RemoteActorError,
    TransportOptions,
    Unreachable,
)
from understudy.runtime.system.remote.remoting import LOST

WAIT_S = 120
LOOPBACK = "tcp://127.0.0.1:0"
IMPATIENT = TransportOptions(connect_timeout_ms=200)


@message
class Line:
    text: str


class Player(Actor):
    def on_receive(self, message):
        match message:
            case Line(text):
                return Line(text.upper())
            case "boom":
                raise LookupError("I forgot")
            case "unsendable":
                return object()
            case "silence":
                return self.context.promise()
            case {"ask": address, "for": what}:
                return self.context.actor_of(address).ask(what)
            case _:
                return message


@pytest.fixture(params=["plain", "curve"])
def keys(request):
    return CurveKeys.generate() if request.param == "curve" else None


@pytest.fixture
def systems(keys):
    with (
        ActorSystem("here", bind=LOOPBACK, curve=keys) as here,
        ActorSystem("there", bind=LOOPBACK, curve=keys) as there,
    ):
        yield here, there


@pytest.fixture
def player(systems):
    here, there = systems
    return here.actor_of(there.spawn(Player(), name="player").address)


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def test_messages_and_plain_data_travel(player):
    assert player.ask(Line("to be")).result(timeout=WAIT_S) == Line("TO BE")
    assert player.ask({"or": ("not", 2**70, None)}).result(timeout=WAIT_S) == {"or": ("not", 2**70, None)}


def test_tells_keep_their_order(systems, recorder):
    here, there = systems
    actor = recorder()
    ref = here.actor_of(there.spawn(actor).address)
    for number in range(1000):
        ref.tell(number)
    assert [actor.next() for _ in range(1000)] == list(range(1000))


def test_what_a_handler_raises_comes_back_as_text(player):
    with pytest.raises(RemoteActorError) as caught:
        player.ask("boom").result(timeout=WAIT_S)
    assert (caught.value.type_name, caught.value.message) == ("LookupError", "I forgot")
    assert "raise LookupError" in caught.value.traceback_text


def test_what_a_handler_raises_comes_back_the_same_through_a_process_between(systems, player):
    """It was a RemoteActorError about a RemoteActorError, with the name of the process between."""
    here, _ = systems
    other = here.spawn(Player(), name="other")
    with pytest.raises(RemoteActorError) as caught:
        player.ask({"ask": other.address, "for": "boom"}).result(timeout=WAIT_S)
    error = caught.value
    assert (error.address, error.type_name, error.message) == (other.address, "LookupError", "I forgot")
    assert error.traceback_text.count("Traceback") == 1


def test_an_answer_that_cannot_be_sent_fails_the_ask(player):
    with pytest.raises(RemoteActorError, match="UnsupportedValue"):
        player.ask("unsendable").result(timeout=WAIT_S)


def test_a_message_that_cannot_be_sent_is_refused_where_it_is_sent(player):
    with pytest.raises(MessageError):
        player.tell(object())


def test_the_ways_an_ask_fails(systems, player):
    here, there = systems
    with pytest.raises(AskTimeout):
        player.ask("silence", timeout_ms=20).result(timeout=WAIT_S)
    with pytest.raises(ActorDead, match="no such actor"):
        here.actor_of(f"{there.address}/nobody").ask("?").result(timeout=WAIT_S)


def test_nobody_listens_there(keys, recorder):
    with ActorSystem("here", bind=LOOPBACK, curve=keys, options=IMPATIENT) as here:
        nobody = here.actor_of(f"{free_address()}/nobody")
        watcher = recorder(nobody)
        here.spawn(watcher)
        nobody.tell("lost")
        with pytest.raises(Unreachable, match="cannot be reached"):
            nobody.ask("?").result(timeout=WAIT_S)
        assert watcher.next() == Terminated(nobody.address, "unreachable: it cannot be reached", may_be_there=True)
        assert here.dead_letters.by_reason[DeadLetterReason.UNREACHABLE] == 2


def test_a_peer_may_come_late(keys, recorder):
    address = free_address()
    with ActorSystem("here", bind=LOOPBACK, curve=keys) as here:
        answer = here.actor_of(f"{address}/player").ask("are you there?")
        with ActorSystem("there", bind=address, curve=keys) as there:
            player = Player()
            there.spawn(player, name="player")
            assert answer.result(timeout=WAIT_S) == "are you there?"


def test_a_remote_stop_is_told_once(systems, player, recorder):
    here, there = systems
    watcher, other = recorder(player, player), recorder(player)
    for actor in (watcher, other):
        here.spawn(actor)
    player.ask("?").result(timeout=WAIT_S)  # behind the watches on the same connection
    there.stop(there.actor_of("player"))
    assert watcher.next() == other.next() == Terminated(player.address, "stopped")
    assert watcher.heard.empty()


def test_a_system_that_shuts_down_in_order_says_so(keys, recorder):
    with ActorSystem("here", bind=LOOPBACK, curve=keys) as here:
        with ActorSystem("there", bind=LOOPBACK, curve=keys) as there:
            player = here.actor_of(there.spawn(Player()).address)
            watcher = recorder(player)
            here.spawn(watcher)
            silence = player.ask("silence")
            player.ask("?").result(timeout=WAIT_S)
        assert watcher.next().address == player.address
        with pytest.raises((ActorDead, Unreachable, RemoteActorError)):
            silence.result(timeout=WAIT_S)


def test_only_a_connection_that_was_wanted_still_is_lost_in_the_log(keys, recorder, caplog):
    """Not that of a system whose end was told before."""
    caplog.set_level(logging.INFO, LOST)
    with ActorSystem("here", bind=LOOPBACK, curve=keys, options=IMPATIENT) as here:
        with ActorSystem("there", bind=LOOPBACK, curve=keys) as there:
            player = here.actor_of(there.spawn(Player()).address)
            watcher = recorder(player)
            here.spawn(watcher)
            player.ask("?").result(timeout=WAIT_S)
            there.stop(there.actor_of(player.address))
            assert watcher.next().address == player.address
        with pytest.raises(Unreachable):
            _answer(player, "?")
    lost = [each.getMessage() for each in caplog.records if "is lost" in each.getMessage()]
    assert lost
    assert not [each for each in lost if "1 answer" not in each]


def test_the_last_words_before_a_shutdown_are_delivered(systems, keys, recorder):
    here, _ = systems
    actor = recorder()
    address = here.spawn(actor).address
    with ActorSystem("brief", bind=LOOPBACK, curve=keys) as brief:
        for number in range(100):
            brief.actor_of(address).tell(number)
    assert [actor.next() for _ in range(100)] == list(range(100))


def test_a_new_system_at_an_old_address_is_reached(keys):
    address = free_address()
    with ActorSystem("here", bind=LOOPBACK, curve=keys) as here:
        for life in range(3):
            with ActorSystem("there", bind=address, curve=keys) as there:
                there.spawn(Player(), name="player")
                assert _answer(here.actor_of(f"{address}/player"), life) == life


def _answer(player, question):
    """A question that is put before the end of the old connection was seen may fail with it."""
    try:
        return player.ask(question).result(timeout=WAIT_S)
    except Unreachable:
        return player.ask(question).result(timeout=WAIT_S)


def test_a_reference_to_an_own_actor_is_local(systems):
    here, _ = systems
    ref = here.spawn(Player(), name="own")
    thing = object()
    assert here.actor_of(ref.address).ask(thing).result(timeout=WAIT_S) is thing
    assert here.actor_of("own") == ref


def test_a_system_without_a_port_reaches_nobody(system):
    with pytest.raises(InvalidAddress, match="bind"):
        system.actor_of("tcp://127.0.0.1:1/player")


@pytest.mark.parametrize("address", ["tcp://", "tcp://host", "tcp://host:1/a b", "http://host:1/x", "", "a//b"])
def test_nonsense_is_no_address(system, address):
    with pytest.raises(InvalidAddress):
        system.actor_of(address)


def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_behind(systems):
    here, _ = systems
    with pytest.raises(Exception, match="in use"):
        ActorSystem("late", bind=here.address).start()


def test_a_process_may_fork_before_the_system_starts():
    system = ActorSystem("parent", bind=LOOPBACK)
    child = multiprocessing.get_context("fork").Process(target=_start_and_stop, args=(system,))
    child.start()
    child.join(WAIT_S)
    assert child.exitcode == 0
    _start_and_stop(system)


def _start_and_stop(system):
    with system:
        assert system.spawn(Player()).ask(1).result(timeout=WAIT_S) == 1
