"""JobFailures: what becomes of a job's failures: they are remembered, counted, and made known.

Each is made known once, by a `FailureKnown`, and by its root. The first word of it may be secondhand, as when a
neighbour sees a broken channel; then it waits until it is explained, or until all tasks of its region have ended. How
the process of a lost TaskManager ended is known later than that it is lost, and sometimes after the job's end.
A value machine of the JobMaster.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages import CheckpointId, FailureCause, FailureKind, JobGraph
from ..job_graph import Region
from .execution import Execution
from .execution_graph import ExecutionGraph
from .failure_history import FailureHistory
from .job_effects import FailureKnown, ProcessEnded, Restart
from .repeated_failures import RepeatedFailures
from .task_manager_roster import TaskManagerRoster


class JobFailures:
    """The failures of one job."""

    def __init__(self, job: JobGraph, roster: TaskManagerRoster) -> None:
        self._roster = roster
        self.history = FailureHistory(job.name)
        self._repeated = RepeatedFailures(job.max_same_failures)
        self._unsaid: dict[Region, FailureKnown] = {}
        self._event: tuple[FailureCause, FailureCause] | None = None
        """What the present event has made fail or has explained, and what became of it."""
        self._known: FailureCause | None = None
        """What was made known last."""

    def begin(self, wall_ms: int = 0) -> None:
        """A new event: what it makes fail in several regions is one failure."""
        self._event = None
        self.history.wall_ms = wall_ms

    def checkpoint_completed(self) -> None:
        """The job has made progress."""
        self._repeated.checkpoint_completed()

    def failed(self, cause: FailureCause, region: Region) -> tuple[FailureCause, bool]:
        """A region has failed. Returns the cause to go on with, of which a RepeatedFailure ends the job; and whether it
        is another failure than that of a region before.
        """
        before = self._known_before(cause)
        if before is None:
            self._event = cause, self.history.add(self._repeated.add(cause), region)
            return self._event[1], True
        self.history.failed_too(region, before)
        return before, False

    def _known_before(self, cause: FailureCause) -> FailureCause | None:
        """The failure that this is, too: of the same event; or, as a process that dies breaks channels in all regions,
        one that waits for its explanation as this does.
        """
        if self._event is not None and self._event[0] == cause:
            return self._event[1]
        waiting = self._unsaid.values() if cause.is_secondhand else ()
        return next((each.failure for each in waiting), None)

    def process_ended(self, index: int, reason: str) -> FailureCause | None:
        """A TaskManager has ended of what the next one will read as well. Returns what ends the job, if that has come
        too often.
        """
        lost, text = FailureKind.TASK_MANAGER_LOST, f"TaskManager {index}: {reason}"
        counted = self._repeated.add(FailureCause("TaskManagerLost", text, repeatable=True, kind=lost))
        return counted if counted.kind is FailureKind.REPEATED else None

    def loss_explained(self, index: int, reason: str) -> list[ProcessEnded]:
        """The process of this TaskManager has ended so. Nothing, if it was not lost before."""
        lost = self._roster.lost_life(index)
        if lost is None:
            return []
        self.history.process_ended(lost, reason)
        return [ProcessEnded(index, reason, None)]

    @property
    def await_explanation(self) -> bool:
        """Whether the latest is a lost TaskManager of which it is not known yet how its process ended."""
        latest = self.history.latest
        if latest is None or latest.kind is not FailureKind.TASK_MANAGER_LOST:
            return False
        return self._roster.awaits_end_of(latest.task_manager)

    def restarting(
        self, region: Region, cause: FailureCause, delay_ms: float, checkpoint: CheckpointId | None
    ) -> list[FailureKnown]:
        """The region is tried again, after this delay and from this checkpoint."""
        return self._make_known(region, FailureKnown(cause, Restart(delay_ms, checkpoint), self._repeated.count))

    def given_up(self, region: Region, cause: FailureCause) -> list[FailureKnown]:
        """The job ends because of it."""
        return self._make_known(region, FailureKnown(cause, None, self._repeated.count))

    def explained(
        self, region: Region, cause: FailureCause, checkpoint: CheckpointId | None
    ) -> tuple[FailureCause | None, list[FailureKnown]]:
        """One more task of a failed region has failed. If it is the root, it counts instead; returns what ends the
        job then, if it has come too often, and what is to be made known. `checkpoint`: the one to restart from now.
        """
        if not self.history.is_explained_by(region, cause):
            return None, []
        counted = self._known_before(cause) or self._repeated.add(cause)
        decisive = self.history.explain(region, counted)
        self._event = cause, decisive
        unsaid = self._unsaid.pop(region, None)
        is_the_end = decisive.kind is FailureKind.REPEATED
        planned = None if is_the_end or unsaid is None else unsaid.restart
        restart = None if planned is None else Restart(planned.delay_ms, checkpoint)
        news = [] if unsaid is None else self._make_known(region, FailureKnown(decisive, restart, self._repeated.count))
        return decisive if is_the_end else None, news

    def explained_first(self, graph: ExecutionGraph, executions: Iterable[Execution]) -> list[Execution]:
        """These of the graph, in the order in which one cause makes them fail: first those of regions whose failure
        waits for its explanation. The cause that explains them is no other failure in the next ones.
        """
        return sorted(executions, key=lambda each: graph.region_of(each.vertex_id) not in self._unsaid)

    def settle(self, graph: ExecutionGraph) -> list[FailureKnown]:
        """An attempt has ended. When it was the last one of its region, nobody is left who could explain more."""
        over = [each for each in self._unsaid if all(one.state.is_terminal for one in graph.executions(each))]
        return [news for region in over for news in self._once(self._unsaid.pop(region))]

    def _make_known(self, region: Region, news: FailureKnown) -> list[FailureKnown]:
        if news.failure.is_secondhand:
            self._unsaid[region] = news
            return []
        return self._once(news)

    def _once(self, news: FailureKnown) -> list[FailureKnown]:
        if self._known is news.failure:
            return []
        self._known = news.failure
        return [news]
