"""Frames of a connection under CURVE that somebody between its ends sends again, changes or puts out of order.

RFC 26/CurveZMQ: a message's nonce is above that of the one before it, and the keys are those of one connection.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest
import zmq

from understudy.runtime.system import CurveKeys
from understudy.runtime.system.remote.curve import ZAP_ENDPOINT, zap_reply

GREETING_BYTES = 64
MANY_MESSAGES = 40
FIRST_MS, QUIET_MS = 20_000, 700
"""Nothing more comes then. A message that came later would be let through here, but not one that came in its place."""


@pytest.fixture
def keys() -> CurveKeys:
    return CurveKeys.generate()


@pytest.fixture
def context(keys: CurveKeys) -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """It lets in who has the key, as each process of a cluster does."""
    with zmq.Context() as made:
        zap, over, listens = made.socket(zmq.REP), threading.Event(), threading.Event()

        def answer() -> None:
            with zap:
                zap.bind(ZAP_ENDPOINT)
                listens.set()
                while not over.is_set():
                    if zap.poll(50):
                        zap.send_multipart(zap_reply(zap.recv_multipart(), keys))

        thread = threading.Thread(target=answer)
        thread.start()
        listens.wait()
        yield made
        over.set()
        thread.join()


@pytest.fixture
def server(context: zmq.Context[zmq.Socket[bytes]], keys: CurveKeys) -> Iterator[zmq.Socket[bytes]]:
    with context.socket(zmq.ROUTER) as made:
        keys.secure_server(made)
        made.bind("tcp://127.0.0.1:0")
        made.linger = 0
        yield made


class Attacker:
    """Carries one connection after the other to the server; `change` is given the messages of the client."""

    def __init__(self, target: int, change: Callable[[list[bytes]], list[bytes]]) -> None:
        self._target, self._change = target, change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.recorded = b""
        """All that the first client has sent."""
        self._is_first = True
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                threading.Thread(target=_copied, args=(server, client), daemon=True).start()
                self._carry(client, server)

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, EOFError), client, server, client.makefile("rb") as stream:
            for _ in range(GREETING_BYTES):  # each end waits for the other one's in between
                self._send(server, _exactly(stream.read, 1))
            messages: list[bytes] = []
            while True:
                frame = _frame(stream.read)
                if not _is_message(frame):
                    self._send(server, frame)
                    continue
                messages.append(frame)
                if len(messages) == MANY_MESSAGES:
                    for each in self._change(messages) if self._is_first else messages:
                        self._send(server, each)
                    self._is_first = False

    def _send(self, server: socket.socket, data: bytes) -> None:
        if self._is_first:
            self.recorded += data
        server.sendall(data)


def _copied(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    data = read(size)
    if len(data) < size:
        raise EOFError
    return data


def _frame(read: Callable[[int], bytes]) -> bytes:
    """RFC 23/ZMTP: flags, a length of one byte or eight, and the body."""
    flags = _exactly(read, 1)
    length = _exactly(read, 8 if flags[0] & 2 else 1)
    return flags + length + _exactly(read, int.from_bytes(length, "big"))


def _is_message(frame: bytes) -> bool:
    return frame[9 if frame[0] & 2 else 2 :].startswith(b"\x07MESSAGE")


def _received(server: zmq.Socket[bytes], *, waits: bool = True) -> list[int]:
    got: list[int] = []
    while server.poll(FIRST_MS if waits and not got else QUIET_MS):
        got.append(int(server.recv_multipart()[-1]))
    return got


def _sent_through(
    server: zmq.Socket[bytes],
    context: zmq.Context[zmq.Socket[bytes]],
    keys: CurveKeys,
    change: Callable[[list[bytes]], list[bytes]],
) -> tuple[Attacker, list[int]]:
    """The attacker, and the numbers that the server has got of a client that sends 0, 1, 2, ..."""
    target = int(server.last_endpoint.rpartition(b":")[2])
    with closing(Attacker(target, change)) as attacker, context.socket(zmq.DEALER) as client:
        keys.secure_client(client)
        client.linger = 0
        client.reconnect_ivl = -1
        client.connect(f"tcp://127.0.0.1:{attacker.port}")
        for number in range(MANY_MESSAGES):
            client.send(b"%d" % number)
        return attacker, _received(server)


def _changed_bit(frame: bytes) -> bytes:
    return frame[:-1] + bytes([frame[-1] ^ 1])


def test_what_is_carried_as_it_is_comes(
    server: zmq.Socket[bytes], context: zmq.Context[zmq.Socket[bytes]], keys: CurveKeys
) -> None:
    assert _sent_through(server, context, keys, lambda frames: frames)[1] == [*range(MANY_MESSAGES)]


@pytest.mark.parametrize(
    ("change", "comes"),
    [
        (lambda frames: [*frames[:5], frames[4], *frames[5:]], 5),
        (lambda frames: [*frames[:5], frames[0], *frames[5:]], 5),
        (lambda frames: [*frames[:5], frames[6], frames[5], *frames[7:]], -1),
        (lambda frames: [*frames[:5], _changed_bit(frames[5]), *frames[6:]], 5),
    ],
    ids=["the last one again", "the first one again", "out of order", "a bit changed"],
)
def test_a_frame_that_is_sent_again_or_changed_ends_the_connection(
    change: Callable[[list[bytes]], list[bytes]],
    comes: int,
    server: zmq.Socket[bytes],
    context: zmq.Context[zmq.Socket[bytes]],
    keys: CurveKeys,
) -> None:
    """Out of order, the later one comes, and the earlier one ends it: to the receiver a frame is missing, which the
    channels of records notice by their own numbers.
    """
    got = _sent_through(server, context, keys, change)[1]
    assert got == ([*range(comes)] if comes >= 0 else [*range(5), 6])


def test_a_whole_connection_that_was_recorded_is_nothing_to_another_one(
    server: zmq.Socket[bytes], context: zmq.Context[zmq.Socket[bytes]], keys: CurveKeys
) -> None:
    """The server's keys of a connection are new, and its cookie is good for that one alone."""
    attacker, got = _sent_through(server, context, keys, lambda frames: frames)
    assert len(got) == MANY_MESSAGES
    with socket.create_connection(("127.0.0.1", int(server.last_endpoint.rpartition(b":")[2]))) as again:
        with suppress(OSError):
            again.sendall(attacker.recorded)
        assert _received(server, waits=False) == []
