"""ZmqTransport: one ROUTER for all that comes in, one DEALER per peer for what goes out, on the system's asyncio loop.

Connections are one-way, so two systems that talk have two. A connection that breaks is not mended: its peer is lost,
and its watchers are notified; the next send makes a new one. A killed process is noticed by its closed socket, a
frozen or cut-off one by ZeroMQ's heartbeats.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import zmq
from zmq.utils.monitor import parse_monitor_message

from ....messages import MAX_MESSAGE_BYTES
from .aiozmq_names import ZmqProtocol, create_zmq_connection
from .curve import ZAP_ENDPOINT, CurveKeys, ZapHandler
from .strangers import EVENTS, Strangers
from .transport import Receiver

_REFUSED: dict[int, str] = {
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "it does not accept our key",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the handshake failed: is it of this cluster?",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "the handshake broke off: is it of this cluster, or has it just ended?",
}
_EVENTS = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | sum(_REFUSED)


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Limits of the control connections."""

    connect_timeout_ms: float = 3_000
    """A peer that cannot be connected to for so long is lost."""
    heartbeat_interval_ms: int = 500
    heartbeat_timeout_ms: int = 2_000
    """A peer that answers no heartbeat for so long is lost."""
    max_queued_frames: int = 10_000
    """Per peer, until it is connected."""
    max_queued_bytes: int = 64 * 1024 * 1024
    """Per peer, behind a connection that does not take them."""


