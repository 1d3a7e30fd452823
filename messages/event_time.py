"""What is said about event time: how far each task is and who holds it back, and how sources wait for each other.

Times are milliseconds since 1970.
"""

from __future__ import annotations

from typing import Final

from .ids import ExecutionAttemptId, JobId, OperatorId, SubtaskIndex
from .registry import message

NO_WATERMARK: Final = -(2**63)
"""A watermark before the first one: nothing is known yet. Flink: Long.MIN_VALUE."""

END_OF_TIME: Final = 2**63 - 1
"""The watermark of data that has ended. Flink: Watermark.MAX_WATERMARK."""


@message
class HoldingChannel:
    """The input channel of a task that is furthest behind, of those that are not idle."""

    edge: int
    """Index of the JobEdge in the graph."""
    producer_subtask: SubtaskIndex
    watermark_ms: int
    standing_ms: int
    """For how long it has said nothing newer."""


@message
class HoldingSplit:
    """The split that is furthest behind where event times are assigned, of those that are not idle."""

    split: str
    """Its id; empty: the records are one stream."""
    watermark_ms: int
    standing_ms: int
    is_paused: bool
    """Whether it is ahead of others that wait for it, and so is not read."""
    records: int = 0
    """How many it has brought in this attempt."""
    most_behind_ms: int | None = None
    """How far one of these was behind the newest before it, at most; None: nobody has looked."""


@message
class TaskEventTime:
    """How far event time has come in one task, by its last heartbeat."""

    input_watermark_ms: int
    """The least of its input channels. Flink: currentInputWatermark."""
    output_watermark_ms: int
    """What it has sent on. Flink: currentOutputWatermark."""
    standing_ms: int
    """For how long it has sent on no newer one."""
    lag_ms: int | None
    """How far that is behind the time of day; None before the first one, after the end, and where it is no date."""
    is_idle: bool
    """Whether the tasks behind it wait for it."""
    is_held_back: bool
    """Whether it waits for its outputs: back-pressure."""
    late_records: int
    """How many came too late for one of its operators in this attempt. Flink: numLateRecordsDropped."""
    assigner: OperatorId = OperatorId("")
    """Its operator that assigns event times, if it has one: there watermarks are made."""
    idle_after_ms: int | None = None
    """Of that one, as the program says."""
    channel: HoldingChannel | None = None
    split: HoldingSplit | None = None
    splits: int = 0
    """How many splits there are."""
    idle_splits: int = 0
    paused_splits: int = 0
    bound_ms: int | None = None
    """How far its assigner's watermarks stay behind the newest record; None: it goes by something else."""


@message
class ReportWatermark:
    """Source task -> TaskManager -> JobManager: how far it is, for those of its group that would wait for it.

    Said again with each heartbeat. Flink: ReportedWatermarkEvent.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    group: str
    max_drift_ms: int
    watermark_ms: int
    is_waited_for: bool
    """False while it is idle, and when its data has ended."""


@message
class AnnounceWatermark:
    """JobManager -> TaskManager -> source task: the least that the active subtasks of its group are at.

    2**63 - 1: there is none to wait for. Repeats are harmless. Flink: WatermarkAlignmentEvent.
    """

    job_id: JobId
    attempt_id: ExecutionAttemptId
    minimum_ms: int
