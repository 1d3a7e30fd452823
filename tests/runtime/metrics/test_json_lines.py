"""JsonLines: one object per line, whatever is logged."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from understudy.messages import JobId, LoggedRecord, LogRecords, SubtaskIndex, TaskManagerId
from understudy.runtime.metrics.json_lines import JsonLines
from understudy.runtime.output.delivery import made_record


def line_of(record: logging.LogRecord) -> dict[str, Any]:
    text = JsonLines().format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_record_of_a_task_says_where_it_comes_from() -> None:
    logged = LoggedRecord(
        "shop", logging.WARNING, 1_700_000_000.25, "no price", "shop.py", 7, "process", operator="price",
        subtask_index=SubtaskIndex(1), attempt_number=2, extra={"sku": "A-1"}, error="Traceback …\nKeyError",
    )  # fmt: skip
    message = LogRecords(TaskManagerId("tm-0"), JobId("job-1"), "orders", 1, (logged,))
    assert line_of(made_record(message, logged)) == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "WARNING",
        "logger": "shop",
        "message": "no price",
        "job": "orders",
        "task_manager": "tm-0",
        "operator": "price",
        "subtask": 1,
        "attempt": 2,
        "place": "shop.py:7",
        "error": "Traceback …\nKeyError",
        "extra": {"sku": "A-1"},
    }


def test_a_record_of_other_code_has_no_place_in_a_job_and_odd_values_are_text() -> None:
    try:
        raise ValueError("bad")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "a.py", 1, "%s of %d", ("one",), sys.exc_info())
    record.what = {1, 2} and object
    line = line_of(record)
    assert {"job", "operator", "subtask"}.isdisjoint(line)
    assert "its arguments cannot be formatted" in line["message"]
    assert line["error"].endswith("ValueError: bad")
    assert line["extra"] == {"what": "<class 'object'>"}


class Silent:
    def __str__(self) -> str:
        raise OSError("gone")


def test_no_record_is_lost_for_what_was_added_to_it() -> None:
    """Keys that are no texts, numbers that JSON has not, what holds itself, and what has no text."""
    circle: list[Any] = [1]
    circle.append(circle)
    values = {
        "of": {("ann", 1): {2: "two"}, "all": (None, True)},
        "share": float("nan"),
        "circle": circle,
        "what": Silent(),
    }
    record = logging.LogRecord("x", logging.INFO, "a.py", 1, "counted", (), None)
    record.__dict__ |= values
    assert line_of(record)["extra"] == {
        "of": {"('ann', 1)": {"2": "two"}, "all": [None, True]},
        "share": "nan",
        "circle": [1, "[1, [...]]"],
        "what": "<Silent, whose text cannot be made: OSError>",
    }


def test_a_number_that_json_has_not_is_text() -> None:
    """Python's own reader takes NaN; most others refuse the line."""
    record = logging.LogRecord("x", logging.INFO, "a.py", 1, "counted", (), None)
    record.lag = float("inf")
    assert line_of(record)["extra"] == {"lag": "inf"}


def test_the_first_attempt_of_the_first_subtask_is_named_too() -> None:
    logged = LoggedRecord(
        "shop", logging.INFO, 0.0, "here", "shop.py", 7, "process", operator="price",
        subtask_index=SubtaskIndex(0), attempt_number=0,
    )  # fmt: skip
    line = line_of(made_record(LogRecords(TaskManagerId("tm-0"), JobId("job-1"), "orders", 1, (logged,)), logged))
    assert (line["subtask"], line["attempt"]) == (0, 0)
