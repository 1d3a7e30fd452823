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

from ..output.log_record import OURS, added_to, message_of


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
        return json.dumps(line, default=str)
