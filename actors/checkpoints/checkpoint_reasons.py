"""Why there is no checkpoint: none was triggered, or a pending one was given up."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """Why no checkpoint was triggered. Flink: CheckpointDeclineReason."""

    COORDINATOR_SHUT_DOWN = "coordinator_shut_down"
    PERIODIC_SCHEDULER_OFF = "periodic_scheduler_off"
    ALREADY_QUEUED = "already_queued"
    TOO_MANY_CONCURRENT = "too_many_concurrent"
    MIN_PAUSE = "min_pause"
    TASKS_NOT_READY = "tasks_not_ready"
    STOP_UNDER_WAY = "stop_with_savepoint_under_way"
    JOB_IS_STOPPING = "job_is_stopping"
    """Its sources end their data because somebody wants that: from a savepoint of now the rest would never be read."""
    JOB_IS_ENDING = "job_is_ending"
    """Its last checkpoint is stored, or is just being."""


class CheckpointFailure(Enum):
    """Why a pending checkpoint was given up. Flink: CheckpointFailureReason."""

    DECLINED = "declined"
    EXPIRED = "expired"
    SUBSUMED = "subsumed"
    TASK_FAILED = "task_failed"
    JOB_IS_ENDING = "job_is_ending"
    """A task ended before it had acknowledged, as tasks do once the final checkpoint is complete."""
    REGION_RESTARTING = "region_restarting"
    METADATA_FAILED = "metadata_failed"
    ORDERS_LOST = "orders_lost"
    """A TaskManager was without a leader while it was under way, so its trigger may be lost."""
    SCHEDULER_STOPPED = "scheduler_stopped"
    COORDINATOR_SHUT_DOWN = "coordinator_shut_down"
