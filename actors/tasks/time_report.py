"""TimeReport: what a task says about its event time: in its metrics, and in the log when it stands still.

Reads the parts of the task and changes none. `event_time` is called from the TaskManager's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Set

from ...messages import HoldingChannel, HoldingSplit, OperatorId, TaskDeployment, TaskEventTime
from ..context import Clock
from ..flow.dates import is_date
from ..flow.elements import END_OF_TIME, NO_WATERMARK
from ..flow.shown_watermark import shown_watermark
from ..operators.assign_timestamps import AssignTimestamps
from ..operators.collector import OutputTag
from ..operators.operator import Operator
from ..operators.split_watermarks import SplitWatermarks
from .standstill_watch import Standstill, StandstillWatch
from .task_setup import TaskParts
from .task_watermarks import TaskWatermarks

log = logging.getLogger(__name__)

_LOOKS = 8
"""So often in the time after which a standstill is logged."""
_LATE_AGAIN = 10
"""Late records are logged again when there are ten times as many as the last time."""

_READ_BY = {".late": "late_tag", ".late_right": "late_right_tag"}
"""Of a stream's attributes: those of its operator."""


class TimeReport:
    """One attempt's. `warn_ms` None: nothing is logged."""

    def __init__(
        self,
        deployment: TaskDeployment,
        parts: TaskParts,
        watermarks: TaskWatermarks,
        assigner: AssignTimestamps | None,
        clock: Clock,
        warn_ms: int | None,
    ) -> None:
        self._deployment = deployment
        self._parts = parts
        self._watermarks = watermarks
        self._assigner = assigner
        self._clock = clock
        self._watch = None if warn_ms is None else StandstillWatch(warn_ms)
        self._pause_ms = (warn_ms or 0) / _LOOKS
        self._next_look_ms = 0.0
        self._said_late: dict[int, int] = {}
        """By operator of the chain: how many late records were logged last."""

    def event_time(self, is_held_back: bool) -> TaskEventTime:
        """How far it is now. `is_held_back`: by its outputs."""
        outputs, now_ms = self._parts.outputs, self._clock.now_ms()
        splits = () if self._splits is None else self._splits.all
        watermark_ms, wall_ms = outputs.watermark_ms, self._clock.wall_ms()
        has_lag = NO_WATERMARK < watermark_ms < END_OF_TIME and is_date(watermark_ms) == is_date(wall_ms)
        return TaskEventTime(
            input_watermark_ms=self._watermarks.current_ms,
            output_watermark_ms=watermark_ms,
            standing_ms=int(now_ms - outputs.moved_ms),
            lag_ms=wall_ms - watermark_ms if has_lag else None,
            is_idle=outputs.is_idle,
            is_held_back=is_held_back,
            late_records=sum(each.late_records for each in self._parts.chain.operators),
            assigner=OperatorId("") if self._assigner is None else self._assigner.context.operator_id,
            idle_after_ms=None if self._assigner is None else self._assigner.idle_after_ms,
            channel=self._holding_channel(now_ms),
            split=self._holding_split(now_ms),
            splits=len(splits),
            idle_splits=sum(split.is_idle for split in splits),
            paused_splits=sum(split.is_paused for split in splits),
            bound_ms=None if self._assigner is None else self._assigner.bound_ms,
        )

    def look(self, now_ms: float, records_in: int) -> None:
        """Log it, once, if event time stands still while records come, because one input or split holds it back."""
        if self._watch is None or now_ms < self._next_look_ms:
            return
        self._next_look_ms = now_ms + self._pause_ms
        watermark_ms = self._watermarks.current_ms if self._assigner is None else self._assigner.emitted_ms
        if watermark_ms == END_OF_TIME or not self._knows_event_time:
            return
        news = self._watch.look(now_ms, watermark_ms, records_in)
        if news is Standstill.BEGINS:
            log.warning(
                "%s: event time has stood still for %.0f s, at %s, while records come: %s",
                self._name,
                self._watch.stood_ms / 1000,
                shown_watermark(watermark_ms),
                self._reason(now_ms),
            )
        elif news is Standstill.ENDS:
            log.warning(
                "%s: event time goes on, at %s, after %.0f s",
                self._name,
                shown_watermark(watermark_ms),
                self._watch.stood_ms / 1000,
            )

    def say_late(self) -> None:
        """Log it that records were late, and again when there are ten times as many, if nobody reads `.late`: nothing
        else would show it.
        """
        read = {edge.output_tag for edge in self._deployment.outputs}
        for place, operator in enumerate(self._parts.chain.operators):
            count, said = operator.late_records, self._said_late.get(place, 0)
            if not count or count < said * _LATE_AGAIN or _reads_late(operator, read):
                continue
            self._said_late[place] = count
            how_many = f"{count:,} late records," if said else f"its first late records: {count:,} of them,"
            how_late = f" {_duration(operator.most_late_ms)} behind event time at most" if operator.most_late_ms else ""
            log.warning(
                "%s: operator %r has had %s: they are in no result. Let watermarks wait for longer (the bound in "
                "assign_timestamps)%s; the metrics count them",
                self._name,
                operator.context.name,
                f"{how_many}{how_late}".rstrip(","),
                _other_ways(operator),
            )

    @property
    def _splits(self) -> SplitWatermarks | None:
        return self._assigner.splits if self._assigner is not None and self._assigner.is_open else None

    @property
    def _name(self) -> str:
        where = self._deployment
        return f"{where.vertex_name} (subtask {where.subtask_index} of {where.parallelism})"

    @property
    def _knows_event_time(self) -> bool:
        """Whether any part of its input has a watermark: nothing is logged in a job without event time."""
        return (self._splits or self._watermarks).furthest_ms != NO_WATERMARK

    def _reason(self, now_ms: float) -> str:
        channel, split = self._holding_channel(now_ms), self._holding_split(now_ms)
        if split is not None and self._assigner is not None:
            stands = f"which stands at {shown_watermark(split.watermark_ms)} for {split.standing_ms / 1000:.0f} s"
            if split.split:
                holder = f"split {split.split!r} holds it back, {stands}"
            else:
                holder = "the event times of the records do not advance"
            has_limit = self._assigner.idle_after_ms is not None
            hint = "" if has_limit else "; if it may be empty for long, give assign_timestamps idle_after_ms="
            return f"{holder}{hint if split.split else ''}"
        if channel is None:
            return "all its inputs are idle"
        producer = next(each.producer for each in self._deployment.inputs if each.edge == channel.edge)
        return (
            f"it waits for subtask {channel.producer_subtask} of {producer or 'its input'}, which is at "
            f"{shown_watermark(channel.watermark_ms)} for {channel.standing_ms / 1000:.0f} s; "
            "`understudy watermarks` or job.explain_watermark follows it to its source"
        )

    def _holding_channel(self, now_ms: float) -> HoldingChannel | None:
        slowest = self._watermarks.slowest
        if slowest is None:
            return None
        channel = self._parts.gate.channels[slowest.channel]
        standing_ms = int(now_ms - slowest.moved_ms)
        return HoldingChannel(channel.edge, channel.producer_subtask, slowest.watermark_ms, standing_ms)

    def _holding_split(self, now_ms: float) -> HoldingSplit | None:
        slowest = None if self._splits is None else self._splits.slowest
        if slowest is None or self._watermarks.current_ms == END_OF_TIME:
            return None
        standing_ms = int(now_ms - slowest.moved_ms)
        behind_ms = getattr(slowest.generator, "most_behind_ms", None)
        return HoldingSplit(
            slowest.name, slowest.watermark_ms, standing_ms, slowest.is_paused, slowest.records, behind_ms
        )


def _reads_late(operator: Operator, read: Set[str]) -> bool:
    """Whether all its late records go to somebody. `read`: the names of the side outputs that have a reader."""
    names = {tag.name for tag in _late_outputs(operator).values()}
    return bool(names) and names <= read


def _late_outputs(operator: Operator) -> dict[str, OutputTag]:
    """The side outputs that it has for late records, by how the program reads them."""
    tags = {way: getattr(operator, name, None) for way, name in _READ_BY.items()}
    return {way: tag for way, tag in tags.items() if tag is not None}


def _other_ways(operator: Operator) -> str:
    """Besides the bound of watermarks: what the operator has for late records."""
    keeps = ", keep windows open for longer (.allowed_lateness)" if getattr(operator, "allows_lateness", False) else ""
    # partials come before windows, which have `.late`
    reads = list(_late_outputs(operator)) or ([".late"] if keeps else [])
    return f"{keeps}, or read them with {' and '.join(f'`{each}`' for each in reads)}" if reads else ""


def _duration(ms: int) -> str:
    return f"{ms:,} ms" if ms < 1000 else f"{ms / 1000:,.1f} s"
