"""Observer: what a job's events have reported so far, and the wait for the next."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    FirstBatchProcessed,
    JobStatus,
    JobStatusChanged,
    TaskManagerChanged,
    TaskManagerId,
)

LAST_EVENTS, EVENT_CHARACTERS = 40, 2_000
"""What is kept for the story of a run that went wrong."""


class Observer:
    """Fed with one job's events, from any thread. What it holds may be read at any time."""

    def __init__(self) -> None:
        self.alive: dict[TaskManagerId, TaskManagerChanged] = {}
        """TaskManagers that are registered."""
        self.pids: set[int] = set()
        """The processes of all that ever were."""
        self.losses = 0
        self.status = JobStatus.CREATED
        self.restarts = 0
        self.checkpoints = 0
        """Completed ones."""
        self.aborted: list[str] = []
        """Why checkpoints were not completed."""
        self.attempt = -1
        """The latest attempt that has processed a batch."""
        self.first_batch_ms: dict[int, int] = {}
        """When each attempt did, in milliseconds since the epoch."""
        self.last_events: deque[str] = deque(maxlen=LAST_EVENTS)
        """Their texts, but for the batches."""
        self._changed = threading.Condition()

    def on_event(self, event: Any) -> None:
        with self._changed:
            self._take(event)
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], within_s: float) -> bool:
        """Wait until the condition, looked at after each event, holds; False if the time or the job ends before."""
        deadline = time.monotonic() + within_s
        with self._changed:
            while not condition():
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self.status.is_terminal:
                    return False
                self._changed.wait(left_s)
            return True

    def wait_for_checkpoints(self, count: int, within_s: float) -> bool:
        """The same, until this many more have completed."""
        wanted = self.checkpoints + count
        return self.wait_for(lambda: self.checkpoints >= wanted, within_s)

    def _take(self, event: Any) -> None:
        if not isinstance(event, FirstBatchProcessed):
            self.last_events.append(str(event)[:EVENT_CHARACTERS])
        match event:
            case TaskManagerChanged(registered=True):
                self.alive[event.task_manager_id] = event
                self.pids.add(event.pid)
            case TaskManagerChanged():
                self.alive.pop(event.task_manager_id, None)
                self.losses += 1
            case CheckpointCompleted():
                self.checkpoints += 1
            case CheckpointAborted(reason=reason):
                self.aborted.append(reason)
            case JobStatusChanged(status=status):
                self.status = status
                self.restarts += status is JobStatus.RESTARTING
            case FirstBatchProcessed(attempt_number=number, timestamp_ms=timestamp_ms):
                self.attempt = max(self.attempt, number)
                self.first_batch_ms.setdefault(number, timestamp_ms)
