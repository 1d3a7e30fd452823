"""CURVE: only holders of the cluster's key pair are let in, and nothing of others is decoded.

One key pair serves a whole cluster, as the key of its servers and of its clients alike. ZeroMQ asks a ZAP responder
(RFC 27) about each client whose handshake is sound; ours lets in exactly the cluster's own public key.
"""

from __future__ import annotations

from typing import Protocol

import zmq
from zmq.utils import z85

ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_DOMAIN = b"understudy"


class CurveKeyPair(Protocol):
    """The cluster's keys, Z85-encoded as ZeroMQ takes them: 40 bytes each."""

    @property
    def public(self) -> bytes: ...

    @property
    def secret(self) -> bytes: ...


def serve_curve(socket: zmq.Socket[bytes], keys: CurveKeyPair) -> None:
    """Make a socket, before it binds, accept holders of the cluster's keys only; without a responder, nobody."""
    socket.curve_server = True
    socket.curve_publickey = keys.public
    socket.curve_secretkey = keys.secret
    socket.zap_domain = _DOMAIN
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


def join_curve(socket: zmq.Socket[bytes], keys: CurveKeyPair) -> None:
    """Make a socket, before it connects, speak to holders of the cluster's keys only."""
    socket.curve_serverkey = keys.public
    socket.curve_publickey = keys.public
    socket.curve_secretkey = keys.secret


class ZapResponder:
    """Answers ZeroMQ's questions about clients, for all sockets of one context."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keys: CurveKeyPair) -> None:
        self._wanted = z85.decode(keys.public)
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(ZAP_ENDPOINT)

    def answer(self) -> None:
        """One question, which has arrived: version, id, domain, address, identity, mechanism, and the client's key."""
        version, request_id, *_, mechanism, credential = self.socket.recv_multipart()
        known = mechanism == b"CURVE" and credential == self._wanted
        status, text = (b"200", b"OK") if known else (b"400", b"not a key of this cluster")
        self.socket.send_multipart((version, request_id, status, text, b"", b""))
