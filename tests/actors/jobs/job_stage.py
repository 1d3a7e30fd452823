"""A JobMaster on a stage: tests feed it what a JobManager and TaskManagers would, and look at its effects."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from understudy.actors.checkpoints import checkpoint_events as checkpoint
from understudy.actors.checkpoints.checkpoint_effects import Publish
from understudy.actors.jobs.job_effects import Tell
from understudy.actors.jobs.job_master import JobMaster, JobMasterSettings
from understudy.actors.jobs.restart_strategy import make_restart_strategy
from understudy.actors.restore.restore_points import Origin
from understudy.messages import (
    AcknowledgeCheckpoint,
    CheckpointConfig,
    ExecutionState,
    FailureCause,
    FailureKind,
    JobEdge,
    JobGraph,
    JobStatus,
    JobStatusChanged,
    JobVertex,
    OperatorDescription,
    Partitioning,
    RegisterTaskManager,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubmitTask,
    SubtaskState,
    TaskDeployment,
    TriggerCheckpoint,
    UpdateTaskExecutionState,
)
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import StandaloneCompletedCheckpointStore
from understudy.state.checkpoints.high_availability import KeptJob

T = TypeVar("T")


def graph(attempts: int = 1, pipelines: int = 1) -> JobGraph:
    """`pipelines` separate jobs of source -> keyed sink, each with parallelism 2."""
    vertices, edges = [], []
    for n in range(pipelines):
        for name, kind in ((f"source-{n}", "source"), (f"sink-{n}", "sink")):
            vertices.append(JobVertex(name, name, 2, 128, (OperatorDescription(f"op-{name}", name, kind),)))
        edges.append(JobEdge(f"source-{n}", f"sink-{n}", Partitioning.HASH))
    return JobGraph(
        "job-1",
        "flights",
        tuple(vertices),
        tuple(edges),
        CheckpointConfig("/nowhere", interval_ms=100, retained=2),
        RestartStrategyConfig(RestartStrategyKind.FIXED_DELAY, attempts=attempts, delay_ms=50),
    )


class Stage:
    """Plays the JobManager's and the TaskManagers' parts: feeds events, keeps effects."""

    def __init__(self, job: JobGraph, origin: Origin | None = None) -> None:
        ids, checkpoints = count(), job.checkpoints
        store = StandaloneCompletedCheckpointStore(checkpoints.retained, checkpoints.retention)
        self.master = JobMaster(
            job,
            JobMasterSettings(task_managers=2, slots_per_task_manager=1, slot_timeout_ms=1000, cancel_timeout_ms=500),
            make_restart_strategy(job.restart, random.Random(1)),
            KeptJob(StandaloneCheckpointIdCounter(), store),
            lambda prefix: f"{prefix}-{next(ids)}",
            origin=origin,
        )
        self.now = 0.0
        self.effects: list[Any] = self.master.start(0.0, 0)

    def tell(self, event: Any) -> list[Any]:
        self.now += 1
        self.effects = self.master.on(event, self.now, int(self.now))
        return self.effects

    def of(self, kind: type[T]) -> list[T]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def said(self, kind: type[T]) -> list[T]:
        return [effect.message for effect in self.of(Tell) if isinstance(effect.message, kind)]

    def statuses(self) -> list[JobStatus]:
        return [t.message.status for t in self.of(Publish) if isinstance(t.message, JobStatusChanged)]

    def register(self, index: int, life: int = 0) -> list[TaskDeployment]:
        name = f"tm-{index}-{life}"
        self.tell(RegisterTaskManager(name, "job-1", index, 1, f"tcp://h:{index}/tm", f"tcp://h:{index}", 100, "h"))
        return [message.deployment for message in self.said(SubmitTask)]

    def deployed(self) -> list[TaskDeployment]:
        self.register(0)
        return self.register(1)

    def running(self) -> list[TaskDeployment]:
        deployments = self.deployed()
        for deployment in deployments:
            self.report(deployment, ExecutionState.RUNNING)
        return deployments

    def report(
        self, deployment: TaskDeployment, state: ExecutionState, failure: FailureCause | None = None
    ) -> list[Any]:
        return self.tell(UpdateTaskExecutionState("job-1", deployment.attempt_id, state, failure))

    def checkpoint(self, deployments: list[TaskDeployment], trigger: Callable[[], object] | None = None) -> int:
        """Take one checkpoint to its end; returns its id."""
        if trigger is None:
            self.tell(checkpoint.TriggerCheckpointNow())
        else:
            trigger()
        (checkpoint_id,) = {message.checkpoint_id for message in self.said(TriggerCheckpoint)}
        for each in deployments:
            state = SubtaskState({}, data_ended=False)
            self.tell(AcknowledgeCheckpoint("job-1", each.attempt_id, checkpoint_id, state, 0))
        self.tell(checkpoint.MetadataStored(checkpoint_id, f"chk-{checkpoint_id}"))
        return checkpoint_id


FAILURE = FailureCause("ValueError", "boom")
UNREADABLE = FailureCause(
    "RestoreFailed", "x", cause=FailureCause("CorruptState", "checksum", kind=FailureKind.UNREADABLE_STATE)
)
