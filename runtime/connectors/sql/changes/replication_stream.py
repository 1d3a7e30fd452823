"""ReplicationStream: START_REPLICATION on a connection of its own, over libpq's COPY BOTH, which psycopg's `pq` has.

It reads messages, answers keepalives, and reports to the server how far the job is. psycopg itself has no such mode.
The meaning of messages is not at home here.
"""

from __future__ import annotations

import hashlib
import select
import struct
import time
from typing import Any, NamedTuple

from .lsn import lsn_text
from .pgoutput import EPOCH_US

_DATA, _KEEPALIVE, _STATUS = struct.Struct("!QQq"), struct.Struct("!Qqb"), struct.Struct("!cQQQqb")
_STATUS_EVERY_S = 5.0


class Received(NamedTuple):
    """`data`: a message of the plug-in; None: only news of how far the server is. `lsn`: all before it was sent."""

    data: bytes | None
    lsn: int


class ReplicationStream:
    """For one thread; `confirm` may be called from any. Raises psycopg's errors."""

    def __init__(self, conninfo: str, application_name: str) -> None:
        import psycopg

        self.connection: psycopg.Connection[Any] = psycopg.connect(
            conninfo, autocommit=True, replication="database", application_name=application_name
        )
        self._pq = self.connection.pgconn
        self._confirmed = self._sent = self._received = 0
        self._is_streaming = False
        self._status_due = 0.0

    def ask(self, command: str) -> dict[str, str | None]:
        """The one row that a command of the replication protocol answers with."""
        cursor = self.connection.execute(command)  # type: ignore[call-overload, unused-ignore]
        names = [each.name for each in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=False))

    def start(self, slot: str, publication: str, lsn: int) -> None:
        """From here on only messages come."""
        import psycopg
        from psycopg.pq import ExecStatus

        options = f"proto_version '1', publication_names {_quoted(publication)}"
        command = f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(lsn)} ({options})'
        result = self._pq.exec_(command.encode())
        if result.status != ExecStatus.COPY_BOTH:
            raise psycopg.errors.error_from_result(result)
        self._is_streaming = True
        self._received = lsn

    def confirm(self, lsn: int) -> None:
        """The job will never need what stands before it. The server learns it with the next `receive` or `tend`."""
        self._confirmed = max(self._confirmed, lsn)

    def receive(self, wait_s: float) -> Received | None:
        """The next message; None: there was none for so long. Raises psycopg.Error when the stream ends."""
        import psycopg

        self.tend()
        while True:
            size, data = self._pq.get_copy_data(1)
            if size > 0:
                found = self._taken(bytes(data))
                if found is not None:
                    return found
            elif size == 0:
                readable, _, _ = select.select([self._pq.socket], [], [], wait_s)
                if not readable:
                    return None
                self._pq.consume_input()
            else:
                result = self._pq.get_result()
                if result is not None and result.error_message:
                    raise psycopg.errors.error_from_result(result)
                raise psycopg.OperationalError("the server has ended the replication stream")

    def tend(self) -> None:
        """Say how far the job is if that is news, or was not said for a while: the server gives up silent clients."""
        if self._is_streaming and (self._confirmed > self._sent or time.monotonic() > self._status_due):
            self._say_status()

    def close(self) -> None:
        self.connection.close()

    def _taken(self, data: bytes) -> Received | None:
        kind = data[:1]
        if kind == b"w":
            start, _, _ = _DATA.unpack_from(data, 1)
            self._received = max(self._received, start)
            return Received(data[1 + _DATA.size :], start)
        if kind == b"k":
            lsn, _, wants_reply = _KEEPALIVE.unpack_from(data, 1)
            self._received = max(self._received, lsn)
            if wants_reply:
                self._say_status()
            return Received(None, lsn)
        return None

    def _say_status(self) -> None:
        confirmed = self._confirmed
        now_us = int(time.time() * 1_000_000) - EPOCH_US
        written = max(self._received, confirmed)
        self._pq.put_copy_data(_STATUS.pack(b"r", written, confirmed, confirmed, now_us, 0))
        while self._pq.flush():
            select.select([self._pq.socket], [self._pq.socket], [])
            self._pq.consume_input()
        self._sent, self._status_due = confirmed, time.monotonic() + _STATUS_EVERY_S


def application_name(job_id: str, attempt: int) -> str:
    """By which an attempt knows the connections of those before it."""
    return f"{application_prefix(job_id)}{attempt}"


def application_prefix(job_id: str) -> str:
    return f"understudy {hashlib.sha256(job_id.encode()).hexdigest()[:16]} attempt "


def _quoted(name: str) -> str:
    """A publication's name in a list of them, inside of a string."""
    return "'" + ('"' + name.replace('"', '""') + '"').replace("'", "''") + "'"
