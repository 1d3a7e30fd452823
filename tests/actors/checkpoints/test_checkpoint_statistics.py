"""CheckpointStatisticsTracker, as a CheckpointCoordinator keeps it: each test is one history, told to a Driver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.actors.checkpoints.checkpoint_effects import FailJob
from understudy.actors.checkpoints.checkpoint_events import (
    AllDataEnded,
    CheckpointExpired,
    Shutdown,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.checkpoint_failures import INDEXES_SHOWN, NAMES_SHOWN, how_far
from understudy.actors.checkpoints.checkpoint_plan import VertexShape
from understudy.actors.checkpoints.checkpoint_statistics import ENDED_CHECKPOINTS_KEPT
from understudy.actors.checkpoints.pending_checkpoint import CheckpointKind, PendingCheckpoint
from understudy.actors.job_graph import SubtaskKey
from understudy.messages import (
    AcknowledgeCheckpoint,
    CheckpointHistory,
    CheckpointId,
    CheckpointStatistics,
    ExecutionAttemptId,
    JobStatus,
    OperatorDescription,
    OperatorId,
    SnapshotMetrics,
    SubtaskIndex,
    SubtaskStatistics,
    VertexId,
)

from ..savepoint_requests import drain, savepoint_now
from .checkpoint_driver import JOB, Driver, ack, changed, decline, make_driver, of_type, published, stored

METRICS = SnapshotMetrics(sync_ms=1.5, async_ms=20.0, alignment_ms=7.0, in_flight_bytes=64, unaligned=True)


def measured(task: str, checkpoint: int, size_bytes: int, metrics: SnapshotMetrics) -> AcknowledgeCheckpoint:
    return AcknowledgeCheckpoint(JOB, ExecutionAttemptId(task), CheckpointId(checkpoint), None, size_bytes, metrics)


def history(driver: Driver) -> CheckpointHistory:
    return driver.coordinator.statistics.history(driver.now_ms)


def test_a_completed_checkpoint_tells_what_each_subtask_spent() -> None:
    driver = make_driver(stores_at_once=False)
    driver.advance(100)
    driver.tell(TriggerCheckpointNow(), wall_ms=5_000)
    driver.advance(10)
    driver.tell(measured("b", 1, 300, METRICS))
    driver.advance(15)
    driver.tell(measured("a", 1, 200, SnapshotMetrics(sync_ms=0.5)))
    driver.advance(5)
    (message,) = published(driver.tell(stored(1)))
    assert history(driver).checkpoints == (
        CheckpointStatistics(
            checkpoint_id=CheckpointId(1),
            kind="checkpoint",
            status="completed",
            timestamp_ms=5_000,
            duration_ms=30,
            state_size_bytes=500,
            subtasks_total=2,
            path="chk-1",
            subtasks=(
                SubtaskStatistics(VertexId("b"), SubtaskIndex(0), 10, 300, METRICS),
                SubtaskStatistics(VertexId("a"), SubtaskIndex(0), 25, 200, SnapshotMetrics(sync_ms=0.5)),
            ),
        ),
    )
    assert message.sync_ms == 1.5  # type: ignore[union-attr]  # of the slowest


def test_one_in_progress_tells_what_is_known_by_now() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), ack("a", 1))
    driver.advance(40)
    (found,) = history(driver).checkpoints
    assert (found.status, found.duration_ms, found.subtasks_total) == ("in_progress", 40, 2)
    assert [subtask.vertex_id for subtask in found.subtasks] == ["a"]
    assert found.awaited == ("b [0]",)


def test_one_that_has_ended_waits_for_nobody() -> None:
    driver = make_driver(tolerable_failures=9)
    driver.tell(TriggerCheckpointNow(), decline("a", 1))
    (found,) = history(driver).checkpoints
    assert found.awaited == ()


def test_counts_and_order_with_one_in_progress_between() -> None:
    driver = make_driver(tolerable_failures=9)
    driver.tell(savepoint_now("sp"), TriggerCheckpointNow(), ack("a", 2), ack("b", 2))
    driver.tell(TriggerCheckpointNow(), decline("a", 3))
    found = history(driver)
    assert (found.triggered, found.completed, found.failed) == (3, 1, 1)
    assert [(each.checkpoint_id, each.status) for each in found.checkpoints] == [
        (3, "failed"),
        (2, "completed"),
        (1, "in_progress"),
    ]


def test_only_the_last_that_ended_are_kept_and_all_in_progress() -> None:
    driver = make_driver(retained=1)
    driver.tell(savepoint_now("sp"))
    for each in range(2, ENDED_CHECKPOINTS_KEPT + 5):
        driver.tell(TriggerCheckpointNow(), ack("a", each), ack("b", each))
    found = history(driver)
    assert [each.checkpoint_id for each in found.checkpoints] == [*range(14, 14 - ENDED_CHECKPOINTS_KEPT, -1), 1]
    assert found.completed == ENDED_CHECKPOINTS_KEPT + 3


def test_of_completed_ones_it_is_said_which_are_deleted() -> None:
    driver = make_driver(retained=2)
    for each in range(1, 5):
        driver.tell(TriggerCheckpointNow(), ack("a", each), ack("b", each))
    driver.tell(TriggerCheckpointNow(), decline("a", 5))
    kept = [each.checkpoint_id for each in history(driver).checkpoints if each.path and not each.discarded]
    assert kept == driver.retained_ids()[::-1] == [4, 3]
    assert not history(driver).checkpoints[0].discarded, "one that failed has left nothing"
    driver.tell(Shutdown(JobStatus.CANCELED))
    assert all(each.discarded for each in history(driver).checkpoints if each.status == "completed")


def test_a_savepoint_that_its_job_no_longer_needs_is_its_users() -> None:
    driver = make_driver(retained=1)
    driver.tell(savepoint_now("sp"), ack("a", 1), ack("b", 1))
    driver.tell(TriggerCheckpointNow(), ack("a", 2), ack("b", 2))
    assert [each.discarded for each in history(driver).checkpoints] == [False, False]


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([TriggerCheckpointNow()], "checkpoint"),
        ([savepoint_now("sp")], "savepoint"),
        ([savepoint_now("sp", stop=True)], "savepoint"),
        ([AllDataEnded()], "final"),
        ([drain("sp"), AllDataEnded()], "savepoint"),
    ],
)
def test_what_kind_it_was(events: list[TriggerCheckpointNow], kind: str) -> None:
    driver = make_driver()
    driver.tell(*events, ack("a", 1), ack("b", 1))
    assert [each.kind for each in history(driver).checkpoints] == [kind]


def test_acknowledgements_that_do_not_count_leave_no_trace() -> None:
    driver = make_driver()
    driver.tell(TriggerCheckpointNow(), ack("a", 1), ack("a", 1), ack("stranger", 1), ack("a", 7))
    (found,) = history(driver).checkpoints
    assert len(found.subtasks) == 1


def test_what_was_restored_last_is_remembered() -> None:
    driver = make_driver()
    assert history(driver).restored_checkpoint_id == 0
    driver.coordinator.statistics.restored(CheckpointId(7))
    assert history(driver).restored_checkpoint_id == 7


# ------------------------------------------------------------------------------------------------ why it failed


def test_a_declined_checkpoint_names_who_declined_and_why() -> None:
    driver = make_driver()
    effects = driver.tell(TriggerCheckpointNow(), decline("b", 1, "OSError: disk full"))
    assert history(driver).checkpoints[0].failure == "declined: b subtask 0: OSError: disk full"
    (failed,) = of_type(FailJob, effects)
    assert "was declined by b subtask 0: OSError: disk full" in failed.cause.error_message


def test_an_expired_checkpoint_names_who_is_missing() -> None:
    driver = make_driver(timeout_ms=500, tolerable_failures=9)
    driver.tell(TriggerCheckpointNow(), ack("a", 1))
    (message,) = published(driver.tell(CheckpointExpired(CheckpointId(1))))
    wanted = "expired: after 500 ms 1 of 2 subtasks had acknowledged; missing: b 0"
    assert message.reason == history(driver).checkpoints[0].failure == wanted  # type: ignore[union-attr]


def test_who_declined_and_who_is_missing_is_said_with_its_task_manager_and_host() -> None:
    driver = make_driver(timeout_ms=500, tolerable_failures=9)
    driver.tell(
        replace(changed("a"), place="TaskManager 0 on one"), replace(changed("b"), place="TaskManager 3 on two")
    )
    driver.tell(TriggerCheckpointNow(), decline("b", 1, "OSError: disk full"))
    driver.tell(TriggerCheckpointNow(), ack("a", 2), CheckpointExpired(CheckpointId(2)))
    expired, declined = (each.failure for each in history(driver).checkpoints)
    assert declined == "declined: b subtask 0 (TaskManager 3 on two): OSError: disk full"
    assert expired.endswith("1 of 2 subtasks had acknowledged; missing: b 0 (TaskManager 3 on two)")
    driver.tell(changed("b", "b-2"), TriggerCheckpointNow(), decline("b-2", 3))
    assert history(driver).checkpoints[0].failure.startswith("declined: b subtask 0: "), "where it runs is not known"


def test_one_that_expired_while_it_was_stored_says_so() -> None:
    driver = make_driver(stores_at_once=False, tolerable_failures=9)
    driver.tell(TriggerCheckpointNow(), ack("a", 1), ack("b", 1), CheckpointExpired(CheckpointId(1)))
    assert "all 2 subtasks had acknowledged, but its metadata" in history(driver).checkpoints[0].failure


def test_of_many_missing_subtasks_some_are_named_by_operator() -> None:
    vertices = {
        VertexId(f"v{n}"): VertexShape(20, 128, (OperatorDescription(OperatorId(f"o{n}"), f"map-{n}", "operator"),))
        for n in range(9)
    }
    attempts = {
        ExecutionAttemptId(f"{vertex_id}-{index}"): SubtaskKey(vertex_id, SubtaskIndex(index))
        for vertex_id in vertices
        for index in range(20)
    }
    pending = PendingCheckpoint(
        JOB, CheckpointId(1), CheckpointKind.CHECKPOINT, attempts, timestamp_ms=0, started_ms=0.0
    )
    found = how_far(pending, vertices, {})
    assert found.startswith("0 of 180 subtasks had acknowledged; missing: map-0 0, 1, 2")
    assert f"{20 - INDEXES_SHOWN} more" in found
    assert found.endswith(f"and {9 - NAMES_SHOWN} more")
    assert len(found) < 300
