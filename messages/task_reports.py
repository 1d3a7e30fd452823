"""TaskReport: what tasks report about themselves. A TaskManager passes it on, a JobManager hands it to the job."""

from __future__ import annotations

from typing import TypeAlias

from .call_rates import ReportThrottled, RequestPermits
from .checkpointing import AcknowledgeCheckpoint, DeclineCheckpoint
from .event_time import ReportWatermark
from .job import FirstBatchProcessed
from .tasks import NotifyEndOfData, UpdateTaskExecutionState

TaskReport: TypeAlias = (
    UpdateTaskExecutionState
    | AcknowledgeCheckpoint
    | DeclineCheckpoint
    | NotifyEndOfData
    | FirstBatchProcessed
    | ReportWatermark
    | RequestPermits
    | ReportThrottled
)
