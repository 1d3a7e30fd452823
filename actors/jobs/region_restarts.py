"""RegionRestarts: which regions of a job wait to be deployed, and for what. A value machine of the JobMaster.

    deployed --a task fails--> delayed --the strategy's delay is over--> waiting --tasks ended, slots free--> deployed
    (a new job begins here) -----------------------------------------------^

It decides when, and whether, a region is tried again; it does not cancel and does not deploy. Timers that were set
before the last failure mean nothing any more: each carries the generation in which it was set.
Flink: RestartPipelinedRegionFailoverStrategy, and the scheduler's wait for slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...messages import FailureCause, JobGraph
from ..checkpoints.checkpoint_effects import Schedule
from ..errors import NoResourceAvailable
from ..job_graph import Region, SubtaskKey
from .execution_graph import ExecutionGraph
from .job_effects import CancelOverdue, RestartDue, SlotsOverdue
from .restart_strategy import RestartStrategy
from .slot_pool import SlotId, SlotPool


class RegionRestarts:
    """The regions of one job."""

    def __init__(
        self, job: JobGraph, graph: ExecutionGraph, slots: SlotPool, strategy: RestartStrategy, slot_timeout_ms: int
    ) -> None:
        self.count = 0
        """How many restarts there were."""
        self._job = job
        self._graph = graph
        self._slots = slots
        self._strategy = strategy
        self._slot_timeout_ms = slot_timeout_ms
        self._delayed: set[Region] = set()
        self._waiting: set[Region] = set()
        self._generation = 0
        self._delay_ms: int | None = None
        """Of the last failure that was counted."""

    def __contains__(self, region: Region) -> bool:
        """Whether it is delayed or waiting."""
        return region in self._waiting or region in self._delayed

    @property
    def are_over(self) -> bool:
        """Whether every region is deployed."""
        return not self._waiting and not self._delayed

    def failed(self, region: Region, now_ms: float, is_new: bool) -> Schedule[RestartDue] | None:
        """Try this region again after the delay that the strategy gives; None: it is to be given up, and the job.
        However many regions fail of it, a failure counts once: `is_new` for the first.
        """
        if is_new:
            self._delay_ms = self._strategy.on_failure(now_ms)
            self.count += self._delay_ms is not None
        delay_ms = self._delay_ms
        if delay_ms is None:
            return None
        self._generation += 1
        self._delayed.add(region)
        return Schedule(delay_ms, RestartDue(region))

    def withdraw(self, region: Region) -> None:
        """The restart of this region was decided before the cause was known, and will not be: it does not count."""
        if region in self:
            self.count -= 1

    def delay_is_over(self, region: Region) -> list[Schedule[SlotsOverdue]]:
        """It waits only for its tasks' end and for slots now; returns nothing for a region that is not delayed."""
        if region not in self._delayed:
            return []
        self._delayed.discard(region)
        return [self.await_slots([region])]

    def await_slots(self, regions: Iterable[Region]) -> Schedule[SlotsOverdue]:
        """These regions may be deployed as soon as they can be."""
        self._waiting.update(regions)
        return Schedule(self._slot_timeout_ms, SlotsOverdue(self._generation))

    def deployable(self) -> Iterator[tuple[Region, Mapping[SubtaskKey, SlotId]]]:
        """The waiting regions whose tasks have ended and for which there are slots, which are taken.

        They wait no more when they are handed out. The caller may give the job up in between: then no more come.
        """
        for region in sorted(self._waiting, key=sorted):
            is_over = all(execution.state.is_terminal for execution in self._graph.executions(region))
            if is_over and region in self._waiting:
                try:
                    placement = self._slots.place(self._job, region)
                except NoResourceAvailable:
                    continue
                self._waiting.discard(region)
                yield region, placement

    def overdue(self, timer: SlotsOverdue, why_missing: str) -> FailureCause | None:
        """Slots have been waited for long enough: what the job fails with, if they are missing still.

        `why_missing`: why a TaskManager has not registered, if that is known.
        """
        if not self.is_current(timer):
            return None
        for region in sorted(self._waiting, key=sorted):
            try:
                self._slots.place(self._job, region)
            except NoResourceAvailable as error:
                why = f"; {why_missing}" if why_missing else ""
                return FailureCause("NoResourceAvailable", f"after {self._slot_timeout_ms} ms: {error}{why}")
        return None

    def cancel_overdue_after(self, timeout_ms: int) -> Schedule[CancelOverdue]:
        """The timer for tasks that are being cancelled now."""
        return Schedule(timeout_ms, CancelOverdue(self._generation))

    def is_current(self, timer: SlotsOverdue | CancelOverdue) -> bool:
        """Whether no region has failed since it was set."""
        return timer.generation == self._generation

    def give_up(self) -> None:
        """The job ends: nothing is deployed any more."""
        self._waiting.clear()
        self._delayed.clear()
        self._generation += 1
