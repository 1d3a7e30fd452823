"""SharedPace: what holds tasks of a job back for the sake of the whole: the slowest source of a group, and rates.

It joins WatermarkAlignment and RateLimits, which decide, with the AttemptOrders. Belongs to the JobMaster.
"""

from __future__ import annotations

from typing import TypeAlias

from ...messages import AnnounceWatermark, ExecutionAttemptId, ExecutionState, GrantPermits, JobGraph, ReportWatermark
from .attempt_orders import AttemptOrders, Orders
from .execution_graph import ExecutionGraph
from .rate_limits import RateEvent, RateLimits
from .watermark_alignment import WatermarkAlignment

PaceEvent: TypeAlias = ReportWatermark | RateEvent


class SharedPace:
    """One job's."""

    def __init__(self, job: JobGraph, graph: ExecutionGraph, orders: AttemptOrders) -> None:
        self._job_id = job.job_id
        self._graph = graph
        self._orders = orders
        self._alignment = WatermarkAlignment(job)
        self._limits = RateLimits(job, self._is_active)

    def on(self, event: PaceEvent, now_ms: float) -> Orders:
        """What the tasks concerned must know now."""
        if isinstance(event, ReportWatermark):
            return self._announce(event)
        orders: Orders = []
        for effect in self._limits.on(event, now_ms):
            orders += self._orders.send(effect.attempt_id, effect) if isinstance(effect, GrantPermits) else [effect]
        return orders

    def _announce(self, said: ReportWatermark) -> Orders:
        """To sources that wait for each other: how far the slowest is, now that one has said where it is."""
        execution = self._graph.execution(said.attempt_id)
        if execution is None:
            return []
        minimum_ms, members = self._alignment.report(execution.subtask, said)
        found = (self._graph.current(*subtask) for subtask in members)
        return [
            self._orders.tell(each, AnnounceWatermark(self._job_id, each.attempt_id, minimum_ms))
            for each in found
            if each is not None and each.slot is not None and not each.state.is_terminal
        ]

    def _is_active(self, attempt_id: ExecutionAttemptId) -> bool:
        """Not replaced, over or being cancelled."""
        execution = self._graph.execution(attempt_id)
        ends = execution is None or execution.state is ExecutionState.CANCELING or execution.state.is_terminal
        return not ends
