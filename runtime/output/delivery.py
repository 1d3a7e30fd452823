"""OutputDelivery: what TaskManagers have sent of their logs and prints, given to the user's `logging` and streams.

The user's handlers and streams may block, so a thread of their own serves them, and never an actor's. Messages that do
not fit behind them are dropped and counted.
"""

from __future__ import annotations

import logging
import queue
import threading
import traceback
from typing import Any

from ...messages import LoggedRecord, LogRecords, PrintedText
from .user_streams import UserStreams

log = logging.getLogger(__name__)

MAX_WAITING_TEXT = 64 * 1024 * 1024
"""The number of characters that wait at most."""
CLOSE_SECONDS = 1.0

_Output = LogRecords | PrintedText


class OutputDelivery:
    """A queue and its thread, from its making until `close`. Its methods may be called from any thread."""

    def __init__(self, streams: UserStreams | None = None) -> None:
        self._streams = streams or UserStreams()
        self._queue: queue.SimpleQueue[_Output | threading.Event | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_text = 0
        self._dropped = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="understudy-delivery", daemon=True)
        self._thread.start()

    def offer(self, message: _Output) -> None:
        """Hand it on soon, in the order of the calls. Never blocks."""
        size = _size(message)
        with self._lock:
            if self._waiting_text + size > MAX_WAITING_TEXT:
                self._dropped += _count(message)
                return
            self._waiting_text += size
        self._queue.put(message)

    def drain(self, timeout: float) -> bool:
        """Wait until all that has been offered by now is handed on; False when it is not after `timeout` seconds."""
        if self._is_closed or threading.current_thread() is self._thread:
            return True
        drained = threading.Event()
        self._queue.put(drained)
        return drained.wait(timeout)

    def close(self) -> None:
        """Hand on what is left, and end the thread; one that the user's handler holds is left to itself."""
        self._is_closed = True
        self._queue.put(None)
        self._thread.join(CLOSE_SECONDS)

    # -- on its thread

    def _run(self) -> None:
        while (message := self._queue.get()) is not None:
            if isinstance(message, threading.Event):
                message.set()
                continue
            try:
                self._hand_on(message)
            except Exception:  # noqa: BLE001  (the user's logging is broken: Python says so on standard error, too)
                traceback.print_exc()

    def _hand_on(self, message: _Output) -> None:
        with self._lock:
            self._waiting_text -= _size(message)
            dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("%d log records and lines of TaskManagers were dropped: they come faster than handled", dropped)
        if isinstance(message, LogRecords):
            _log(message)
        else:
            self._print(message)

    def _print(self, message: PrintedText) -> None:
        if message.dropped_lines:
            log.warning(
                "%d lines that %s printed were dropped: they came faster than they can be sent",
                message.dropped_lines,
                message.task_manager_id,
            )
        if message.text:
            self._streams.write("stderr" if message.stream == "stderr" else "stdout", message.text)


def _size(message: _Output) -> int:
    if isinstance(message, LogRecords):
        return sum(len(each.text) + len(each.error) + len(each.stack) + 100 for each in message.records)
    return len(message.text)


def _count(message: _Output) -> int:
    """Of records, or of lines."""
    return len(message.records) if isinstance(message, LogRecords) else message.text.count("\n") or 1


def _log(message: LogRecords) -> None:
    for each in message.records:
        logger = logging.getLogger(each.logger)
        if not logger.isEnabledFor(each.level):
            continue
        try:
            logger.handle(made_record(message, each))
        except Exception:  # a user's filter or handler that raises must not silence the others
            log.exception("a record of logger %r could not be handled", each.logger)
    if message.dropped:
        log.warning(
            "%d log records of %s were dropped: it logged more than it may send in a second",
            message.dropped,
            message.task_manager_id,
        )


def made_record(message: LogRecords, each: LoggedRecord) -> logging.LogRecord:
    """As its own process would have handled it, and where it comes from: its attributes `job_name`, `task_manager`,
    `operator`, `subtask` and `attempt`.
    """
    made: Any = logging.makeLogRecord({"name": each.logger, "levelno": each.level, "msg": each.text, "args": None})
    made.levelname = logging.getLevelName(each.level)
    made.created = each.created_s
    made.msecs = int((each.created_s - int(each.created_s)) * 1000) + 0.0
    made.relativeCreated = (each.created_s - logging._startTime) * 1000  # type: ignore[attr-defined]
    made.pathname, made.lineno, made.funcName = each.path, each.line, each.function
    made.filename = each.path.rpartition("/")[2]
    made.module = made.filename.rpartition(".")[0] or made.filename
    made.process, made.threadName, made.processName = message.pid, each.thread, message.task_manager_id
    made.exc_text, made.stack_info = each.error or None, each.stack or None
    made.job_name, made.task_manager = message.job_name, message.task_manager_id
    made.operator, made.subtask, made.attempt = each.operator, each.subtask_index, each.attempt_number
    for name, value in (each.extra or {}).items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made  # type: ignore[no-any-return]
