"""What a log record says, whatever its caller has put into it."""

from __future__ import annotations

import logging
from typing import Any

from ...messages.attributes import attributes_of

_STANDARD = frozenset(attributes_of(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
OURS = ("job_name", "task_manager", "operator", "subtask", "attempt")
"""Attributes of what TaskManagers log: where it comes from."""


def message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001  (arguments of any kind)
        return f"{record.msg!s} (its arguments cannot be formatted: {type(error).__name__}: {error})"


def added_to(record: logging.LogRecord) -> dict[str, Any]:
    """The attributes that its caller has added."""
    return {name: value for name, value in attributes_of(record).items() if name not in _STANDARD and name not in OURS}
