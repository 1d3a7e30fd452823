"""The requests of Kafka's protocol that end a transaction from outside of its producer, as bytes and back.

librdkafka can end the transactions of its own live producers alone. A sink that is restored has to end those of a
process that is gone, so these requests are written here: where is the coordinator, commit, fence, describe, and log in.
Versions are the oldest that a broker of 4.x takes, up to which the flexible encoding is not needed: https://kafka.apache.org/protocol.
With these versions of EndTxn (below 5) a broker does not change the epoch, as KIP-890 has it for newer clients.

Pure functions. Sockets are at home in `connection.py`, decisions in `coordinator.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SASL_HANDSHAKE, FIND_COORDINATOR, INIT_PRODUCER_ID, END_TXN = 17, 10, 22, 26
SASL_AUTHENTICATE, DESCRIBE_TRANSACTIONS = 36, 65

CLIENT_ID = "understudy"

NO_TIMEOUT_MS = 60_000
"""Of a producer that is made to fence, and writes nothing."""


@dataclass(frozen=True, slots=True)
class Request:
    """`body` is encoded already. `flexible`: its header has tagged fields, and so has that of the response."""

    api_key: int
    version: int
    body: bytes
    flexible: bool = False

    def frame(self, correlation_id: int) -> bytes:
        """With header and size, as it goes over the wire."""
        head = struct.pack(">hhi", self.api_key, self.version, correlation_id) + string(CLIENT_ID)
        content = head + (b"\0" if self.flexible else b"") + self.body
        return struct.pack(">i", len(content)) + content


class Reader:
    """Takes the fields of a response, in their order. Raises struct.error or IndexError if it is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> int:
        """One number, in network order."""
        (value,) = struct.unpack_from(">" + form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def raw(self, size: int) -> bytes:
        """The next bytes."""
        self._at += size
        return self._data[self._at - size : self._at]

    def string(self) -> str:
        """Null is the empty string."""
        return self.raw(max(self.take("h"), 0)).decode()

    def bytes(self) -> bytes:
        """Null is no bytes."""
        return self.raw(max(self.take("i"), 0))

    def size(self) -> int:
        """Of a compact array or string: a varint that is one more; null counts as empty."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return max(value - 1, 0)

    def compact_string(self) -> str:
        """Null is the empty string."""
        return self.raw(self.size()).decode()


def string(text: str) -> bytes:
    """A length of two bytes, and UTF-8."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _compact_string(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data) + 1) + data


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


# -- where is the coordinator of a transactional id


def find_coordinator(transactional_id: str) -> Request:
    return Request(FIND_COORDINATOR, 1, string(transactional_id) + b"\1")


def coordinator_of(response: bytes) -> tuple[int, str, str, int]:
    """The error's code, its text, host and port."""
    reader = Reader(response)
    reader.take("i")  # throttle time
    error, text = reader.take("h"), reader.string()
    reader.take("i")  # node
    return error, text, reader.string(), reader.take("i")


# -- commit or abort


def end_txn(transactional_id: str, producer_id: int, epoch: int, commit: bool) -> Request:
    return Request(END_TXN, 1, string(transactional_id) + struct.pack(">qhb", producer_id, epoch, commit))


def ended(response: bytes) -> int:
    """The error's code."""
    reader = Reader(response)
    reader.take("i")  # throttle time
    return reader.take("h")


# -- fence: whatever the id has open is aborted, and its producers so far can write no more


def init_producer_id(transactional_id: str) -> Request:
    return Request(INIT_PRODUCER_ID, 1, string(transactional_id) + struct.pack(">i", NO_TIMEOUT_MS))


def initialised(response: bytes) -> int:
    """The error's code."""
    return ended(response)


# -- what the coordinator knows


@dataclass(frozen=True, slots=True)
class TransactionState:
    """`state` is the broker's name of it: Empty, Ongoing, PrepareCommit, CompleteCommit, CompleteAbort, ..."""

    error: int
    state: str
    producer_id: int
    epoch: int


def describe_transactions(transactional_id: str) -> Request:
    return Request(DESCRIBE_TRANSACTIONS, 0, _varint(2) + _compact_string(transactional_id) + b"\0", flexible=True)


def described(response: bytes) -> TransactionState:
    reader = Reader(response)
    reader.raw(1)  # tags of the header
    reader.take("i")  # throttle time
    reader.size()  # one state
    error = reader.take("h")
    reader.compact_string()  # the id
    state = reader.compact_string()
    reader.take("i")  # its timeout
    reader.take("q")  # its start
    return TransactionState(error, state, reader.take("q"), reader.take("h"))


# -- log in


def sasl_handshake(mechanism: str) -> Request:
    return Request(SASL_HANDSHAKE, 1, string(mechanism))


def mechanisms(response: bytes) -> tuple[int, list[str]]:
    """The error's code, and the mechanisms that the broker has."""
    reader = Reader(response)
    return reader.take("h"), [reader.string() for _ in range(reader.take("i"))]


def sasl_authenticate(content: bytes) -> Request:
    return Request(SASL_AUTHENTICATE, 0, struct.pack(">i", len(content)) + content)


def authenticated(response: bytes) -> tuple[int, str, bytes]:
    """The error's code and text, and what the broker answers."""
    reader = Reader(response)
    return reader.take("h"), reader.string(), reader.bytes()
