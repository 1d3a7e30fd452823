"""Task: where its time goes while a message keeps it, as a commit that waits for a database does."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.actors.tasks.task import Task
from understudy.messages import CheckpointId, ExecutionState, NotifyCheckpointComplete, TaskMetrics

from .task_stage import ATTEMPT, JOB, TaskStage, checkpoint, deployment

STAGE: list[TaskStage] = []
SEEN: list[tuple[TaskMetrics, bool]] = []
"""What the task says of itself in the middle of a commit; operators travel pickled, so the test meets them here."""


class Commits(Operator):
    """A commit takes ten seconds."""

    def process_batch(self, batch: object, out: Collector) -> None: ...

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        stage = STAGE[0]
        stage.context.ms += 10_000
        task: Task = stage.task
        SEEN.append((task.metrics(), task.counters.is_in_step))


@pytest.fixture
def stage(tmp_path: Path) -> TaskStage:
    STAGE[:], SEEN[:] = [TaskStage(Commits(), deployment(inputs=1), str(tmp_path))], []
    return STAGE[0]


def test_a_sink_that_commits_for_long_is_busy_and_not_idle(stage: TaskStage) -> None:
    before_ms = stage.task.metrics().busy_ms
    stage.tell(NotifyCheckpointComplete(JOB, ATTEMPT, checkpoint(1), 0))
    [(meanwhile, is_in_step)] = SEEN
    assert meanwhile.busy_ms - before_ms == 10_000
    assert is_in_step, "a flame graph shows what it waits for"
    assert stage.task.metrics().busy_ms - before_ms == 10_000


def test_the_last_commit_of_a_job_that_ends_counts_too(stage: TaskStage) -> None:
    before_ms = stage.task.metrics().busy_ms
    stage.tell(NotifyCheckpointComplete(JOB, ATTEMPT, checkpoint(1), 0, final=True))
    assert stage.task.state is ExecutionState.FINISHED
    assert stage.task.metrics().busy_ms - before_ms == 10_000
