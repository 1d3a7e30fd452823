"""A server's connections: clients that send nothing, that send or read slowly, and those that must be answered beside.

Nothing here asserts a time: limits are small where a test waits for one, and large where none may be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from understudy.runtime.web import http
from understudy.runtime.web.app import App
from understudy.runtime.web.connections import Limits
from understudy.runtime.web.server import WebServer

from ..clusters.jobs import eventually
from .views import HEX, AnsweringJobs

TOKEN = "a-long-secret"
NEVER = 3_600.0
QUICK = 0.2
ASKED = f"GET /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
UNREAD = b"GET /vendor/uPlot.iife.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000
"""Many requests at once, without a token, whose answers fill all buffers."""
Serve = Callable[[Limits], WebServer]
Connect = Callable[..., socket.socket]


@pytest.fixture
def serve(jobs: AnsweringJobs) -> Iterator[Serve]:
    """Servers of one app each, with a token."""
    with contextlib.ExitStack() as stack:
        yield lambda limits: stack.enter_context(WebServer(App(jobs, token=TOKEN), token=TOKEN, limits=limits))


@pytest.fixture
def connect() -> Iterator[Connect]:
    with contextlib.ExitStack() as stack:

        def one(server: WebServer, source: str = "127.0.0.1") -> socket.socket:
            made = socket.create_connection(("127.0.0.1", server.port), timeout=60, source_address=(source, 0))
            return stack.enter_context(made)

        yield one


def answer_of(connection: socket.socket) -> tuple[int, Any]:
    """Read one answer, with a length and JSON in it."""
    read = connection.makefile("rb")
    status = int(read.readline().split()[1])
    size = 0
    while (line := read.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    return status, json.loads(read.read(size)) if size else None


def is_cut(connection: socket.socket) -> bool:
    """By the server; waits for it. What it has still sent is read over."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def drip_until_cut(connection: socket.socket, first: bytes) -> None:
    """One byte after the other, without end."""
    connection.settimeout(0.01)
    left = iter(first)
    while True:
        try:
            connection.sendall(bytes((next(left, ord("a")),)))
            if connection.recv(65_536) == b"":
                return
        except TimeoutError:
            pass
        except ConnectionError:
            return


def waiting(server: WebServer) -> int:
    return sum(each.is_waiting for each in list(server._connections._open.values()))


def deaf_at_work(server: WebServer) -> int:
    return sum(each._is_paused and each._requests > 0 for each in list(server._connections._open.values()))


def test_idle_connections_take_no_more_than_their_share_and_a_user_is_answered_beside_them(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(Limits(8, NEVER, NEVER))
    with caplog.at_level(logging.WARNING, "understudy.runtime.web.connections"):
        idle = [connect(server) for _ in range(100)]
        asking = connect(server)
        asking.sendall(ASKED)
        assert answer_of(asking)[0] == 200
        assert server.connections <= 8
        assert is_cut(idle[0])
        for _ in range(50):
            connect(server)
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "the page has 8 connections, as many as it may have"
    ]
    assert "8 send or read nothing, most from 127.0.0.1: new ones take the place of such" in caplog.text


def test_the_address_that_has_most_of_them_loses_them(serve: Serve, connect: Connect) -> None:
    server = serve(Limits(8, NEVER, NEVER))
    waits = connect(server, "127.0.0.2")
    for _ in range(50):
        connect(server)
    eventually(lambda: server.connections == 8, "the crowd")
    waits.sendall(ASKED)
    assert answer_of(waits)[0] == 200


def test_who_was_answered_before_stays_longer_than_who_never_asked(serve: Serve, connect: Connect) -> None:
    server = serve(Limits(8, NEVER, NEVER))
    kept = connect(server)
    for _ in range(3):
        kept.sendall(ASKED)
        assert answer_of(kept)[0] == 200
        for _ in range(20):
            connect(server)


def test_a_stream_of_events_is_at_work_and_stays(serve: Serve, connect: Connect) -> None:
    """Longer than a client may take for its head, and while a crowd comes."""
    server = serve(Limits(4, QUICK, NEVER))
    events = connect(server)
    events.sendall(ASKED.replace(b"/jobs", f"/live?job={HEX}".encode()))
    lines = events.makefile("rb")
    for _ in range(2):
        while not next(lines).startswith(b"event: job"):
            pass
        for _ in range(20):
            connect(server)


@pytest.mark.parametrize("kind", [b"Content-Length: 60000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"])
def test_bodies_that_do_not_end_keep_nobody_out(serve: Serve, connect: Connect, kind: bytes) -> None:
    server = serve(Limits(4, NEVER, NEVER))
    head = b"POST" + ASKED[3:-2].replace(b"/jobs", f"/jobs/{HEX}/savepoints".encode())
    slow = [connect(server) for _ in range(4)]
    for each in slow:
        each.sendall(head + kind)
    eventually(lambda: server.connections == 4 and waiting(server) == 4, "four that owe a body")
    asking = connect(server)
    asking.sendall(ASKED)
    assert answer_of(asking)[0] == 200
    assert is_cut(slow[0])


