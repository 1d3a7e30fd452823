"""AttemptOrders: what a JobMaster tells the attempts of its job, addressed to the TaskManagers that they run on.

The last words of a job are repeated until they have been heard (JobEnding); the others are said once. Belongs to the
JobMaster, whose effects it adds to.
"""

from __future__ import annotations

from collections.abc import Callable

from ...messages import CancelTask, ExecutionAttemptId, JobId, Message
from ..checkpoints.checkpoint_effects import Schedule
from ..job_graph import Region
from .execution import Execution
from .execution_graph import ExecutionGraph
from .job_effects import RepeatFinalNotify, Tell
from .job_ending import JobEnding

FINAL_NOTIFY_REPEAT_MS = 2000


class AttemptOrders:
    """To the current attempts of one job."""

    def __init__(
        self,
        job_id: JobId,
        graph: ExecutionGraph,
        ending: JobEnding,
        emit: Callable[[Tell | Schedule[RepeatFinalNotify]], None],
    ) -> None:
        self._job_id = job_id
        self._graph = graph
        self._ending = ending
        self._emit = emit

    def tell(self, execution: Execution, message: Message) -> None:
        assert execution.slot is not None, f"{execution!r} was never deployed"
        self._emit(Tell(execution.slot.task_manager_id, message))

    def send(self, attempt_id: ExecutionAttemptId, message: Message) -> None:
        """To an attempt that may have been replaced: then nobody hears it."""
        execution = self._graph.execution(attempt_id)
        if execution is None:
            return
        self.tell(execution, message)
        if self._ending.told(message):
            self._emit(Schedule(FINAL_NOTIFY_REPEAT_MS, RepeatFinalNotify()))

    def repeat(self) -> None:
        """Say again what has not been heard."""
        unheard = self._ending.unheard()
        for notice in unheard:
            self.send(notice.attempt_id, notice)
        if unheard:
            self._emit(Schedule(FINAL_NOTIFY_REPEAT_MS, RepeatFinalNotify()))

    def cancel(self, execution: Execution) -> None:
        """End it, unless it has ended or is being cancelled."""
        if execution.cancel():
            self.tell(execution, CancelTask(self._job_id, execution.attempt_id))

    def stop_sources(self) -> None:
        """Running sources take no more input, if the job is stopping."""
        for execution, order in self._ending.orders():
            self.tell(execution, order)

    def finish(self, region: Region, wall_ms: int) -> None:
        """A region that has only to commit the job's last checkpoint is told so, once all of it runs."""
        for notice in self._ending.notices_for(region, wall_ms):
            self.send(notice.attempt_id, notice)
