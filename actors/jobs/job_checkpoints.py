"""JobCheckpoints: the CheckpointCoordinator as a part of its job: what it wants is addressed, and heard by the others.

Its sends go to the TaskManagers of the attempts, its news to the job's listeners; RestorePoints and JobFailures hear
that a checkpoint has completed. The rest passes through: effects to be carried out, and that the job is to fail, which
the JobMaster decides about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ...messages import CheckpointCompleted
from ..checkpoints.checkpoint_coordinator import CheckpointCoordinator
from ..checkpoints.checkpoint_effects import (
    AckIgnored,
    AnswerCheckpoint,
    AnswerSavepoint,
    CancelTimer,
    Discard,
    FailJob,
    Publish,
    Refused,
    Schedule,
    Send,
    StoreMetadata,
)
from ..checkpoints.checkpoint_events import CheckpointEvent
from ..restore.restore_points import RestorePoints
from .attempt_orders import AttemptOrders
from .job_effects import JobEffect
from .job_failures import JobFailures


class JobCheckpoints:
    """One job's."""

    def __init__(
        self,
        coordinator: CheckpointCoordinator,
        orders: AttemptOrders,
        restore_points: RestorePoints,
        failures: JobFailures,
    ) -> None:
        self._coordinator = coordinator
        self._orders = orders
        self._restore_points = restore_points
        self._failures = failures

    def on(self, event: CheckpointEvent, now_ms: float, wall_ms: int) -> Iterator[JobEffect | FailJob]:
        """One effect after the other: what follows a FailJob is addressed when that has been dealt with."""
        for effect in self._coordinator.on(event, now_ms, wall_ms):
            match effect:
                case Send(attempt_id, message):
                    yield from self._orders.send(attempt_id, message)
                case Publish(message):
                    if isinstance(message, CheckpointCompleted):
                        self._restore_points.completed(message.checkpoint_id)
                        self._failures.checkpoint_completed()
                    yield effect
                case FailJob() | Schedule() | CancelTimer() | StoreMetadata() | Discard():
                    yield effect
                case AnswerSavepoint() | AnswerCheckpoint():
                    yield effect
                case Refused() | AckIgnored():
                    pass
                case _:
                    assert_never(effect)
