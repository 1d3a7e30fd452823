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
import math
from datetime import UTC, datetime
from typing import Any

from ..output.log_record import OURS, added_to, message_of

DEEPEST = 20
"""What lies deeper in a value that JSON does not know is shown as text."""


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
            "message": message_of(record),
        }
        line |= {name.removesuffix("_name"): said[name] for name in OURS if said.get(name) not in (None, "", -1)}
        line["place"] = f"{record.pathname}:{record.lineno}"
        if record.exc_text or record.exc_info:
            line["error"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        if extra := added_to(record):
            line["extra"] = extra
        try:
            return json.dumps(line, default=str, allow_nan=False)
        except Exception:  # noqa: BLE001  (values of any kind)
            return json.dumps(_plain(line))


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """The same of what JSON has: other values, and such keys, as their texts. `above`: ids of what it is in."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case dict() | list() | tuple() if id(value) not in above and len(above) < DEEPEST:
            inside = (*above, id(value))
            if isinstance(value, dict):
                return {_text(name): _plain(each, inside) for name, each in value.items()}
            return [_plain(each, inside) for each in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001  (whatever its class raises)
        return f"<{type(value).__name__}, whose text cannot be made: {type(error).__name__}>"
