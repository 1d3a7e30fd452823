"""FailureHistory: what is added to failures that are known."""

from __future__ import annotations

from understudy.actors.failure import lost_task_manager
from understudy.actors.jobs.failure_history import FAILURES_KEPT, FailureHistory
from understudy.messages import FailureCause, FailureKind, TaskManagerId, VertexId


def test_how_a_process_ended_is_added_to_the_loss_of_its_own_task_manager() -> None:
    history = FailureHistory("orders")
    for name in ("tm-0", "tm-1"):
        history.add(lost_task_manager(TaskManagerId(name), "silent"))
    history.process_ended(TaskManagerId("tm-1"), "SIGKILL")
    assert ["SIGKILL" in each.error_message for each in history.all] == [False, True]


def test_each_failure_that_is_kept_has_its_time() -> None:
    history = FailureHistory("orders")
    for number in range(FAILURES_KEPT + 5):
        history.wall_ms = number
        history.add(lost_task_manager(TaskManagerId(f"tm-{number}"), "silent"))
    found = [(each.task_manager, at_ms) for each, at_ms in zip(history.all, history.times, strict=True)]
    assert found == [(f"tm-{number}", number) for number in range(5, FAILURES_KEPT + 5)]


def test_what_fails_when_the_region_runs_again_explains_no_earlier_failure() -> None:
    """As a task that fails while its job is being cancelled."""
    history, region = FailureHistory("orders"), frozenset({VertexId("v")})
    history.add(FailureCause("ChannelBroken", "gone", kind=FailureKind.CHANNEL_BROKEN), region)
    root = FailureCause("ValueError", "bad", kind=FailureKind.USER_CODE)
    assert history.is_explained_by(region, root)
    history.settled(region)
    assert not history.is_explained_by(region, root)
