"""JobPage: what is kept of a large job is what would be made from nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from understudy.messages import ExecutionState, JobView
from understudy.runtime.web.job_page import COLUMNS, JobPage

from .views import history_of, job_view


def shown(page: JobPage, view: JobView) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.text(view, history_of(view)))
    return found


def with_subtask(view: JobView, number: int, **fields: Any) -> JobView:
    rows = list(view.subtasks)
    rows[number] = replace(rows[number], **fields)
    return replace(view, subtasks=tuple(rows))


def with_task(view: JobView, number: int, **fields: Any) -> JobView:
    rows = list(view.details.tasks)
    rows[number] = replace(rows[number], **fields)
    return replace(view, details=replace(view.details, tasks=tuple(rows)))


CHANGES: dict[str, Callable[[JobView], JobView]] = {
    "nothing": lambda view: view,
    "rates": lambda view: with_subtask(view, 3, records_in_per_second=7.0, busy=0.5),
    "a state": lambda view: with_subtask(view, 0, state=ExecutionState.FAILED),
    "figures": lambda view: with_task(view, 2, records_in=77),
    "event time": lambda view: with_task(view, 5, event_time=None),
    "a task that has not been heard of": lambda view: replace(
        view, details=replace(view.details, tasks=view.details.tasks[1:])
    ),
    "TaskManagers": lambda view: replace(view, task_managers=view.task_managers[::-1]),
    "a subtask that is not there": lambda view: replace(view, subtasks=view.subtasks[:-1]),
    "no subtasks": lambda view: replace(view, subtasks=()),
    "the graph": lambda _: job_view(vertices=4, parallelism=3),
    "its end": lambda view: replace(view, summary=replace(view.summary, ended_ms=view.at_ms)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_after_any_change_the_page_is_as_if_made_from_nothing(change: Callable[[JobView], JobView]) -> None:
    view = job_view(vertices=5, parallelism=2)
    page = JobPage()
    shown(page, view)
    after = change(view)
    assert shown(page, after) == shown(JobPage(), after)
    assert shown(page, view) == shown(JobPage(), view)


def test_columns_have_a_value_for_each_subtask() -> None:
    found = shown(JobPage(), job_view(vertices=3, parallelism=4))
    assert set(found["subtasks"]) == set(COLUMNS)
    assert {len(column) for column in found["subtasks"].values()} == {12}
    assert found["subtasks"]["v"] == [0] * 4 + [1] * 4 + [2] * 4
    assert found["subtasks"]["tm"] == [0, 1] * 6
    assert [each["tasks"] for each in found["taskManagers"]] == [6, 6]


def test_a_vertex_of_which_nothing_was_heard_is_not_made_again() -> None:
    view, page = job_view(vertices=3, parallelism=2), JobPage()
    page.text(view, history_of(view))
    before = dict(page._parts)
    page.text(with_subtask(view, 2, busy=0.25), history_of(view))
    assert [name for name, part in page._parts.items() if part is not before[name]] == ["v1"]


def test_checkpoints_that_have_ended_are_kept_and_one_under_way_is_not() -> None:
    view, page = job_view(), JobPage()
    history = history_of(view)
    under_way, *ended = history.checkpoints
    page.text(view, history)
    done = replace(under_way, status="completed", duration_ms=777)
    after = replace(history, checkpoints=(done, *ended))
    assert json.loads(page.text(view, after)) == json.loads(JobPage().text(view, after))
    other = replace(history, checkpoints=tuple(replace(each, duration_ms=5) for each in history.checkpoints))
    assert json.loads(page.text(view, other)) == json.loads(JobPage().text(view, other))
    assert [each["ms"] for each in json.loads(page.text(view, other))["checkpoints"]["list"]] == [5, 5, 5]
