"""JobEnding: how far a job is on its way to its end. A value machine of the JobMaster.

    data ends in every task -> final checkpoint -> its completion is announced, repeatedly -> every task has finished
    sources are held at the barrier of a stop with savepoint -> the same
                                 '-> it was given up: that is announced a few times -> they go on

The last word must not be lost: a task without the outcome of the final checkpoint would wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...messages import (
    CheckpointId,
    ExecutionAttemptId,
    ExecutionState,
    JobGraph,
    Message,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    StopTask,
    TriggerCheckpoint,
)
from ..job_graph import Region
from .execution import Execution
from .execution_graph import ExecutionGraph

RELEASES_REPEATED = 5
"""How often the message that a held source may go on is repeated. A connection that has not come back by then is a lost
TaskManager.
"""

Notice = NotifyCheckpointComplete | NotifyCheckpointAborted


class JobEnding:
    """Which attempts' data has ended, and who has yet to finish after the final checkpoint."""

    def __init__(self, job: JobGraph, graph: ExecutionGraph) -> None:
        self.is_stopping = False
        """The data is to be ended: sources get the order, those that are deployed later too."""
        self._job = job
        self._graph = graph
        self._data_ended: set[ExecutionAttemptId] = set()
        self._notices: dict[ExecutionAttemptId, Notice] = {}
        self._held: dict[ExecutionAttemptId, CheckpointId] = {}
        self._releases_left: dict[ExecutionAttemptId, int] = {}
        self._restored: dict[Region, CheckpointId] = {}

    def orders(self) -> Iterator[tuple[Execution, StopTask]]:
        """Orders to running sources: none, unless the job is stopping."""
        fed = {edge.target for edge in self._job.edges}
        for execution in self._graph.executions() if self.is_stopping else ():
            if execution.vertex_id not in fed and execution.state is ExecutionState.RUNNING:
                yield execution, StopTask(self._job.job_id, execution.attempt_id)

    def data_ended(self, attempt_id: ExecutionAttemptId) -> bool:
        """This attempt has taken all its input; returns whether all of them have.

        For one that is given up it has no effect: the attempt that takes its place has its data to read again.
        """
        execution = self._graph.execution(attempt_id)
        if execution is None or execution.state is ExecutionState.CANCELING or execution.state.is_terminal:
            return False
        self._data_ended.add(attempt_id)
        return self._data_ended.issuperset(each.attempt_id for each in self._graph.executions())

    def attempt_over(self, attempt_id: ExecutionAttemptId) -> None:
        self._data_ended.discard(attempt_id)
        self._held.pop(attempt_id, None)
        self._forget(attempt_id)

    def region_restored(self, region: Region, final: CheckpointId | None) -> None:
        """A region is deployed; `final` is the final checkpoint it was restored from, if it was that one."""
        if final is None:
            self._restored.pop(region, None)
        else:
            self._restored[region] = final

    def notices_for(self, region: Region, wall_ms: int) -> list[NotifyCheckpointComplete]:
        """What to tell a region, some task of which has begun to run. Once all do, one that was restored from the final
        checkpoint has only to commit it and finish.
        """
        final = self._restored.get(region)
        if final is None or not self._graph.all_running(region):
            return []
        return [
            NotifyCheckpointComplete(self._job.job_id, each.attempt_id, final, wall_ms, final=True)
            for each in self._graph.executions(region)
        ]

    def told(self, message: Message) -> bool:
        """A task was sent this; returns whether it is the first that has to be repeated, so that a timer is due."""
        match message:
            case TriggerCheckpoint(attempt_id=attempt_id, checkpoint_id=checkpoint_id, stop=True):
                self._held[attempt_id] = checkpoint_id
            case NotifyCheckpointComplete(attempt_id=attempt_id, final=True):
                return self._repeat(attempt_id, message)
            case NotifyCheckpointAborted(attempt_id=attempt_id, checkpoint_id=checkpoint_id):
                if self._held.get(attempt_id) == checkpoint_id:
                    del self._held[attempt_id]
                    self._releases_left[attempt_id] = RELEASES_REPEATED
                    return self._repeat(attempt_id, message)
        return False

    def unheard(self) -> tuple[Notice, ...]:
        """Messages to repeat: to tasks that have not finished yet, and, a few times, to sources that were
        held.
        """
        notices = tuple(self._notices.values())
        for attempt_id in list(self._releases_left):
            self._releases_left[attempt_id] -= 1
            if not self._releases_left[attempt_id]:
                self._forget(attempt_id)
        return notices

    def _repeat(self, attempt_id: ExecutionAttemptId, notice: Notice) -> bool:
        is_first = not self._notices
        self._notices[attempt_id] = notice
        if isinstance(notice, NotifyCheckpointComplete):
            self._releases_left.pop(attempt_id, None)
        return is_first

    def _forget(self, attempt_id: ExecutionAttemptId) -> None:
        self._notices.pop(attempt_id, None)
        self._releases_left.pop(attempt_id, None)
