"""Connections: those of one server; never more than its process can spare, none held by a client that does nothing.

    made -> waiting for a request -> at work -> waiting for the next -> ... -> lost

Whoever waits has `head_seconds` to send a whole request's head, however its bytes come, and an answer that its client
does not read is given up after `stalled_seconds`. When there are as many connections as there may be, a new one takes
the place of one that waits, also for the rest of a body or until its answer is read. When the app is at work for all,
the new one is refused with 503.

uvicorn's protocol is wrapped as it is, and uvicorn calls the app through `Connections`: so it is known when the head
of a request is complete, and when the request is answered. How long a body may take is the app's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from ..system.descriptors import descriptors_of_process, spare_descriptors
from .http import Receive, Scope, Send

log = logging.getLogger(__name__)

_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
_MOST = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a server's connections."""

    most: int
    head_seconds: float = 10.0
    stalled_seconds: float = 30.0

    @classmethod
    def of_process(cls) -> Limits:
        """What this process can spare."""
        return cls(spare_descriptors(_MOST))

    @property
    def at_once(self) -> int:
        """Accepted in one turn of the event loop: more would be open before the first is counted."""
        return max(4, self.most // 8)


class Connections:
    """An ASGI callable around `app`, and the maker of protocols for the server that calls it. Of one event loop."""

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        protocol: Callable[..., asyncio.Protocol],
        limits: Limits,
    ) -> None:
        self._app = app
        self._protocol = protocol
        self.limits = limits
        self._open: dict[Any, _Connection] = {}
        """By the client's address and port, the oldest first."""
        self._has_warned = False

    def __len__(self) -> int:
        return len(self._open)

    def make(self, **of_uvicorn: Any) -> asyncio.Protocol:
        """The protocol of a new connection, as uvicorn asks for it."""
        return _Connection(self._protocol(**of_uvicorn), self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = self._open.get(scope.get("client"))
        if connection is None:
            await self._app(scope, receive, send)
            return
        with connection.at_work():
            await self._app(scope, connection.until_whole(receive), send)

    def enter(self, connection: _Connection) -> bool:
        """Whether there is room for it, or could be made."""
        if len(self._open) >= self.limits.most and not self._make_room():
            return False
        self._open[connection.client] = connection
        return True

    def leave(self, connection: _Connection) -> None:
        """It is lost, or given up; again, this does nothing."""
        if self._open.get(connection.client) is connection:
            del self._open[connection.client]

    def _make_room(self) -> bool:
        """One that waits goes, of the address that has most of them: first who never asked, the oldest first."""
        waiting = [each for each in self._open.values() if each.is_waiting]
        crowds = Counter(each.host for each in waiting)
        if not self._has_warned:
            self._has_warned = True
            self._warn(crowds)
        if not waiting:
            return False
        max(waiting, key=lambda each: (crowds[each.host], not each.was_answered)).give_up()
        return True

    def _warn(self, crowds: Counter[str]) -> None:
        if crowds:
            ((host, _),) = crowds.most_common(1)
            what = f"{crowds.total()} send or read nothing, most from {host}: new ones take the place of such"
        else:
            what = "all are at work: new ones are refused"
        log.warning(
            "the page has %d connections, as many as it may have (descriptors of this process: %s), and %s",
            len(self._open),
            descriptors_of_process() or "unlimited",
            what,
        )


class _Connection(asyncio.Protocol):
    """One of them, around uvicorn's protocol."""

    def __init__(self, inner: asyncio.Protocol, all_of_them: Connections) -> None:
        self._inner: asyncio.Protocol | None = inner
        self._all = all_of_them
        self._transport: asyncio.Transport
        self._requests = 0
        self._owes_body = False
        """The app waits for the rest of a request's body."""
        self._unsent = 0
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_lost = False
        self.client: Any = None
        self.was_answered = False

    @property
    def host(self) -> str:
        return str(self.client[0]) if self.client else ""

    @property
    def is_waiting(self) -> bool:
        """For its client: to ask, to send the rest of a body, or to read."""
        return not self._requests or self._owes_body or self._is_paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.client = tuple(peer[:2]) if peer else None
        if self._all.enter(self):
            assert self._inner is not None
            self._inner.connection_made(transport)
        else:
            self._inner = None
            transport.write(_REFUSAL)
            transport.close()
        self._expect(self._all.limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()
        self._is_paused = True
        self._expect(self._all.limits.stalled_seconds)

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()
        self._is_paused = False
        if self._requests:
            self._expect_nothing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._expect_nothing()
        self._all.leave(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While a request of it is answered."""
        self._requests += 1
        if self._is_paused:  # it has not read the answer before this one
            self._expect(self._all.limits.stalled_seconds)
        else:
            self._expect_nothing()
        try:
            yield
        finally:
            self._requests -= 1
            self.was_answered = True
            if not self._requests:
                self._expect(self._all.limits.head_seconds)

    def until_whole(self, receive: Receive) -> Receive:
        """`receive` of one request. Once its body is whole, whoever calls it waits for the end of the connection."""
        is_whole = False

        async def received() -> MutableMapping[str, Any]:
            nonlocal is_whole
            self._owes_body = not is_whole
            try:
                event = await receive()
            finally:
                self._owes_body = False
            is_whole = not event.get("more_body", False)
            return event

        return received

    def give_up(self) -> None:
        """Its descriptor is free again after the next turn of the event loop."""
        self._all.leave(self)
        self._transport.abort()

    def _expect(self, seconds: float) -> None:
        """The client is to do something within this time: to ask, or to read."""
        self._expect_nothing()
        if not self._is_lost:
            self._unsent = self._transport.get_write_buffer_size()
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look, seconds)

    def _expect_nothing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, seconds: float) -> None:
        """A client that still reads its answer, however slowly, may go on."""
        if self._transport.get_write_buffer_size() < self._unsent:
            self._expect(seconds)
        else:
            self.give_up()
