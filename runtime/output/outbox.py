"""RelayOutbox: the logs and prints of one TaskManager's process, until its actor sends them.

Bounded in every way, since nothing that logs or prints may block or fail for it: log records by a rate and prints by
what may wait; text beyond it is dropped, counted, and the count is reported.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from ...messages import JobId, LoggedRecord, LogRecords, PrintedText, TaskManagerId

RECORDS_PER_SECOND = 1_000
"""Of log records below WARNING, and again of those from WARNING on, so that a flood of the one drowns no other."""
TELL_DROPPED_SECONDS = 1.0
MAX_WAITING_TEXT = 8 * 1024 * 1024
"""The number of characters of prints that wait at most; further ones are dropped."""
MAX_SENT_TEXT = 1024 * 1024
"""The number of characters taken at once, of prints and of log records, if it is not for the last time."""


class RelayOutbox:
    """Filled by any thread. See actors/tasks/outbox.py for the contract."""

    def __init__(
        self,
        task_manager_id: TaskManagerId,
        job_id: JobId,
        job_name: str,
        pid: int,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._from = (task_manager_id, job_id)
        self._job = (job_name, pid)
        self._now = now
        self._lock = threading.RLock()
        """May be taken again: within it the collector may run an object's end, which logs or prints."""
        self._wake: Callable[[], None] | None = None
        self._is_awake = False
        """Whether whoever takes knows that there is something."""
        self._records: deque[LoggedRecord] = deque()
        self._texts: deque[tuple[str, str, int]] = deque()
        """Stream, text, and how many lines are missing before it."""
        self._waiting_text = 0
        self._missing_lines: dict[str, int] = {}
        self._rates = (_Rate(RECORDS_PER_SECOND, now()), _Rate(RECORDS_PER_SECOND, now()))
        self._dropped = 0
        self._told_dropped = now() - TELL_DROPPED_SECONDS

    def when_filled(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._wake = call
        self._filled()

    @property
    def is_empty(self) -> bool:
        with self._lock:
            return self._is_empty()

    # -- from any thread

    def admits(self, level: int) -> bool:
        """Whether one more record of this level may be sent now; ask before it is made. If not, it is counted."""
        with self._lock:
            admitted = self._rates[level >= logging.WARNING].take(self._now())
            self._dropped += not admitted
        if not admitted:
            self._filled()
        return admitted

    def put_record(self, record: LoggedRecord) -> None:
        with self._lock:
            self._records.append(record)
        self._filled()

    def put_text(self, stream: str, text: str) -> None:
        with self._lock:
            if self._waiting_text + len(text) > MAX_WAITING_TEXT:
                self._missing_lines[stream] = self._missing_lines.get(stream, 0) + (text.count("\n") or 1)
            else:
                self._waiting_text += len(text)
                self._texts.append((stream, text, self._missing_lines.pop(stream, 0)))
        self._filled()

    # -- for the TaskManager's actor

    def take(self, *, final: bool = False) -> list[LogRecords | PrintedText]:
        with self._lock:
            taken: list[LogRecords | PrintedText] = []
            left = MAX_SENT_TEXT
            while (self._texts or self._missing_lines) and (left > 0 or final):
                text = self._next_text()
                left -= len(text.text)
                taken.append(text)
            left = MAX_SENT_TEXT
            while self._is_due(final) and (left > 0 or final):
                records, size = self._next_records()
                left -= size
                taken.append(records)
            self._is_awake = not self._is_empty()
            return taken

    # -- inside, under the lock

    def _is_empty(self) -> bool:
        return not (self._records or self._texts or self._missing_lines or self._dropped)

    def _is_due(self, final: bool) -> bool:
        if self._records:
            return True
        return self._dropped > 0 and (final or self._now() - self._told_dropped >= TELL_DROPPED_SECONDS)

    def _next_text(self) -> PrintedText:
        """The longest run of one stream that fits into a message."""
        if not self._texts:
            stream, missing = self._missing_lines.popitem()
            return PrintedText(*self._from, stream, "", missing)
        stream, text, missing = self._texts.popleft()
        parts, size = [text], len(text)
        while self._texts and size < MAX_SENT_TEXT and self._texts[0][0] == stream and not self._texts[0][2]:
            parts.append(self._texts.popleft()[1])
            size += len(parts[-1])
        self._waiting_text -= size
        return PrintedText(*self._from, stream, "".join(parts), missing)

    def _next_records(self) -> tuple[LogRecords, int]:
        """Those that fit into a message, and how many were dropped, if that is to be reported."""
        records, size = [], 0
        while self._records and size < MAX_SENT_TEXT:
            record = self._records.popleft()
            size += len(record.text) + len(record.error) + len(record.stack) + 100
            records.append(record)
        dropped = 0
        if self._now() - self._told_dropped >= TELL_DROPPED_SECONDS or not records:
            dropped, self._dropped, self._told_dropped = self._dropped, 0, self._now()
        return LogRecords(*self._from, *self._job, tuple(records), dropped), size

    # -- and without it

    def _filled(self) -> None:
        with self._lock:
            wake = None if self._is_awake or self._is_empty() else self._wake
            self._is_awake = self._is_awake or wake is not None
        if wake is not None:
            wake()


class _Rate:
    """A bucket of tokens: `per_second` a second, and as many at once."""

    def __init__(self, per_second: int, now: float) -> None:
        self._per_second = per_second
        self._tokens = float(per_second)
        self._filled = now

    def take(self, now: float) -> bool:
        """Whether there is one."""
        self._tokens = min(float(self._per_second), self._tokens + (now - self._filled) * self._per_second)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
