"""Offers: what an attempt says of itself to a JobManager that may not know it, as it has deployed none of its job."""

from __future__ import annotations

from dataclasses import dataclass

from ...messages import CheckpointId, ExecutionState, OfferedTask, TaskDeployment


@dataclass(frozen=True, slots=True)
class AnotherLeads:
    """TaskManager -> Task, in its own process: the present leader has not heard what was said before."""


def offer_of(
    deployment: TaskDeployment,
    state: ExecutionState,
    newest_checkpoint: CheckpointId,
    *,
    data_ended: bool,
    is_stopping: bool,
) -> OfferedTask:
    """One that has only to commit the job's last checkpoint is stopping, too."""
    return OfferedTask(
        vertex_id=deployment.vertex_id,
        subtask_index=deployment.subtask_index,
        attempt_id=deployment.attempt_id,
        attempt_number=deployment.attempt_number,
        slot=deployment.slot,
        inputs=deployment.inputs,
        outputs=deployment.outputs,
        state=state,
        newest_checkpoint=newest_checkpoint,
        data_ended=data_ended,
        is_stopping=is_stopping or deployment.finishing,
    )
