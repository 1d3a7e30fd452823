"""The data plane's sockets: their options, and the monitor that tells when a connection is gone."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import zmq
from zmq.utils.monitor import parse_monitor_message

from ..system.remote.curve import CurveKeys
from ..system.remote.strangers import EVENTS
from .payloads import MAX_PAYLOAD_BYTES

Socket = zmq.Socket[bytes]

_ENVELOPE_BYTES = 1024
"""CURVE adds less than this to a frame."""

_MESSAGES_PER_TURN = 128
_NEVER_MS = 2**31 - 1


class WatchedSocket(NamedTuple):
    """A socket and its monitor, which reports every connection made or lost, from the first on."""

    socket: Socket
    monitor: Socket

    def close(self, linger_ms: int | None = None) -> None:
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(linger_ms)


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """How sockets are made. `heartbeat_timeout_ms`: a peer that is silent for so long is lost."""

    keys: CurveKeys | None
    heartbeat_timeout_ms: int
    linger_ms: int = 1_000
    """How long what was sent before the close may take to leave."""

    def listen(self, context: zmq.Context[Socket], endpoint: str) -> WatchedSocket:
        """A bound ROUTER, which says so when a peer it is to send to is gone."""
        watched = self._make(context, zmq.ROUTER, EVENTS)
        try:
            watched.socket.router_mandatory = True
            if self._is_open_to_others(endpoint):
                self._keys_for(endpoint).secure_server(watched.socket)
            watched.socket.bind(endpoint)
        except BaseException:
            watched.close(0)
            raise
        return watched

    def connect(self, context: zmq.Context[Socket], endpoint: str) -> WatchedSocket:
        """A DEALER for one connection; its owner closes it when that is lost.

        ZeroMQ must not reconnect, for frames may be lost between two connections, so it gets an interval that never
        passes. Switched off altogether, reconnecting takes what has arrived and was not read yet along with it.
        """
        watched = self._make(context, zmq.DEALER, zmq.EVENT_CLOSED | zmq.EVENT_DISCONNECTED)
        try:
            watched.socket.reconnect_ivl = _NEVER_MS
            watched.socket.connect_timeout = self.heartbeat_timeout_ms
            if self._is_open_to_others(endpoint):
                self._keys_for(endpoint).secure_client(watched.socket)
            watched.socket.connect(endpoint)
        except BaseException:
            watched.close(0)
            raise
        return watched

    def check(self, endpoint: str) -> None:
        """Raises ValueError for an endpoint that cannot be used with these options."""
        if self._is_open_to_others(endpoint):
            self._keys_for(endpoint)

    def _make(self, context: zmq.Context[Socket], kind: int, events: int) -> WatchedSocket:
        socket = context.socket(kind)
        socket.sndhwm = socket.rcvhwm = 0  # credit bounds what is under way; ZeroMQ would drop or block
        socket.maxmsgsize = MAX_PAYLOAD_BYTES + _ENVELOPE_BYTES
        socket.linger = self.linger_ms
        socket.handshake_ivl = self.heartbeat_timeout_ms
        socket.heartbeat_ivl = max(1, self.heartbeat_timeout_ms // 4)
        socket.heartbeat_timeout = self.heartbeat_timeout_ms
        return WatchedSocket(socket, socket.get_monitor_socket(events))

    def _keys_for(self, endpoint: str) -> CurveKeys:
        if self.keys is None:
            raise ValueError(f"{endpoint} needs the cluster's CURVE keys; only ipc:// goes without")
        return self.keys

    def _is_open_to_others(self, endpoint: str) -> bool:
        scheme, _, path = endpoint.partition("://")
        if scheme != "ipc":
            return True
        folder = Path(path).parent
        if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ValueError(f"{folder} is open to other users; an ipc:// endpoint needs a folder of mode 0700")
        return False


def events(monitor: Socket) -> Iterator[tuple[zmq.Event, int]]:
    """The events that have come so far, each with its value: mostly the descriptor of its connection."""
    for _ in range(_MESSAGES_PER_TURN):
        try:
            message = monitor.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        event = parse_monitor_message(message)
        yield zmq.Event(event["event"]), event["value"]


def messages(socket: Socket, limit: int = _MESSAGES_PER_TURN) -> Iterator[list[zmq.Frame]]:
    """The messages that have come so far, at most `limit`; the socket is readable still when there are more."""
    for _ in range(limit):
        try:
            yield socket.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return
