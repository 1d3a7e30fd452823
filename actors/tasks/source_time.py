"""SourceTime: a task's source, polled as its group allows, and reported to its group.

Where `assign_timestamps(max_drift_ms=...)` stands behind the source, it reports how far it is, and learns how far the
slowest of the group is: what is ahead by more than the drift is not read until the others have caught up. Flink:
SourceOperator (watermark alignment, FLIP-182, FLIP-217), which runs ahead freely until it learns the first minimum;
here it is a batch at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...messages import NO_WATERMARK, ReportWatermark, TaskDeployment
from ..context import Clock, Ref
from ..flow.elements import Batch
from ..operators.operator import Operator
from ..operators.source import Source, SourceState
from ..operators.source_reader import SourceReader
from .unwoken_source import UnwokenSource

REPORT_INTERVAL_MS = 100
"""So often at most, but when it becomes idle, active or paused. The TaskManager repeats it with each heartbeat."""


class SourceTime:
    """One attempt's. `behind`: the operators behind the source in the task; `owner`: the TaskManager."""

    def __init__(
        self, source: Source, behind: Sequence[Operator], deployment: TaskDeployment, owner: Ref, clock: Clock
    ) -> None:
        self._reader = SourceReader(source, behind)
        self._unwoken = UnwokenSource(source)
        self._deployment = deployment
        self._owner = owner
        self._clock = clock
        self._alignment = None if self._reader.assigner is None else self._reader.assigner.alignment
        self._has_ended = False
        self._said: tuple[bool, bool, int] | None = None
        self._said_ms = 0.0

    @property
    def is_paused(self) -> bool:
        """Whether it is not polled until others have caught up."""
        return self._reader.is_paused

    def begin(self) -> None:
        """The source stands where it goes on."""
        self._reader.settle()
        self.align(NO_WATERMARK)
        self._say()

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        """The next batch. Raises what the source does, and UnwantedResult."""
        polled = self._reader.poll()
        if polled is not None:
            self._unwoken.gave()
        if self._alignment is not None:
            self._say()
        return polled

    def poll_delay_ms(self) -> float | None:
        """After None: when to poll again at the latest. Raises what the source does."""
        return self._unwoken.delay_ms()

    def align(self, minimum_ms: int) -> None:
        """The slowest of its group is this far."""
        if self._reader.assigner is not None:
            self._reader.assigner.align(minimum_ms)

    def end(self) -> None:
        """Its data has ended: nobody waits for it any more."""
        self._has_ended = True
        self._say()

    def report(self) -> ReportWatermark | None:
        """How far it is, for its group; None if it is in none. From any thread."""
        alignment, assigner = self._alignment, self._reader.assigner
        if alignment is None or assigner is None or not assigner.is_open:
            return None
        where, splits = self._deployment, assigner.splits
        return ReportWatermark(
            where.job_id,
            where.attempt_id,
            alignment.group,
            alignment.max_drift_ms,
            NO_WATERMARK if splits.is_idle else splits.watermark_ms,
            not (self._has_ended or splits.is_idle),
        )

    def _say(self) -> None:
        report = self.report()
        if report is None:
            return
        now_ms, state = self._clock.now_ms(), (report.is_waited_for, self.is_paused, report.watermark_ms)
        is_due = now_ms >= self._said_ms + REPORT_INTERVAL_MS
        if self._said is None or state[:2] != self._said[:2] or (is_due and state != self._said):
            self._said, self._said_ms = state, now_ms
            self._owner.tell(report)
