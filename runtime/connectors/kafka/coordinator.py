"""TransactionCoordinator: ends, fences and describes transactions of producers that are gone, by Kafka's protocol.

Each call finds the broker that coordinates the transactional id, and tries again where the broker says that it may, or
cannot be reached, until its time is over. Blocks. It knows nothing of sinks: what an error means for the output is
decided in `recovery.py`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from . import wire
from .client_settings import ClientSettings
from .connection import Connection
from .errors import KafkaRefused, KafkaUnavailable

T = TypeVar("T")

_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0
_STEP_S = 10.0
"""How long one request may take."""


class ErrorCode(IntEnum):
    """Those of Kafka's error codes that mean something here."""

    NONE = 0
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    PRODUCER_FENCED = 90
    TRANSACTIONAL_ID_NOT_FOUND = 105


_TRY_AGAIN = frozenset({-1, 6, 7, 13, 14, 15, 16, 19, 20, 51, 56})
"""Unknown error of the server, not the leader, timed out, network, coordinator loading, gone or another, too few
replicas, a transaction that is just being ended, storage.
"""
_NOT_ALLOWED = {
    31: "the cluster",
    53: "the transactional id: the user needs Describe and Write of it",
    58: "a login",
    35: "a version of the protocol: brokers from 2.1 on are supported, and from 3.0 on for exactly-once",
}


class TransactionCoordinator:
    """`timeout_ms`: how long one call may try. Not for several threads at once."""

    def __init__(self, settings: ClientSettings, timeout_ms: int) -> None:
        self._settings, self._timeout_s = settings, timeout_ms / 1000
        self._connections: dict[str, Connection] = {}
        """To the coordinator of each id that was asked about."""

    def end(self, transactional_id: str, producer_id: int, epoch: int, commit: bool) -> int:
        """Commit or abort; the error's code. Done again it does nothing, until the id has another transaction."""
        request = wire.end_txn(transactional_id, producer_id, epoch, commit)
        return self._ask(transactional_id, request, wire.ended, lambda error: error)

    def fence(self, transactional_id: str) -> None:
        """Abort what the id has open, and end the right of its producers so far to write."""
        self._ask(transactional_id, wire.init_producer_id(transactional_id), wire.initialised, lambda error: error)

    def describe(self, transactional_id: str) -> wire.TransactionState | None:
        """None: the broker does not know the id."""
        request = wire.describe_transactions(transactional_id)
        found = self._ask(transactional_id, request, wire.described, lambda state: state.error)
        return found if found.error == ErrorCode.NONE else None

    def close(self) -> None:
        """Close the connections; others are made when it is used again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _ask(
        self, transactional_id: str, request: wire.Request, read: Callable[[bytes], T], error_of: Callable[[T], int]
    ) -> T:
        deadline, pause_s = time.monotonic() + self._timeout_s, _PAUSE_S
        problem = ""
        while True:
            try:
                answer = read(self._connection(transactional_id).ask(request))
            except (OSError, struct.error, IndexError) as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                code = error_of(answer)
                _check_allowed(transactional_id, code)
                if code not in _TRY_AGAIN:
                    return answer
                problem = f"the broker answers with error {code}"
            self._forget(transactional_id)
            if time.monotonic() + pause_s > deadline:
                raise KafkaUnavailable(
                    f"transactional id {transactional_id!r}: no answer within {self._timeout_s:.0f} s by "
                    f"{self._settings.bootstrap_servers}: {problem}"
                )
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _connection(self, transactional_id: str) -> Connection:
        if transactional_id not in self._connections:
            self._connections[transactional_id] = self._connect(*self._address(transactional_id))
        return self._connections[transactional_id]

    def _forget(self, transactional_id: str) -> None:
        if (connection := self._connections.pop(transactional_id, None)) is not None:
            connection.close()

    def _address(self, transactional_id: str) -> tuple[str, int]:
        """Of the coordinator. Raises OSError if no broker of those that are given says it."""
        problem: Exception | None = None
        for server in self._settings.bootstrap_servers.split(","):
            host, _, port = server.strip().rpartition(":")
            try:
                connection = self._connect(host.strip("[]"), int(port))
            except OSError as error:
                problem = error
                continue
            try:
                code, text, host, found = wire.coordinator_of(connection.ask(wire.find_coordinator(transactional_id)))
            finally:
                connection.close()
            _check_allowed(transactional_id, code)
            if code:
                raise ConnectionError(f"no coordinator: {text or code}")
            return host, found
        raise problem or ConnectionError("no server")

    def _connect(self, host: str, port: int) -> Connection:
        return Connection(host, port, self._settings, min(_STEP_S, self._timeout_s))


def _check_allowed(transactional_id: str, code: int) -> None:
    if code in _NOT_ALLOWED:
        raise KafkaRefused(f"transactional id {transactional_id!r}: the broker refuses {_NOT_ALLOWED[code]}")
