"""JsonLines: log records as one JSON object per line, with the job, operator, subtask and attempt they come from.

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler])

What TaskManagers log arrives in the user's process with these attributes; records of other code have none of them. A
value that JSON does not know becomes its text: no record is lost for it.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

_OURS = {
    "job_name": "job",
    "task_manager": "task_manager",
    "operator": "operator",
    "subtask": "subtask",
    "attempt": "attempt",
}
"""Attributes of a record, and what they are called here."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Fields: `time` (ISO 8601, UTC), `level`, `logger`, `message`, `job`, `task_manager`, `operator`, `subtask`,
    `attempt`, `place`, `error`, and under `extra` what the caller has added.
    """

    def format(self, record: logging.LogRecord) -> str:
        said = vars(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        line |= {name: said[own] for own, name in _OURS.items() if said.get(own) not in (None, "", -1)}
        line["place"] = f"{record.pathname}:{record.lineno}"
        if record.exc_text or record.exc_info:
            line["error"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        extra = {name: value for name, value in said.items() if name not in _STANDARD and name not in _OURS}
        if extra:
            line["extra"] = extra
        return json.dumps(line, default=str)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001  (arguments of any kind)
        return f"{record.msg!s} (its arguments cannot be formatted: {type(error).__name__}: {error})"
