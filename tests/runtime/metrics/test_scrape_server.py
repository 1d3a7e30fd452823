"""The metrics port: clients that say nothing make room for those that ask."""

from __future__ import annotations

import contextlib
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from understudy.runtime.metrics import scrape_server
from understudy.runtime.metrics.scrape_server import MOST, ScrapeServer

WAIT_S = 60


class App:
    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.asked = threading.Semaphore(0)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/slow":
            self.asked.release()
            self.goes_on.wait(WAIT_S)
        start("200 OK", [("Content-Type", "text/plain")])
        return [b"figures"]


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def server(app: App) -> Iterator[ScrapeServer]:
    with contextlib.closing(ScrapeServer(app, 0, "127.0.0.1")) as made:
        yield made
        app.goes_on.set()


def scrape(server: ScrapeServer) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=WAIT_S) as answer:
        body: bytes = answer.read()
    return body


def connect(server: ScrapeServer, to_say: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
    made.sendall(to_say)
    return made


def test_those_that_say_nothing_make_room_for_those_that_ask(server: ScrapeServer) -> None:
    with contextlib.ExitStack() as crowd:
        idle = [crowd.enter_context(connect(server)) for _ in range(5 * MOST)]
        for _ in range(3):
            assert scrape(server) == b"figures"
        assert idle[0].recv(1) == b""


def test_where_all_are_being_answered_the_next_is_closed(
    server: ScrapeServer, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_server, "ROOM_SECONDS", 0)
    with contextlib.ExitStack() as crowd:
        asking = []
        for _ in range(MOST):
            asking.append(crowd.enter_context(connect(server, b"GET /slow HTTP/1.0\r\n\r\n")))
            assert app.asked.acquire(timeout=WAIT_S)
        with connect(server) as refused:
            assert refused.recv(1) == b""
        app.goes_on.set()
        for each in asking:
            while each.recv(1_024):
                pass
        assert scrape(server) == b"figures"


def test_it_is_closed_twice_and_its_port_is_free_again(server: ScrapeServer) -> None:
    server.close()
    server.close()
    with pytest.raises(urllib.error.URLError):
        scrape(server)
