"""ZapResponder: tells ZeroMQ which clients of the data plane's sockets belong to the cluster (RFC 27)."""

from __future__ import annotations

import zmq

from ..system.remote.curve import ZAP_ENDPOINT, CurveKeys, zap_reply


class ZapResponder:
    """Answers for all sockets of one context, on the poller's thread."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keys: CurveKeys) -> None:
        self._keys = keys
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(ZAP_ENDPOINT)

    def answer(self) -> None:
        """Answer one question, which has arrived."""
        self.socket.send_multipart(zap_reply(self.socket.recv_multipart(), self._keys))
