"""relayed_logs: what this process logs goes to the user's process, as the user's levels there would have it.

The handler formats what only this process can (arguments, tracebacks) and puts a typed record into the outbox. It never
blocks, never raises, and takes no record that is logged while it handles one.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

from ...actors.operators.operator import Operator
from ...messages import LoggedRecord, SubtaskIndex
from .log_levels import LogLevels
from .log_record import added_to, message_of
from .outbox import RelayOutbox
from .running_code import running_operator

MAX_TEXT = 64 * 1024
"""The number of characters sent of a record's message, of its traceback and of its stack."""
_MAX_EXTRA = 1024


@contextlib.contextmanager
def relayed_logs(outbox: RelayOutbox, levels: LogLevels) -> Iterator[None]:
    """As long as the context lasts."""
    handler = _RelayHandler(outbox)
    with levels.applied():
        logging.root.addHandler(handler)
        try:
            yield
        finally:
            logging.root.removeHandler(handler)


class _RelayHandler(logging.Handler):
    def __init__(self, outbox: RelayOutbox) -> None:
        super().__init__()
        self._outbox = outbox
        self._inside = threading.local()

    def createLock(self) -> None:
        """None: the outbox has its own, and user code that formats a record holds no other thread up."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """As logging's own, which from Python 3.13 on wants a lock."""
        admitted = bool(self.filter(record))
        if admitted:
            self.emit(record)
        return admitted

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(self._inside, "active", False):
            return
        self._inside.active = True
        try:
            if self._outbox.admits(record.levelno):
                self._outbox.put_record(_made(record))
        except Exception:  # noqa: BLE001  (a record that cannot be made must not fail who logs)
            self.handleError(record)
        finally:
            self._inside.active = False


def _made(record: logging.LogRecord) -> LoggedRecord:
    operator, subtask, attempt = _logged_by(record)
    return LoggedRecord(
        logger=record.name[:_MAX_EXTRA],
        level=record.levelno,
        created_s=record.created,
        text=message_of(record)[:MAX_TEXT],
        path=record.pathname,
        line=record.lineno,
        function=record.funcName or "",
        thread=record.threadName or "",
        error=_traceback(record)[-MAX_TEXT:],
        stack=(record.stack_info or "")[:MAX_TEXT],
        operator=operator,
        subtask_index=SubtaskIndex(subtask),
        attempt_number=attempt,
        extra={str(name)[:_MAX_EXTRA]: _plain(value) for name, value in added_to(record).items()} or None,
    )


def _traceback(record: logging.LogRecord) -> str:
    if record.exc_text:
        return record.exc_text
    return logging.Formatter().formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""


def _logged_by(record: logging.LogRecord) -> tuple[str, int, int]:
    """The operator, as the record itself says or as the stack does."""
    said = vars(record)
    if isinstance(said.get("operator"), str):
        return said["operator"], _int(said.get("subtask")), _int(said.get("attempt"))
    operator: Operator | None = running_operator(sys._getframe())
    if operator is None:
        return "", -1, -1
    context = operator.context
    return context.name, context.subtask_index, context.attempt_number


def _int(value: Any) -> int:
    return value if isinstance(value, int) else -1


def _plain(value: Any) -> Any:
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63):
        return value
    return str(value)[:_MAX_EXTRA]
