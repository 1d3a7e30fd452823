"""Whatever comes to the port, the system lives, counts, and serves its own."""

from __future__ import annotations

import contextlib
import math
import random
import socket
import struct

import msgpack
import pytest
import zmq

from understudy.actors.actor import Actor
from understudy.messages import MAX_MESSAGE_BYTES, encode
from understudy.runtime.system import ActorSystem, CurveKeys, Unreachable, seldom
from understudy.runtime.system.inbox import ChildStopped
from understudy.runtime.system.remote.envelope import Envelope, WatchActor, pack_payload

from ..clusters.jobs import eventually

WAIT_S = 120
LOOPBACK = "tcp://127.0.0.1:0"


class Echo(Actor):
    def on_receive(self, message):
        return message


@pytest.fixture
def plain():
    with ActorSystem("plain", bind=LOOPBACK) as system:
        system.spawn(Echo(), name="echo")
        yield system


@pytest.fixture
def secure():
    with ActorSystem("secure", bind=LOOPBACK, curve=CurveKeys.generate()) as system:
        system.spawn(Echo(), name="echo")
        yield system


@pytest.fixture
def dealer():
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        yield socket


def serves(system):
    """The system answers a newcomer who holds its key."""
    with ActorSystem("friend", bind=LOOPBACK, curve=system._transport.keys) as friend:
        return friend.actor_of(f"{system.address}/echo").ask("still there?").result(timeout=WAIT_S) == "still there?"


def forged(cls, **values):
    """A payload that claims to hold a dataclass of ours which is no message."""
    record = msgpack.packb([f"{cls.__module__}:{cls.__qualname__}", values])
    return msgpack.packb(["PlainValue", {"value": msgpack.packb(msgpack.ExtType(6, record))}])


def garbage():
    good = encode(Envelope("echo", "", pack_payload("hello")))
    chance = random.Random(7)
    return [
        b"",
        b"\xc1",
        good[:-3],
        chance.randbytes(300),
        msgpack.packb(["NoSuchMessage", {}]),
        msgpack.packb(["Envelope", {"target": 7, "sender": [], "payload": None}]),
        msgpack.packb(["Envelope", {"target": "echo", "sender": "", "payload": b"\x93"}]),
        msgpack.packb(["Heartbeat", {"sender": "x", "sequence": 1}]),
        encode(Envelope("echo", "ipc:///tmp/somewhere", pack_payload("?"), "1")),
        encode(Envelope("echo", "", forged(ChildStopped, name="echo"))),
        encode(WatchActor("echo", "nowhere", 1)),
        b"\x91" * 5000,
    ]


def test_frames_that_are_no_messages_are_counted_and_dropped(plain, dealer):
    dealer.connect(plain.address)
    frames = garbage()
    for frame in frames:
        dealer.send(frame)
    dealer.send_multipart([b"two", b"frames"])
    dealer.send(encode(Envelope("echo", "", pack_payload("a good one, last"))))
    assert serves(plain)
    assert plain.malformed_messages == len(frames) + 1
    assert plain.dead_letters.count == 0


def test_a_peer_that_sends_garbage_again_and_again_is_one_line_in_the_log(plain, dealer, caplog, monkeypatch):
    """As one of another release does, with each heartbeat."""
    monkeypatch.setattr(seldom, "_ONCE_IN_S", math.inf)
    dealer.connect(plain.address)
    for number in range(500):
        dealer.send(msgpack.packb(["OfNextYear", {"number": number}]))
    eventually(lambda: plain.malformed_messages == 500, "all of them")
    assert serves(plain)
    assert caplog.text.count("malformed message") == 1


def test_an_oversized_frame_is_not_even_read(plain, dealer):
    dealer.connect(plain.address)
    dealer.send(bytes(MAX_MESSAGE_BYTES + 1))
    assert serves(plain)
    assert plain.malformed_messages == 0


def test_bytes_that_are_no_zeromq_harm_nobody(secure):
    port = int(secure.address.rpartition(":")[2])
    chance = random.Random(3)
    for opening in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" + bytes(8) + b"\x7f",
        struct.pack(">Q", 2**63),
        chance.randbytes(999),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
            connection.sendall(opening)
    assert serves(secure)
    assert secure.malformed_messages == 0


def test_without_a_key_nothing_is_even_decoded(secure, dealer):
    dealer.connect(secure.address)
    with contextlib.suppress(zmq.Again):  # refused meanwhile: a socket without a connection would block for ever
        for frame in garbage():
            dealer.send(frame, zmq.DONTWAIT)
    assert serves(secure)
    assert secure.malformed_messages == 0


def test_a_client_that_knows_the_clusters_public_key_alone_is_refused(secure, dealer):
    dealer.curve_serverkey = secure._transport.keys.public
    dealer.curve_publickey, dealer.curve_secretkey = zmq.curve_keypair()
    monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    dealer.connect(secure.address)
    dealer.send(b"\xc1")
    assert monitor.poll(WAIT_S * 1000), "the ZAP handler said nothing"
    dealer.disable_monitor()
    monitor.close()
    assert serves(secure)
    assert secure.malformed_messages == 0


def test_who_is_refused_for_its_key_and_asks_nothing_logs_it_once(secure, caplog):
    """As a TaskManager that registers again and again with the key of another cluster."""
    said = f"{secure.address} refuses this process"
    with ActorSystem("foreign", bind=LOOPBACK, curve=CurveKeys.generate()) as foreign:
        for _ in range(2):
            foreign.actor_of(f"{secure.address}/echo").tell("let me in")
            eventually(lambda: said in caplog.text, "the line in the log")
            with pytest.raises(Unreachable):
                foreign.actor_of(f"{secure.address}/echo").ask("let me in").result(timeout=WAIT_S)
    assert caplog.text.count(said) == 1
    assert "compare the key files" in caplog.text


def test_systems_of_two_clusters_do_not_reach_each_other(secure, plain):
    with ActorSystem("foreign", bind=LOOPBACK, curve=CurveKeys.generate()) as foreign:
        for stranger in (foreign, plain):
            with pytest.raises(Unreachable):
                stranger.actor_of(f"{secure.address}/echo").ask("let me in").result(timeout=WAIT_S)
    assert secure.malformed_messages == 0
