"""Connection: a socket to one broker for our own requests, with TLS and a login if wanted. One request at a time.

The login is RFC 4616 (PLAIN) or RFC 5802 and 7677 (SCRAM) without channel binding. Blocks; each step has a time limit.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct
from collections.abc import Callable

from . import wire
from .client_settings import ClientSettings, Login
from .errors import KafkaRefused


class Connection:
    """Raises OSError where the broker cannot be reached or hangs up, KafkaRefused where it refuses the login."""

    def __init__(self, host: str, port: int, settings: ClientSettings, timeout_s: float) -> None:
        self._where = f"{host}:{port}"
        self._correlation_id = 0
        context = settings.tls()
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                self._socket = context.wrap_socket(self._socket, server_hostname=host)
            if (login := settings.login()) is not None:
                self._log_in(login)
        except BaseException:
            self._socket.close()
            raise

    def ask(self, request: wire.Request) -> bytes:
        """The content of the response."""
        self._correlation_id += 1
        self._socket.sendall(request.frame(self._correlation_id))
        (size,) = struct.unpack(">i", self._receive(4))
        content = self._receive(size)
        if struct.unpack_from(">i", content)[0] != self._correlation_id:
            raise ConnectionError(f"{self._where} answers another request")
        return content[4:]

    def close(self) -> None:
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            if not piece:
                raise ConnectionError(f"{self._where} has closed the connection")
            found += piece
        return bytes(found)

    def _log_in(self, login: Login) -> None:
        error, known = wire.mechanisms(self.ask(wire.sasl_handshake(login.mechanism)))
        if error:
            raise KafkaRefused(f"{self._where}: no login by {login.mechanism}; the broker has {', '.join(known)}")
        if login.mechanism == "PLAIN":
            self._authenticate(login, f"\0{login.username}\0{login.password}".encode())
        else:
            _scram(login, lambda content: self._authenticate(login, content))

    def _authenticate(self, login: Login, content: bytes) -> bytes:
        error, text, answer = wire.authenticated(self.ask(wire.sasl_authenticate(content)))
        if error:
            raise KafkaRefused(f"{self._where}: login of {login.username!r} by {login.mechanism} refused: {text}")
        return answer


def _scram(login: Login, exchange: Callable[[bytes], bytes]) -> None:
    """RFC 5802, section 3."""
    digest = "sha256" if login.mechanism == "SCRAM-SHA-256" else "sha512"
    name = login.username.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={name},r={secrets.token_urlsafe(24)}"
    first = exchange(f"n,,{bare}".encode()).decode()
    parts = dict(part.split("=", 1) for part in first.split(","))
    salted = hashlib.pbkdf2_hmac(digest, login.password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    unproved = f"c=biws,r={parts['r']}"
    signed = f"{bare},{first},{unproved}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    last = exchange(f"{unproved},p={proof}".encode()).decode()
    server_key = hmac.digest(salted, b"Server Key", digest)
    wanted = base64.b64encode(hmac.digest(server_key, signed, digest)).decode()
    if not parts["r"].startswith(bare.split("r=", 1)[1]) or not last.startswith(f"v={wanted}"):
        raise KafkaRefused(f"the broker cannot prove that it knows the password of {login.username!r}")
