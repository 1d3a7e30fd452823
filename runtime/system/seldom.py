"""Seldom: a filter for warnings that strangers cause: a line for each of their requests would fill the log."""

from __future__ import annotations

import logging
import time

_ONCE_IN_S = 60.0


class Seldom(logging.Filter):
    """Lets a warning through once in a minute, and anything worse each time. By the text, before its values are put in:
    so there are few.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        text, now_s = str(record.msg), time.monotonic()
        if now_s < self._next_s.get(text, now_s):
            return False
        self._next_s[text] = now_s + _ONCE_IN_S
        record.msg = f"{text} (said once a minute, however many there are)"
        return True


def seldom_logger(name: str) -> logging.Logger:
    """A logger of this name, which no one else has: of what strangers do, it logs little."""
    made = logging.Logger(name, logging.INFO)
    made.parent = logging.getLogger(name)
    made.addFilter(Seldom())
    return made