class ZmqTransport:
    """Frames over ZeroMQ. Its context is made by `open`, so a process may fork before."""

    def __init__(
        self,
        bind: str,
        keys: CurveKeys | None,
        name: str,
        options: TransportOptions,
        new_id: Callable[[str], str],
        advertised_host: str | None = None,
    ) -> None:
        check_bind(bind, keys, advertised_host)
        self.keys = keys
        self.options = options
        self.name = name
        self.new_id = new_id
        self._bind = bind
        self._advertised_host = advertised_host
        self._address = ""
        self._receiver: Receiver
        self._is_open = False
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._servers: list[_Link] = []
        self._peers: dict[str, _Peer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return self._address

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._context = zmq.Context()
        try:
            await self._serve()
        except BaseException:
            await self._close_servers()
            self._context.destroy(linger=0)
            raise
        self._is_open = True

    async def _serve(self) -> None:
        if self.keys is not None:
            zap = self.socket(zmq.REP)
            zap.bind(ZAP_ENDPOINT)
            self._servers.append(await _link(zap, ZapHandler(self.keys)))
        router = self.socket(zmq.ROUTER)
        if self.keys is not None:
            self.keys.secure_server(router)
        router.handshake_ivl = int(2 * self.options.connect_timeout_ms)
        await self.watch(router, _Monitor(Strangers(self.name).on), EVENTS, self._servers)
        router.bind(self._bind)
        self._address = self._advertised(router.getsockopt_string(zmq.LAST_ENDPOINT))
        self._servers.append(await _link(router, _Incoming(self._receiver)))

    async def watch(self, socket: zmq.Socket[bytes], protocol: _Monitor, events: int, links: list[_Link]) -> None:
        """Have a socket's monitor tell the protocol of these events. Its link is added to `links`."""
        monitor = self.socket(zmq.PAIR)
        endpoint = f"inproc://monitor-{socket.FD}"
        monitor.connect(endpoint)
        links.append(await _link(monitor, protocol))
        socket.monitor(endpoint, events)

    def send(self, peer: str, frame: bytes) -> bool:
        if not self._is_open:
            return False
        known = self._peers.get(peer)
        if known is None:
            known = self._peers[peer] = _Peer(self, peer)
        return known.send(frame)

    async def close(self, flush_ms: float) -> None:
        if self._context is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(flush_ms / 1000):
                for peer in list(self._peers.values()):
                    await peer.drained.wait()
        self._is_open = False
        for peer in list(self._peers.values()):
            self._drop(peer, linger_ms=int(flush_ms) if peer.is_connected else 0)
        await asyncio.gather(*self._closing)
        await self._close_servers()
        context, self._context = self._context, None
        await asyncio.to_thread(context.term)  # returns when the last frame has left, or its linger time is over

    async def _close_servers(self) -> None:
        for server in self._servers:
            server.close(linger_ms=0)
        await asyncio.gather(*(server.closed for server in self._servers))

    def socket(self, kind: int) -> zmq.Socket[bytes]:
        """A socket with this transport's limits."""
        assert self._context is not None
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.ipv6 = "[" in self._bind
        if kind in (zmq.ROUTER, zmq.DEALER):
            socket.maxmsgsize = MAX_MESSAGE_BYTES
            socket.heartbeat_ivl = self.options.heartbeat_interval_ms
            socket.heartbeat_timeout = self.options.heartbeat_timeout_ms
            socket.heartbeat_ttl = self.options.heartbeat_timeout_ms
        return socket

    def lost(self, peer: _Peer, reason: str, *, is_refused: bool) -> None:
        """A peer's connection is over."""
        if self._peers.get(peer.address) is not peer:
            return
        unsent = peer.take_queue()
        self._drop(peer, linger_ms=0)
        self._receiver.on_peer_lost(peer.address, reason, unsent, is_refused=is_refused)

    def _drop(self, peer: _Peer, linger_ms: int) -> None:
        del self._peers[peer.address]
        task = asyncio.ensure_future(peer.close(linger_ms))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _advertised(self, endpoint: str) -> str:
        if self._advertised_host is None:
            return endpoint
        return f"tcp://{self._advertised_host}:{endpoint.rpartition(':')[2]}"


class _Incoming(ZmqProtocol):  # type: ignore[misc]
    """The ROUTER's end: frames of any number of peers, each with the name that the peer gave itself."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def msg_received(self, frames: Sequence[bytes]) -> None:
        peer = frames[0].decode("utf-8", "backslashreplace")
        self._receiver.on_frame(peer, frames[1] if len(frames) == 2 else b"")


class _Peer(ZmqProtocol):  # type: ignore[misc]
    """The DEALER to one peer: CONNECTING with a queue, then CONNECTED, then lost permanently."""

    def __init__(self, owner: ZmqTransport, address: str) -> None:
        self.address = address
        self.is_connected = False
        self.drained = asyncio.Event()
        self.drained.set()
        self._owner = owner
        self._queue: deque[bytes] = deque()
        self._links: list[_Link] = []
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(owner.options.connect_timeout_ms / 1000, self._lost, "it cannot be reached")
        self._connecting = loop.create_task(self._connect(), name=f"connect to {address}")

    def send(self, frame: bytes) -> bool:
        options = self._owner.options
        if not self.is_connected:
            if len(self._queue) >= options.max_queued_frames:
                return False
            self._queue.append(frame)
            self.drained.clear()
            return True
        transport = self._links[0].transport
        if transport.get_write_buffer_size() > options.max_queued_bytes:
            return False
        transport.write([frame])
        return True

    def take_queue(self) -> list[bytes]:
        """What has not left."""
        queue, self._queue = list(self._queue), deque()
        self.drained.set()
        return queue

    async def close(self, linger_ms: int) -> None:
        self._deadline.cancel()
        await asyncio.wait([self._connecting])
        for link in self._links:
            link.close(linger_ms)
        await asyncio.gather(*(link.closed for link in self._links))

    def on_event(self, event: int, _: int) -> None:
        """What the socket's monitor saw."""
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._deadline.cancel()
            self.is_connected = True
            for frame in self.take_queue():
                self.send(frame)
        elif event == zmq.EVENT_DISCONNECTED:
            self._lost("the connection broke")
        elif event in _REFUSED:
            self._lost(_REFUSED[event], is_refused=True)

    async def _connect(self) -> None:
        owner = self._owner
        try:
            dealer = owner.socket(zmq.DEALER)
            dealer.identity = owner.new_id(f"{owner.name}@{owner.address}"[:200]).encode()
            if owner.keys is not None:
                owner.keys.secure_client(dealer)
            self._links.append(await _link(dealer, self))
            await owner.watch(dealer, _Monitor(self.on_event), _EVENTS, self._links)
            dealer.connect(self.address)
        except (OSError, ValueError, zmq.ZMQError) as error:
            self._lost(f"it cannot be connected to: {error}")

    def _lost(self, reason: str, *, is_refused: bool = False) -> None:
        self._owner.lost(self, reason, is_refused=is_refused)


class _Monitor(ZmqProtocol):  # type: ignore[misc]
    """A socket's events, and their values. aiozmq's own monitor looks for them in ZeroMQ's global context."""

    def __init__(self, on_event: Callable[[int, int], None]) -> None:
        self._on_event = on_event

    def msg_received(self, frames: list[bytes]) -> None:
        message = parse_monitor_message(frames)
        self._on_event(message["event"], message["value"])


class _Link:
    """A socket on the loop, and when it is closed."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self.transport: Any = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def close(self, linger_ms: int) -> None:
        """Close it, once what aiozmq holds back has been handed to ZeroMQ; with no linger time, at once."""
        if self.socket.closed:
            return
        if self.socket.type in (zmq.DEALER, zmq.ROUTER):
            self.socket.disable_monitor()
        self.socket.linger = linger_ms
        if linger_ms:
            self.transport.close()
            asyncio.get_running_loop().call_later(linger_ms / 1000, self._abort)
        else:
            self.transport.abort()

    def _abort(self) -> None:
        if not self.closed.done():
            self.transport.abort()

    def has_closed(self, _: BaseException | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def _link(socket: zmq.Socket[bytes], protocol: Any) -> _Link:
    """Put a socket on the running loop; it is closed by its link, or here if that fails."""
    link = _Link(socket)
    protocol.connection_lost = link.has_closed
    try:
        link.transport, _ = await create_zmq_connection(lambda: protocol, socket.type, zmq_sock=socket)
    except BaseException:
        socket.close(linger=0)
        raise
    return link


def check_bind(bind: str, keys: CurveKeys | None, advertised_host: str | None) -> None:
    """Only the loopback interface may be bound to without keys, and all interfaces only under a name to be found by."""
    _check_form(bind, keys)
    host = urlsplit(bind).hostname or ""
    if host in ("*", "0.0.0.0", "::") and advertised_host is None:
        raise ValueError(f"{bind} is no address that others can connect to: say which with advertised_host")
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if keys is None and not is_loopback:
        raise ValueError(f"{bind} can be reached from other hosts: that takes CurveKeys")


def _check_form(bind: object, keys: object) -> None:
    """Whatever a user gave."""
    if not re.fullmatch(r"tcp://[^/]+:(\d+|\*)", str(bind)):
        raise ValueError(f"bind: wanted tcp://host:port, as in 'tcp://127.0.0.1:0' (0: any free port), found {bind!r}")
    if keys is not None and not isinstance(keys, CurveKeys):
        wanted = "CurveKeys, as of CurveKeys.load(path) or CurveKeys.generate()"
        raise TypeError(f"curve: wanted {wanted}, found a {type(keys).__name__}")
