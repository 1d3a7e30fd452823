"""CURVE: one key pair per cluster. Who holds it is in; everybody else gets nothing, and nothing of theirs is decoded.

All members share the pair, as servers and as clients. The server's side proves itself by it in the handshake, and the
client's key is checked by the ZAP handler of each ZeroMQ context (RFC 27/ZAP), which lets in exactly that key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

from ..errors import InsecureKeyFile
from .aiozmq_names import ZmqProtocol, ZmqTransport

ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_DOMAIN = b"understudy"


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """A cluster's key pair, Z85 text as ZeroMQ wants it."""

    public: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> CurveKeys:
        """A new random pair."""
        return cls(*zmq.curve_keypair())

    @property
    def key_id(self) -> str:
        """The same for all that have this pair, and none of its secret: two clusters differ in it."""
        return hashlib.sha256(b"understudy: key of a cluster" + self.public).hexdigest()[:16]

    @classmethod
    def load(cls, path: str | Path) -> CurveKeys:
        """Read a file that `save` wrote. Raises InsecureKeyFile when others can read it, or it holds no keys."""
        if not (stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISDIR(mode)):  # opening it may wait for ever
            raise InsecureKeyFile(f"{path} is no plain file, and holds no key pair: name the key file of the cluster")
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
                raise InsecureKeyFile(
                    f"{path} has mode {stat.S_IMODE(status.st_mode):04o} and owner {status.st_uid}; "
                    f"wanted 0600 and {os.geteuid()}: chmod 600 {path}, or copy it as the user who runs this"
                )
            lines = file.read().split()
        if len(lines) != 2 or any(len(line) != 40 for line in lines):
            raise InsecureKeyFile(
                f"{path} holds no key pair: wanted two lines of 40 characters, as `understudy key FILE` writes them"
            )
        try:
            is_pair = zmq.curve_public(lines[1]) == lines[0]
        except (ValueError, zmq.ZMQError):
            is_pair = False
        if not is_pair:
            raise InsecureKeyFile(
                f"{path} holds no key pair: its lines do not belong together; copy the file as it was"
            )
        return cls(*lines)

    def save(self, path: str | Path) -> None:
        """Write a new file that only its owner can read; FileExistsError when there is one."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self.public + b"\n" + self.secret + b"\n")

    def secure_server(self, socket: zmq.Socket[bytes]) -> None:
        """Before `bind`. The socket's context needs a ZAP handler: without one, it lets nobody in."""
        socket.curve_server = True
        socket.curve_secretkey = self.secret
        socket.zap_domain = _DOMAIN
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)

    def secure_client(self, socket: zmq.Socket[bytes]) -> None:
        """Before `connect`."""
        socket.curve_serverkey = self.public
        socket.curve_publickey = self.public
        socket.curve_secretkey = self.secret


def zap_reply(request: Sequence[bytes], keys: CurveKeys) -> list[bytes]:
    """The answer to one ZAP request: 200 for a CURVE client that holds the cluster's key, else 400."""
    if len(request) < 6:
        return [b"1.0", b"", b"500", b"malformed request", b"", b""]
    version, request_id, domain, _address, _identity, mechanism, *credentials = request
    welcome = (
        version == b"1.0"
        and domain == _DOMAIN
        and mechanism == b"CURVE"
        and len(credentials) == 1
        and hmac.compare_digest(credentials[0], z85.decode(keys.public))
    )
    status = (b"200", b"welcome") if welcome else (b"400", b"not of this cluster")
    return [b"1.0", request_id, *status, b"", b""]


class ZapHandler(ZmqProtocol):  # type: ignore[misc]
    """Answers a context's ZAP requests on the event loop."""

    def __init__(self, keys: CurveKeys) -> None:
        self._keys = keys
        self._transport: ZmqTransport | None = None

    def connection_made(self, transport: ZmqTransport) -> None:
        self._transport = transport

    def msg_received(self, request: Sequence[bytes]) -> None:
        assert self._transport is not None
        self._transport.write(zap_reply(request, self._keys))
