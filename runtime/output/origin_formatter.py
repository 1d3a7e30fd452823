"""OriginFormatter: lines of a log in which operators of many jobs and subtasks come together, with whose each is."""

from __future__ import annotations

import logging
from copy import copy


class OriginFormatter(logging.Formatter):
    """`%(origin)s` in its format is ` [orders: total, subtask 1, attempt 0]` of what an operator of the job 'orders'
    has logged, ` [orders: tm-0-9f3a2c11]` of what its TaskManager has, and empty of all else.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        shown = copy(record)  # other handlers have the same record, and its user may have put an origin into it
        shown.origin = _origin(record)
        return super().formatMessage(shown)


def _origin(record: logging.LogRecord) -> str:
    if not (task_manager := getattr(record, "task_manager", "")):
        return ""
    where = task_manager
    if operator := getattr(record, "operator", ""):
        subtask, attempt = getattr(record, "subtask", -1), getattr(record, "attempt", -1)
        where = f"{operator}, subtask {subtask}, attempt {attempt}"
    return f" [{getattr(record, 'job_name', '')}: {where}]"
