"""Connections to a ROUTER that show nothing: the oldest of them make room, and members keep theirs."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import zmq
from zmq.utils.monitor import parse_monitor_message

from understudy.runtime.system import CurveKeys
from understudy.runtime.system.remote.strangers import EVENTS, Strangers

MOST = 4
WAIT_MS = 60_000


class Port:
    """A ROUTER with keys, whose events go to its strangers as they come."""

    def __init__(self, context: zmq.Context[Any], keys: CurveKeys) -> None:
        self.strangers = Strangers("the port", MOST)
        self.router = context.socket(zmq.ROUTER)
        self._monitor = self.router.get_monitor_socket(EVENTS)
        self.router.curve_server = True  # and nobody behind it asks for a client's key
        self.router.curve_secretkey = keys.secret
        self.router.bind("tcp://127.0.0.1:*")
        self.endpoint = self.router.getsockopt_string(zmq.LAST_ENDPOINT)

    def see(self, event: int) -> None:
        """Take events until there has been one of this kind."""
        while self._monitor.poll(WAIT_MS):
            found = parse_monitor_message(self._monitor.recv_multipart())
            self.strangers.on(found["event"], found["value"])
            if found["event"] == event:
                return
        raise AssertionError("no event")

    def connect(self) -> socket.socket:
        address = urlsplit(self.endpoint)
        made = socket.create_connection((address.hostname or "", address.port or 0), timeout=WAIT_MS / 1000)
        self.see(zmq.EVENT_ACCEPTED)
        return made

    def close(self) -> None:
        self.router.disable_monitor()
        self._monitor.close(0)
        self.router.close(0)


KEYS = CurveKeys.generate()


@pytest.fixture
def context() -> Iterator[zmq.Context[Any]]:
    with zmq.Context() as made:
        yield made


@pytest.fixture
def port(context: zmq.Context[Any]) -> Iterator[Port]:
    with contextlib.closing(Port(context, KEYS)) as made:
        yield made


def echo(port: Port, member: zmq.Socket[bytes]) -> bytes:
    member.send(b"hello")
    assert port.router.poll(WAIT_MS)
    port.router.send_multipart(port.router.recv_multipart())
    assert member.poll(WAIT_MS)
    return member.recv()


def test_the_oldest_stranger_makes_room_and_a_member_that_is_older_stays(
    port: Port, context: zmq.Context[Any], caplog: pytest.LogCaptureFixture
) -> None:
    with context.socket(zmq.DEALER) as member, contextlib.ExitStack() as crowd:
        member.linger = 0
        KEYS.secure_client(member)
        member.connect(port.endpoint)
        port.see(zmq.EVENT_ACCEPTED)
        assert echo(port, member) == b"hello"
        with caplog.at_level(logging.WARNING, "understudy.runtime.system.remote.strangers"):
            strangers = [crowd.enter_context(port.connect()) for _ in range(5 * MOST)]
        assert len(port.strangers) == MOST
        for cut in strangers[:-MOST]:
            while cut.recv(1_024):
                pass
        assert echo(port, member) == b"hello"
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == ["the port has 5 connections"]


def test_who_has_gone_is_counted_no_more(port: Port) -> None:
    with port.connect():
        assert len(port.strangers) == 1
    port.see(zmq.EVENT_DISCONNECTED)
    assert len(port.strangers) == 0


def test_a_late_event_harms_no_other_connection(port: Port) -> None:
    """The descriptor that it names is a file by now, or a connection that was made since."""
    with open("/dev/null") as file, port.connect() as mine:
        for descriptor in (file.fileno(), 2**20):
            port.strangers.on(zmq.EVENT_ACCEPTED, descriptor)
        assert len(port.strangers) == 1
        first, second = socket.socketpair()
        with first, second:
            port.strangers.on(zmq.EVENT_ACCEPTED, first.fileno())
            second.sendall(b"still open")
            assert first.recv(100) == b"still open"
        assert mine.recv(10)  # the greeting
