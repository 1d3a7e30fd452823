"""Proxy: links between processes that can be cut, stalled and slowed. TCP on the loopback interface, in user space.

A link listens on a port of its own and carries each connection to its target and back. What happens to a link happens
to all its connections at once. All links live on one thread with an event loop; every method may be called from any
other thread and has taken effect when it returns. Bytes are never changed, lost or put out of order within a
connection: TCP does not do that either.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")

_CHUNK_BYTES = 16 * 1024
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_CALL_SECONDS = 10.0


class Proxy:
    """All links of one cluster. Use it as a context manager, or `start` and `close` it."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos-proxy", daemon=True)
        self._links: list[Link] = []

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Reset every connection, close every port and end the thread. Idempotent."""
        if not self._thread.is_alive():
            return
        for link in list(self._links):
            self.remove(link)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def link(self, target: str) -> Link:
        """A new link to `target`, as in `tcp://127.0.0.1:4711`, which may be there already or come later."""
        link = Link(self, target)
        self.run(link._open(self._host))
        self._links.append(link)
        return link

    def remove(self, link: Link) -> None:
        """Reset its connections and close its port."""
        self._links.remove(link)
        self.run(link._close())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run on the proxy's thread, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_CALL_SECONDS)


class Link:
    """One way to one target. Made by a Proxy."""

    def __init__(self, proxy: Proxy, target: str) -> None:
        self.target = target
        self.address = ""
        """Where it listens, as in `tcp://127.0.0.1:4712`."""
        self._proxy = proxy
        self._server: asyncio.Server | None = None
        self._carried: set[asyncio.Task[None]] = set()
        self._refuses = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._delay_s = 0.0
        self._bytes_per_second: float | None = None

    # -- from any other thread

    def cut(self) -> int:
        """Reset all connections, as when a machine or a router on the way restarts; says how many there were."""
        return self._proxy.run(self._cut())

    def refuse(self, refuses: bool = True) -> None:
        """Reset each new connection at once, or no longer."""
        self._set(lambda: setattr(self, "_refuses", refuses))

    def stall(self) -> None:
        """Forward nothing, and close nothing: peers see connections that stay open and silent, new ones too."""
        self._set(self._flowing.clear)

    def flow(self) -> None:
        """End a stall; bytes held back are delivered."""
        self._set(self._flowing.set)

    def slow(self, delay_ms: float = 0.0, bytes_per_second: float | None = None) -> None:
        """Hold each piece of up to 16 KiB back for `delay_ms` and as long as it takes at this rate."""

        def set_pace() -> None:
            self._delay_s, self._bytes_per_second = delay_ms / 1000, bytes_per_second

        self._set(set_pace)

    def heal(self) -> None:
        """Whole and fast again."""
        self.slow()
        self.refuse(False)
        self.flow()

    def _set(self, change: Callable[[], Any]) -> None:
        async def apply() -> None:
            change()

        self._proxy.run(apply())

    # -- on the proxy's thread

    async def _open(self, host: str) -> None:
        self._server = await asyncio.start_server(self._accepted, host, 0, limit=_CHUNK_BYTES)
        name, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"tcp://{name}:{port}"

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._cut()

    async def _cut(self) -> int:
        carried = list(self._carried)
        for task in carried:
            task.cancel()
        await asyncio.gather(*carried, return_exceptions=True)
        return len(carried)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._carried.add(task)
        task.add_done_callback(self._carried.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from here to the target and back, until either side closes it or it is cut."""
        writers = [writer]
        try:
            await self._flowing.wait()
            if self._refuses:
                raise ConnectionResetError
            host, _, port = self.target.removeprefix("tcp://").rpartition(":")
            far_reader, far_writer = await asyncio.open_connection(host, int(port), limit=_CHUNK_BYTES)
            writers.append(far_writer)
            await self._both_ways((reader, far_writer), (far_reader, writer))
        except (asyncio.CancelledError, OSError):
            for each in writers:
                _reset(each)
        finally:
            for each in writers:
                each.close()

    async def _both_ways(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        pumps = [asyncio.ensure_future(self._pump(*way)) for way in ways]
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in done:
                pump.result()
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes one way until their sender is done."""
        while data := await reader.read(_CHUNK_BYTES):
            await self._flowing.wait()
            await self._hold_back(len(data))
            writer.write(data)
            await writer.drain()

    async def _hold_back(self, size_bytes: int) -> None:
        seconds = self._delay_s
        if self._bytes_per_second is not None:
            seconds += size_bytes / self._bytes_per_second
        if seconds:
            await asyncio.sleep(seconds)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a TCP reset, which drops what is under way."""
    with contextlib.suppress(OSError):
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
