"""A link carries bytes faithfully, and fails only when and how it is told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from understudy.runtime.chaos.proxy import Link, Proxy


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                    connection.sendall(data)
                except OSError:
                    return
                if not data:
                    return

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


@pytest.fixture
def link() -> Iterator[Link]:
    echo = Echo()
    with Proxy() as proxy:
        yield proxy.link(echo.address)
    echo.close()


def connected(link: Link) -> socket.socket:
    host, _, port = link.address.removeprefix("tcp://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def echoed(connection: socket.socket, data: bytes) -> bytes:
    threading.Thread(target=connection.sendall, args=[data], daemon=True).start()
    found = b""
    while len(found) < len(data):
        found += connection.recv(65536)
    return found


def test_a_link_carries_every_byte_both_ways(link: Link) -> None:
    data = bytes(range(256)) * 4096
    with connected(link) as connection:
        assert echoed(connection, data) == data


def test_a_cut_resets_every_connection_and_new_ones_work(link: Link) -> None:
    with connected(link) as one, connected(link) as other:
        assert echoed(one, b"1") == echoed(other, b"1") == b"1"
        assert link.cut() == 2
        for connection in (one, other):
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
    with connected(link) as connection:
        assert echoed(connection, b"2") == b"2"


def test_a_link_that_refuses_resets_new_connections_until_it_is_healed(link: Link) -> None:
    link.refuse()
    with pytest.raises(ConnectionResetError), connected(link) as connection:
        connection.recv(1)
    link.heal()
    with connected(link) as connection:
        assert echoed(connection, b"1") == b"1"


def test_a_stalled_link_accepts_and_is_silent_and_loses_nothing(link: Link) -> None:
    with connected(link) as old:
        assert echoed(old, b"1") == b"1"
        link.stall()
        with connected(link) as new:
            for connection in (old, new):
                connection.sendall(b"2")
                connection.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
                connection.settimeout(10)
            link.flow()
            assert old.recv(1) == new.recv(1) == b"2"


def test_a_slow_link_takes_its_time(link: Link) -> None:
    with connected(link) as connection:
        link.slow(delay_ms=100, bytes_per_second=10_000)
        started = time.monotonic()
        assert echoed(connection, b"x" * 1000) == b"x" * 1000
        assert time.monotonic() - started >= 0.39
        link.heal()
        assert echoed(connection, b"y") == b"y"


def test_when_one_side_closes_the_other_gets_what_was_sent_and_then_the_end(link: Link) -> None:
    with connected(link) as connection:
        assert echoed(connection, b"1") == b"1"
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_a_target_that_is_not_there_is_a_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"tcp://127.0.0.1:{gone.getsockname()[1]}"
    with Proxy() as proxy, pytest.raises(ConnectionResetError), connected(proxy.link(address)) as connection:
        connection.recv(1)


def test_closing_the_proxy_ends_connections_ports_and_thread() -> None:
    echo = Echo()
    proxy = Proxy()
    proxy.start()
    link = proxy.link(echo.address)
    with connected(link) as connection:
        assert echoed(connection, b"1") == b"1"
        proxy.close()
        proxy.close()
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connected(link)
    echo.close()
    assert not [each for each in threading.enumerate() if each.name == "chaos-proxy"]
