"""RegionDeployer: what a region is deployed with: fresh attempts, their places, and the state that they restore.

A value machine of the JobMaster, which sends the deployments out. Flink: SchedulingStrategy, ExecutionSlotAllocator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...messages import FailureCause, FailureKind, TaskDeployment
from ...state.checkpoints.completed_checkpoints import CompletedCheckpoint
from ..job_graph import Region, SubtaskKey
from ..restore.restore_points import RestorePoints
from .execution import Execution
from .execution_graph import ExecutionGraph
from .slot_pool import SlotId
from .task_manager_roster import TaskManagerRoster

NO_CHECKPOINT_LEFT = (
    "no retained checkpoint can be read any more; a start from the beginning would repeat its output. Submit the job "
    "again from a savepoint that is whole (`understudy state verify PATH` says so; from_savepoint=PATH), or from the "
    "beginning with its output removed. retained_checkpoints above 1 keeps older ones to fall back on, and "
    "scrub_interval_ms finds damage before a failure does"
)


@dataclass(frozen=True, slots=True)
class RegionDeployment:
    """One region, about to run again."""

    restored: CompletedCheckpoint | None
    """The checkpoint to restore it from; None: it starts from the beginning."""
    is_last: bool
    """That is the job's last checkpoint: the region has only to commit it."""
    attempts: tuple[tuple[Execution, TaskDeployment], ...]


class RegionDeployer:
    """One job's. `new_id` makes a fresh id with a prefix."""

    def __init__(
        self,
        graph: ExecutionGraph,
        roster: TaskManagerRoster,
        restore_points: RestorePoints,
        new_id: Callable[[str], str],
    ) -> None:
        self._graph = graph
        self._roster = roster
        self._restore_points = restore_points
        self._new_id = new_id

    def deploy(self, region: Region, placement: Mapping[SubtaskKey, SlotId]) -> RegionDeployment | None:
        """Begin new attempts in these slots; None when no checkpoint is left that can be read."""
        restored = self._restore_points.choose(region)
        if restored is None and self._restore_points.are_used_up:
            return None
        restore = self._restore_points.restore_of(restored, region)
        attempts = self._graph.new_attempts(region, self._new_id)
        deployments = self._graph.deployments(region, placement, self._roster.data_endpoints(), restore)
        return RegionDeployment(restored, restore.finishing, tuple(zip(attempts, deployments, strict=True)))


def no_checkpoint_left(latest: FailureCause | None) -> FailureCause:
    """What the job fails with then; `latest`: its last failure."""
    kind = FailureKind.NO_RESTORABLE_CHECKPOINT
    return FailureCause("NoRestorableCheckpoint", NO_CHECKPOINT_LEFT, cause=latest, kind=kind)