def test_answers_that_nobody_reads_keep_nobody_out(serve: Serve, connect: Connect) -> None:
    server = serve(Limits(4, NEVER, NEVER))
    deaf = [connect(server) for _ in range(4)]
    for each in deaf:
        each.sendall(UNREAD)
    eventually(lambda: deaf_at_work(server) == 4, "four requests whose answers wait for their readers")
    asking = connect(server)
    asking.sendall(ASKED)
    assert answer_of(asking)[0] == 200


def test_when_all_are_at_work_the_next_is_refused_and_streams_leave_room_for_requests(
    serve: Serve, connect: Connect, jobs: AnsweringJobs
) -> None:
    server = serve(Limits(4, NEVER, NEVER))
    live = ASKED.replace(b"/jobs", b"/live")
    pages = [connect(server) for _ in range(2)]
    for each in pages:
        each.sendall(live)
        assert each.recv(12) == b"HTTP/1.1 200"
    third = connect(server)
    third.sendall(live)
    status, said = answer_of(third)
    assert (status, said) == (503, {"errors": ["2 pages are being served already: close one of them"]})
    third.sendall(ASKED)
    assert answer_of(third)[0] == 200
    jobs.answers = asyncio.Event()
    for each in (third, connect(server)):
        each.sendall(ASKED.replace(b"/jobs", f"/page/{HEX}/logs".encode()))
    eventually(lambda: server.connections == 4 and not waiting(server), "four at work")
    refused = connect(server)
    assert answer_of(refused)[0] == 503
    assert is_cut(refused)


@pytest.mark.parametrize(
    "first",
    [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Padding: ", ASKED + b"GET /jobs HTTP/1.1\r\nX-Padding: "],
    ids=["nothing", "head", "second-head"],
)
def test_a_head_that_does_not_end_is_cut_off(serve: Serve, connect: Connect, first: bytes) -> None:
    server = serve(Limits(4, QUICK, NEVER))
    slow = connect(server)
    if first:
        drip_until_cut(slow, first)
    assert is_cut(slow)
    eventually(lambda: server.connections == 0, "the end of the connection")


@pytest.mark.parametrize("order", [f"POST /jobs/{HEX}/savepoints", "POST /login", "GET /jobs", "GET /icon.svg"])
def test_a_body_that_does_not_end_is_cut_off(
    serve: Serve, connect: Connect, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the app reads it or not."""
    monkeypatch.setattr(http, "BODY_SECONDS", QUICK)
    server = serve(Limits(4, QUICK, NEVER))
    slow = connect(server)
    head = ASKED.replace(b"GET /jobs", order.encode()).removesuffix(b"\r\n")
    slow.sendall(head + b"Content-Length: 60000\r\n\r\n")
    drip_until_cut(slow, b"{")
    eventually(lambda: server.connections == 0, "the end of the connection")


def test_who_reads_no_answer_is_cut_off(serve: Serve, connect: Connect) -> None:
    server = serve(Limits(4, QUICK, QUICK))
    deaf = connect(server)
    deaf.sendall(UNREAD)
    eventually(lambda: server.connections == 0, "the end of the connection")


def test_a_process_keeps_descriptors_for_its_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    from understudy.runtime.system import descriptors

    for soft, most in ((1_024, 256), (256, 64), (20, 8), (1_000_000, 256), (resource.RLIM_INFINITY, 256)):
        monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _, soft=soft: (soft, soft))  # type: ignore[attr-defined]
        assert Limits.of_process().most == most


def test_garbage_is_logged_once_and_not_with_each_request(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(Limits(64, NEVER, NEVER))
    for _ in range(20):
        stranger = connect(server)
        stranger.sendall(b"\x00\xffgarbage\r\n\r\n")
        assert b" 400 " in stranger.makefile("rb").readline()
    said = [each.getMessage() for each in caplog.records if "Invalid HTTP request" in each.getMessage()]
    assert said == ["Invalid HTTP request received. (said once a minute, however many there are)"]
    honest = connect(server)
    honest.sendall(ASKED)
    assert answer_of(honest)[0] == 200


def test_a_body_whose_chunks_are_garbage_is_refused_and_is_no_error_of_ours(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """By then the app may be at work; the answer is the server's."""
    server = serve(Limits(64, NEVER, NEVER))
    for order in (b"GET /jobs", b"POST /login", b"GET /icon.svg"):
        stranger = connect(server)
        head = ASKED.replace(b"GET /jobs", order).removesuffix(b"\r\n")
        stranger.sendall(head + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n")
        assert b" 400 " in stranger.makefile("rb").readline()
    reading = connect(server)
    reading.sendall(head.replace(b"GET /icon.svg", b"GET /live") + b"Transfer-Encoding: chunked\r\n\r\n")
    assert b" 200 " in reading.makefile("rb").readline()
    reading.sendall(b"ZZZ\r\n")
    assert is_cut(reading)
    eventually(lambda: server.connections == 0, "the end of the connections")
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
