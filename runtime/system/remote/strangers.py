"""Strangers: the TCP connections to a ROUTER whose peers have not shown that they know the cluster's key.

ZeroMQ accepts any number of connections, and keeps each until its handshake's time is over. Here they are counted, by
what the socket's monitor says. When there are too many, the oldest stranger is shut down, which ZeroMQ sees as its
client's end. The monitor says that a handshake has succeeded, but not whose. So the kernel is asked how much was sent
to a peer: a greeting, or more, which ZeroMQ sends to those alone whose first box the cluster's key opens
(RFC 26/CURVEZMQ).
"""

from __future__ import annotations

import logging
import socket
import struct
from typing import Any

import zmq

from ..descriptors import descriptors_of_process, spare_descriptors

logger = logging.getLogger(__name__)

EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED

_MOST = 4_096
_GREETING_BYTES = 64
_BYTES_ACKED = 120
"""Where Linux says in its tcp_info how many bytes the peer has taken (include/uapi/linux/tcp.h)."""


class Strangers:
    """Those of one ROUTER. `name`: of the socket, for the log."""

    def __init__(self, name: str, most: int | None = None) -> None:
        self._name = name
        self._most = spare_descriptors(_MOST) if most is None else most
        self._accepted: dict[int, Any] = {}
        """The peer's address by descriptor, the oldest first; of those that were not found to be members yet."""
        self._has_warned = False

    def __len__(self) -> int:
        return len(self._accepted)

    def on(self, event: int, descriptor: int) -> None:
        """An event of EVENTS. They come in order, but late: a descriptor may be another connection's by now."""
        if event == zmq.EVENT_DISCONNECTED:
            self._accepted.pop(descriptor, None)
        elif event == zmq.EVENT_ACCEPTED:
            self._accepted.pop(descriptor, None)
            if (peer := _look_at(descriptor)) is not None:
                self._accepted[descriptor] = peer
            while len(self._accepted) > self._most:
                self._warn()
                oldest = next(iter(self._accepted))
                _look_at(oldest, shut_down=self._accepted.pop(oldest))

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s has %d connections (descriptors of this process: %s): the oldest that have not shown the "
                "cluster's key are closed for new ones",
                self._name,
                len(self._accepted),
                descriptors_of_process() or "unlimited",
            )


def _look_at(descriptor: int, *, shut_down: Any = None) -> Any:
    """The address of the peer; None for what is no TCP connection. It is shut down if it is this, and a stranger's."""
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError:  # it is closed already
        return None
    try:
        if connection.family not in (socket.AF_INET, socket.AF_INET6):
            return None
        peer = connection.getpeername()
        if peer == shut_down and _is_stranger(connection):
            connection.shutdown(socket.SHUT_RDWR)
        return peer
    except OSError:  # its client has gone
        return None
    finally:
        connection.detach()  # ZeroMQ's, as before


def _is_stranger(connection: socket.socket) -> bool:
    """Where the kernel does not say, nobody is."""
    option = getattr(socket, "TCP_INFO", None)
    info = connection.getsockopt(socket.IPPROTO_TCP, option, 256) if option is not None else b""
    if len(info) < _BYTES_ACKED + 8:
        return False
    (taken,) = struct.unpack_from("=Q", info, _BYTES_ACKED)
    return bool(taken <= _GREETING_BYTES)
