"""What the page gets: reasons in words, and no path of what is deleted."""

from __future__ import annotations

from dataclasses import replace

from understudy.messages import JobStatus, TimelineMark
from understudy.runtime.web import page_view

from .views import history_of, job_view


def test_the_page_says_in_words_why_there_is_no_checkpoint() -> None:
    view = job_view()
    failed = replace(history_of(view).checkpoints[0], status="failed", failure="metadata_failed: disk full")
    assert page_view.checkpoint(view, failed)["failure"] == "its metadata could not be written: disk full"
    mark = TimelineMark(7, "checkpoint failed", "checkpoint 7: task_failed")
    assert page_view.timeline((), [mark])["marks"][0]["text"] == "checkpoint 7: a task has failed"


def test_a_job_that_runs_again_says_what_it_failed_of_last() -> None:
    """Else one that fails every five seconds is a green "running" in between."""
    view = job_view().summary
    failed = replace(view, latest_failure="KeyError: 'delya'", latest_failure_ms=1_000)
    found = page_view.summary(failed)
    assert (found["why"], found["last"], found["lastAt"]) == ("", "KeyError: 'delya'", 1_000)
    for other in (view, replace(failed, last_failure="KeyError"), replace(failed, status=JobStatus.FINISHED)):
        assert "last" not in page_view.summary(other)


def test_the_page_has_no_path_of_a_checkpoint_whose_files_are_gone() -> None:
    view = job_view()
    there = replace(history_of(view).checkpoints[0], kind="checkpoint", status="completed", path="job/chk-7")
    shown = page_view.checkpoint(view, there)
    assert (shown["path"], shown["discarded"]) == ("/checkpoints/job/chk-7", False)
    shown = page_view.checkpoint(view, replace(there, discarded=True))
    assert (shown["path"], shown["discarded"]) == ("", True)


def test_a_checkpoint_under_way_says_which_subtasks_it_waits_for() -> None:
    view = job_view(vertices=2, parallelism=2)
    under_way, whole, _ = history_of(view).checkpoints
    shown = page_view.gantt(view, under_way)
    assert (shown["subtasks"]["v"], shown["subtasks"]["i"]) == ([0, 1], [1, 1])
    assert shown["missing"] == [[0, 0], [1, 0]]
    assert page_view.gantt(view, whole)["missing"] == []
