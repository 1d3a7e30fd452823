"""Which clock runs for a connection, and when none does: with a transport and a loop that the test holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from understudy.runtime.web.connections import Connections, Limits

HEAD, STALLED = 10.0, 30.0


@dataclass
class Clock:
    seconds: float
    over: Callable[[float], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """Keeps its clocks; the test says when one is over."""

    def __init__(self) -> None:
        self.clocks: list[Clock] = []

    def call_later(self, seconds: float, over: Callable[[float], None], _: float) -> Clock:
        self.clocks.append(Clock(seconds, over))
        return self.clocks[-1]

    @property
    def running(self) -> list[float]:
        return [each.seconds for each in self.clocks if not each.is_cancelled]


class Transport(asyncio.Transport):
    def __init__(self, port: int) -> None:
        super().__init__({"peername": ("127.0.0.1", port)})
        self.written = b""
        self.is_closed = self.is_aborted = False

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


async def app(*_: Any) -> None: ...


def server(most: int = 8) -> Connections:
    return Connections(app, lambda **_: asyncio.Protocol(), Limits(most, HEAD, STALLED))


def connected(connections: Connections, port: int = 1) -> tuple[Any, Transport]:
    made, transport = connections.make(), Transport(port)
    made.connection_made(transport)
    return made, transport


def test_the_clock_for_the_next_request_starts_when_all_are_answered(loop: Loop) -> None:
    connection, _ = connected(server())
    assert loop.running == [HEAD]
    with connection.at_work():
        with connection.at_work():
            assert loop.running == []
        assert loop.running == []
    assert loop.running == [HEAD]


def test_who_does_not_read_has_a_clock_also_while_the_next_request_is_at_work(loop: Loop) -> None:
    connection, _ = connected(server())
    connection.pause_writing()
    assert loop.running == [STALLED]
    with connection.at_work():
        assert loop.running == [STALLED]
        connection.resume_writing()
        assert loop.running == []
    assert loop.running == [HEAD]


def test_who_reads_again_and_asks_nothing_still_has_a_clock(loop: Loop) -> None:
    connection, _ = connected(server())
    connection.pause_writing()
    connection.resume_writing()
    assert len(loop.running) == 1


def test_one_that_is_refused_and_does_not_go_is_cut_off(loop: Loop) -> None:
    connections = server(most=1)
    first, _ = connected(connections, 1)
    with first.at_work():
        _, refused = connected(connections, 2)
        assert refused.written.startswith(b"HTTP/1.1 503 ")
        assert (refused.is_closed, refused.is_aborted) == (True, False)
        assert loop.running == [HEAD]
        loop.clocks[-1].over(HEAD)
        assert refused.is_aborted


def test_the_end_of_one_that_was_given_up_leaves_the_next_one_of_its_address(loop: Loop) -> None:
    connections = server()
    first, transport = connected(connections, 7)
    first.give_up()
    second, _ = connected(connections, 7)
    first.connection_lost(None)
    assert transport.is_aborted
    assert list(connections._open.values()) == [second]
