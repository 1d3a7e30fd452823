"""A proxy before an S3 server, which does to chosen requests what a bad network or a busy server does.

Each connection is served by a thread, so that one that is made to wait holds up no other.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from .s3 import S3Server

_BUSY = b"<Error><Code>InternalError</Code><Message>try again</Message></Error>"
_ABSENT = b"<Error><Code>NoSuchKey</Code><Message>not yet</Message></Error>"
_REFUSED = b"<Error><Code>SignatureDoesNotMatch</Code><Message>not with this key</Message></Error>"


class FaultyS3:
    """`fault(first line of the request)` is one of

    - "500", "404", "403": the answer, instead of the server's;
    - "cut": the request does not arrive;
    - "half": the server gets half of the request;
    - "lost": the server does what is asked, and its answer does not arrive;
    - "short": of the answer's body half arrives, then the connection ends;
    - "forged": half of the answer's body arrives, and its length says that this is all;
    - "slow": no answer until the proxy is closed;
    - None.
    """

    def __init__(self, server: S3Server) -> None:
        self.fault: Callable[[str], str | None] = lambda _: None
        self.done: list[tuple[str, str]] = []
        """The first line of each request that met a fault, and the fault."""
        self._server = server
        self._is_over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def always(self, fault: str, *words: str) -> None:
        """Each request whose first line has all these words."""
        self.fault = lambda line: fault if all(word in line for word in words) else None

    def times(self, number: int, fault: str, *words: str) -> None:
        """The first ones of those."""
        left = [fault] * number
        self.fault = lambda line: left.pop() if left and all(word in line for word in words) else None

    def close(self) -> None:
        self._is_over.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            served = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(served)
            served.start()

    def _serve(self, connection: socket.socket) -> None:
        """One request a connection; whoever asked may have gone."""
        try:
            with connection:
                connection.settimeout(60)
                self._answer(connection)
        except OSError:
            return

    def _answer(self, connection: socket.socket) -> None:
        request = _message(connection)
        if not request:
            return
        line = request.partition(b"\r\n")[0].decode()
        fault = self.fault(line)
        if fault is not None:
            self.done.append((line, fault))
        match fault:
            case "cut":
                return
            case "slow":
                self._is_over.wait()
            case "500":
                connection.sendall(_response(b"500 Internal Server Error", _BUSY))
            case "403":
                connection.sendall(_response(b"403 Forbidden", _REFUSED))
            case "404":
                connection.sendall(_response(b"404 Not Found", _ABSENT))
            case _:
                answer = self._asked(request, is_half=fault == "half")
                if fault not in ("lost", "half"):
                    connection.sendall(_spoilt(answer, fault))

    def _asked(self, request: bytes, *, is_half: bool) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        with socket.create_connection(("127.0.0.1", self._server.port)) as upstream:
            upstream.settimeout(60)
            kept = [each for each in head.split(b"\r\n") if not each.lower().startswith(b"connection:")]
            upstream.sendall(b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n")
            upstream.sendall(body[: len(body) // 2] if is_half else body)
            return b"" if is_half else b"".join(iter(lambda: upstream.recv(1 << 16), b""))


class Weather:
    """Faults of a bad network and a busy server, drawn from a seed for a `share` of the requests. The first one that
    reads a file of a checkpoint gets 404, as of a store that does not know yet what was written.
    """

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._draw = share, random.Random(seed)
        self._read: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, line: str) -> str | None:
        with self._lock:
            if line.startswith("GET") and "/chk-" in line and line not in self._read:
                self._read.add(line)
                return "404"
            if self._draw.random() >= self._share:
                return None
            return self._draw.choice(["500", "cut", "half", "lost", "short", "forged"])


@pytest.fixture
def faulty(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """What the environment names as S3, with few tries."""
    from s3fs import S3FileSystem

    proxy = FaultyS3(s3)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("UNDERSTUDY_STORAGE_TRIES", "3")
    monkeypatch.setattr(S3FileSystem, "retries", 2)  # its own, within each of ours; five take seconds
    S3FileSystem.clear_instance_cache()
    yield proxy
    proxy.close()


def _response(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Type: application/xml\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _spoilt(answer: bytes, fault: str | None) -> bytes:
    if fault is None:
        return answer
    head, _, body = answer.partition(b"\r\n\r\n")
    body = body[: len(body) // 2]
    if fault == "forged":
        own = (b"content-length", b"x-amz-checksum")
        kept = [each for each in head.split(b"\r\n") if not each.lower().startswith(own)]
        head = b"\r\n".join([*kept, b"Content-Length: %d" % len(body)])
    return head + b"\r\n\r\n" + body


def _message(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 16)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    if b"100-continue" in head.lower():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = b"\r\n".join(each for each in head.split(b"\r\n") if b"100-continue" not in each.lower())
    lengths = [
        int(each.partition(b":")[2]) for each in head.split(b"\r\n") if each.lower().startswith(b"content-length")
    ]
    while len(body) < sum(lengths):
        more = connection.recv(1 << 16)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body
