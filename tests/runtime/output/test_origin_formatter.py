"""OriginFormatter says whose line it is."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from understudy.runtime.output.origin_formatter import OriginFormatter

TASK_MANAGER = {"job_name": "orders", "task_manager": "tm-0-9f3a2c11"}


@pytest.mark.parametrize(
    ("added", "line"),
    [
        ({}, "INFO myapp: hello"),
        ({**TASK_MANAGER, "operator": "", "subtask": -1, "attempt": -1}, "INFO myapp [orders: tm-0-9f3a2c11]: hello"),
        (
            {**TASK_MANAGER, "operator": "total", "subtask": 1, "attempt": 2},
            "INFO myapp [orders: total, subtask 1, attempt 2]: hello",
        ),
        ({"job_name": "orders", "job_id": "job-1", "operator": "total", "subtask": 1}, "INFO myapp: hello"),
    ],
    ids=["of this process", "of a TaskManager", "of an operator", "of a failure, whose text says it"],
)
def test_a_line_says_whose_it_is(added: dict[str, Any], line: str) -> None:
    record = logging.makeLogRecord({"name": "myapp", "levelname": "INFO", "msg": "hello", **added})
    assert OriginFormatter("%(levelname)s %(name)s%(origin)s: %(message)s").format(record) == line


def test_a_record_stays_as_it_is_for_other_handlers() -> None:
    """Flights have an origin of their own, and JsonLines shows what was added to a record."""
    record = logging.makeLogRecord({"msg": "late", "origin": "JFK"})
    assert OriginFormatter("%(message)s%(origin)s").format(record) == "late"
    assert vars(record)["origin"] == "JFK"
