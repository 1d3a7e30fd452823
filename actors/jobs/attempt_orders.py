"""AttemptOrders: what a JobMaster tells the attempts of its job, addressed to the TaskManagers that they run on.

The last words of a job are repeated until they have been heard (JobEnding); the others are said once. Belongs to the
JobMaster, which passes them on.
"""

from __future__ import annotations

from typing import TypeAlias

from ...messages import CancelTask, ExecutionAttemptId, JobId, Message
from ..checkpoints.checkpoint_effects import Schedule
from ..job_graph import Region
from .execution import Execution
from .execution_graph import ExecutionGraph
from .job_effects import PermitsDue, RepeatFinalNotify, Tell
from .job_ending import JobEnding

FINAL_NOTIFY_REPEAT_MS = 2000
REPETITION = Schedule(FINAL_NOTIFY_REPEAT_MS, RepeatFinalNotify())

Orders: TypeAlias = list[Tell | Schedule[RepeatFinalNotify | PermitsDue]]


class AttemptOrders:
    """To the current attempts of one job."""

    def __init__(self, job_id: JobId, graph: ExecutionGraph, ending: JobEnding) -> None:
        self._job_id = job_id
        self._graph = graph
        self._ending = ending

    def tell(self, execution: Execution, message: Message) -> Tell:
        assert execution.slot is not None, f"{execution!r} was never deployed"
        return Tell(execution.slot.task_manager_id, message)

    def send(self, attempt_id: ExecutionAttemptId, message: Message) -> Orders:
        """To an attempt that may have been replaced: then no one receives it."""
        execution = self._graph.execution(attempt_id)
        if execution is None:
            return []
        told = self.tell(execution, message)
        return [told, REPETITION] if self._ending.told(message) else [told]

    def repeat(self) -> Orders:
        """Say again what has not been heard."""
        unheard = self._ending.unheard()
        orders = [order for notice in unheard for order in self.send(notice.attempt_id, notice)]
        return [*orders, REPETITION] if unheard else orders

    def cancel(self, execution: Execution) -> list[Tell]:
        """End it, unless it has ended or is being cancelled."""
        if not execution.cancel():
            return []
        return [self.tell(execution, CancelTask(self._job_id, execution.attempt_id))]

    def stop_sources(self) -> list[Tell]:
        """Running sources take no more input, if the job is stopping."""
        return [self.tell(execution, order) for execution, order in self._ending.orders()]

    def finish(self, region: Region, wall_ms: int) -> Orders:
        """A region that has only to commit the job's last checkpoint is notified of that, once all of it runs."""
        notices = self._ending.notices_for(region, wall_ms)
        return [order for notice in notices for order in self.send(notice.attempt_id, notice)]
