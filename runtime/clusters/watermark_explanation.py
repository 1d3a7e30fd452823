"""WatermarkExplanation: why event time is no further at an operator: which input holds it, up to the source's split.

Made from what the tasks said with their last heartbeats (JobWatermarks), so it is a heartbeat old at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ...actors.flow.shown_watermark import shown_watermark
from ...messages import (
    END_OF_TIME,
    NO_WATERMARK,
    HoldingSplit,
    JobStatus,
    JobVertex,
    JobWatermarks,
    SubtaskIndex,
    TaskEventTime,
    VertexId,
)
from ...messages.known_names import there_are
from ..web.page_view import STANDS_MS
from .job_errors import UnknownOperator


class HeldBy(Enum):
    """What holds event time back, at the end of the path."""

    NOTHING = "nothing"
    """The data has ended."""
    RECORDS = "records"
    """A source, or a split of it, whose records bring event time no further."""
    BOUND = "bound"
    """A bound that keeps event time far behind the newest record, and that records hardly need."""
    NO_RECORDS = "no records"
    """A source, or a split of it, that has brought no record yet."""
    ALIGNMENT = "alignment"
    """A split that is not read, because it is ahead of others of its group."""
    BACK_PRESSURE = "back-pressure"
    """A task that waits for its outputs, or a watermark that waits behind records in a channel."""
    NO_ASSIGNER = "no assign_timestamps"
    """A source without event time."""
    IDLE = "idle"
    """All inputs are idle: event time goes on with the next record."""
    NOT_RUNNING = "not running"
    """A task that has not reported: it does not run, or has only begun to."""


_ADVICE = {
    HeldBy.NOTHING: "",
    HeldBy.RECORDS: (
        "See whether this source still brings records, and whether their times advance. If it may be silent for long, "
        "give its assign_timestamps idle_after_ms, so that it is not waited for then."
    ),
    HeldBy.BOUND: (
        "If windows fire too late, give its assign_timestamps a smaller bound; records that are further behind are "
        "late."
    ),
    HeldBy.NO_RECORDS: (
        "If this source may be empty, give its assign_timestamps idle_after_ms, so that it is not waited for then."
    ),
    HeldBy.ALIGNMENT: "It goes on when the slowest of its group has caught up: see why that one is behind.",
    HeldBy.BACK_PRESSURE: "The tasks behind it are slow: give them a higher parallelism, or make them faster.",
    HeldBy.NO_ASSIGNER: (
        "If the operator has windows, joins or timers by event time, put assign_timestamps between this source and "
        "it. Else nothing is wrong."
    ),
    HeldBy.IDLE: (
        "Nothing is wrong: event time goes on with the next record. For results without new records let windows fire "
        "by processing time."
    ),
    HeldBy.NOT_RUNNING: "See how the job is: job.details(), or `understudy list`.",
}

_NEEDED = 10
"""A bound of this many times what records needed is large."""
_KNOWN_RECORDS = 100
"""This many show what they need."""

_MAY_GO_ON = (HeldBy.RECORDS, HeldBy.ALIGNMENT, HeldBy.BACK_PRESSURE)
"""What holds event time in a healthy job, too."""


@dataclass(frozen=True, slots=True)
class SubtaskWatermark:
    """How far event time is in one subtask of an operator."""

    subtask_index: int
    watermark_ms: int | None
    """None: it has not reported; it does not run, or has only begun to."""
    standing_ms: int = 0
    """For how long its task has sent on nothing newer."""
    is_idle: bool = False
    late_records: int = 0
    is_over: bool = False
    """Its job has ended."""

    def __str__(self) -> str:
        if self.watermark_ms is None:
            return f"subtask {self.subtask_index}: {'does not run' if self.is_over else 'has not reported'}"
        stands = f", for {_seconds(self.standing_ms)}" if self.watermark_ms != END_OF_TIME else ""
        late = f", {self.late_records:,} late records" if self.late_records else ""
        idle = ", idle" if self.is_idle else ""
        return f"subtask {self.subtask_index}: {shown_watermark(self.watermark_ms)}{stands}{idle}{late}"


@dataclass(frozen=True, slots=True)
class WatermarkExplanation:
    """`str()` of it is meant to be read."""

    operator: str
    subtasks: tuple[SubtaskWatermark, ...]
    behind: int
    """The subtask that is furthest behind."""
    path: tuple[str, ...]
    """From that subtask upstream: who waits for whom."""
    held_by: HeldBy
    advice: str
    """What to do about it; empty if nothing is wrong."""
    goes_on: bool = False
    """Whether event time came further just now: what holds it is then only where it is slowest."""

    @property
    def has_no_event_time(self) -> bool:
        """Whether nobody assigns event times to what comes here."""
        return self.held_by is HeldBy.NO_ASSIGNER

    def __str__(self) -> str:
        lines = [f"event time at {self.operator!r}:", *(f"  {each}" for each in self.subtasks)]
        lines += [f"subtask {self.behind} is furthest behind:"] if len(self.subtasks) > 1 else ["why:"]
        lines += [f"  {step}" for step in self.path]
        last = "It goes on: nothing stands still." if self.goes_on else self.advice
        return "\n".join([*lines, last] if last else lines)


def explain(report: JobWatermarks, operator: str) -> WatermarkExplanation:
    """Why event time is no further at this operator, given by name or id. Raises UnknownOperator."""
    for vertex in report.vertices:
        for place, each in enumerate(vertex.operators):
            if operator in (each.name, each.operator_id):
                return _Search(report).explain(vertex, place)
    known = [each.name for vertex in report.vertices for each in vertex.operators]
    raise UnknownOperator(f"job {report.name!r} has no operator {operator!r}{there_are(operator, known)}")


def explain_all(report: JobWatermarks) -> Iterator[WatermarkExplanation]:
    """The same for the last operator of each chain."""
    search = _Search(report)
    return (search.explain(vertex, len(vertex.operators) - 1) for vertex in report.vertices)


class _Search:
    def __init__(self, report: JobWatermarks) -> None:
        self._report = report
        self._vertices = {vertex.vertex_id: vertex for vertex in report.vertices}
        self._tasks = {(task.vertex_id, task.subtask_index): task for task in report.tasks}
        self._fed = {edge.target for edge in report.edges}

    def explain(self, vertex: JobVertex, place: int) -> WatermarkExplanation:
        subtasks = tuple(self._subtask(vertex, place, index) for index in range(vertex.parallelism))
        behind = min(subtasks, key=_rank).subtask_index
        operator = vertex.operators[place].name
        is_behind_assigner = self._is_behind_assigner(vertex, place, behind)
        path, held_by = self._follow(vertex, SubtaskIndex(behind), operator, is_behind_assigner)
        goes_on = held_by in _MAY_GO_ON and subtasks[behind].standing_ms <= STANDS_MS
        advice = "" if goes_on else _ADVICE[held_by]
        return WatermarkExplanation(operator, subtasks, behind, tuple(path), held_by, advice, goes_on)

    def _subtask(self, vertex: JobVertex, place: int, index: int) -> SubtaskWatermark:
        time = self._time(vertex.vertex_id, index)
        if self._report.status.is_terminal and time is None:
            is_through = self._report.status is JobStatus.FINISHED
            return SubtaskWatermark(index, END_OF_TIME if is_through else None, is_over=True)
        if time is None:
            return SubtaskWatermark(index, None)
        is_output = self._is_behind_assigner(vertex, place, index) or vertex.vertex_id not in self._fed
        watermark_ms = time.output_watermark_ms if is_output else time.input_watermark_ms
        return SubtaskWatermark(index, watermark_ms, time.standing_ms, time.is_idle, time.late_records)

    def _follow(
        self, vertex: JobVertex, index: SubtaskIndex, operator: str, is_output: bool
    ) -> tuple[list[str], HeldBy]:
        """`is_output`: whether the watermark in question is what the task's own assigner has made."""
        task = self._tasks.get((vertex.vertex_id, index))
        name = f"{vertex.name!r}, subtask {index}"
        if self._report.status is JobStatus.FINISHED:
            return [f"{name} has come to the end of its data: the job is finished"], HeldBy.NOTHING
        if self._report.status.is_terminal:
            return [f"{name} does not run: the job is {self._report.status.value}"], HeldBy.NOT_RUNNING
        if task is None or task.event_time is None:
            return [f"{name} has not reported: it does not run, or has only begun to"], HeldBy.NOT_RUNNING
        time = task.event_time
        if is_output:
            return _at_the_assigner(name, time)
        if vertex.vertex_id not in self._fed:
            if time.output_watermark_ms == END_OF_TIME:
                return [f"{name} has come to the end of its data"], HeldBy.NOTHING
            source = vertex.operators[0].name
            where = "behind it" if source == operator else f"between {source!r} and {operator!r}"
            missing = f"no assign_timestamps {where}"
            return [f"{name} has sent no watermark yet: {missing}"], HeldBy.NO_ASSIGNER
        if time.input_watermark_ms == END_OF_TIME:
            return [f"{name} has come to the end of its data"], HeldBy.NOTHING
        if time.channel is None:
            return [f"{name}: all its inputs are idle"], HeldBy.IDLE
        channel = time.channel
        producer = self._vertices[self._report.edges[channel.edge].source]
        step = (
            f"{name} waits for {producer.name!r}, subtask {channel.producer_subtask}: "
            f"{shown_watermark(channel.watermark_ms)}, for {_seconds(channel.standing_ms)}"
        )
        feeding = self._time(producer.vertex_id, channel.producer_subtask)
        if feeding is not None and feeding.output_watermark_ms > channel.watermark_ms:
            sent = f"{producer.name!r}, subtask {channel.producer_subtask} is at"
            on_the_way = f"{sent} {shown_watermark(feeding.output_watermark_ms)}: that waits behind records on the way"
            return [step, on_the_way], HeldBy.BACK_PRESSURE
        is_made_there = feeding is not None and bool(feeding.assigner)
        path, held_by = self._follow(producer, channel.producer_subtask, operator, is_made_there)
        return [step, *path], held_by

    def _time(self, vertex_id: VertexId, index: int) -> TaskEventTime | None:
        task = self._tasks.get((vertex_id, SubtaskIndex(index)))
        return None if task is None else task.event_time

    def _is_behind_assigner(self, vertex: JobVertex, place: int, index: int) -> bool:
        time = self._time(vertex.vertex_id, index)
        return time is not None and any(each.operator_id == time.assigner for each in vertex.operators[: place + 1])


def _at_the_assigner(name: str, time: TaskEventTime) -> tuple[list[str], HeldBy]:
    """Here watermarks are made: what its splits say."""
    if time.output_watermark_ms == END_OF_TIME:
        return [f"{name} has come to the end of its data"], HeldBy.NOTHING
    if time.split is None:
        none = "it has no splits" if not time.splits else "it has had no record for longer than its idle_after_ms"
        return [f"{name} is idle: {none}"], HeldBy.IDLE
    bound = f", {_seconds(time.bound_ms)} behind the newest record" if time.bound_ms and time.split.records else ""
    step = f"{name}: {_split(time.split, time.splits)}{bound}"
    counts = [(time.idle_splits, "idle, and not waited for"), (time.paused_splits, "paused, being ahead of the others")]
    others = "; ".join(
        f"{count} of {time.splits} splits {'is' if count == 1 else 'are'} {what}" for count, what in counts if count
    )
    path = [step, *([others] if others and time.splits > 1 else [])]
    if time.is_held_back:
        return [*path, "it waits for its outputs (back-pressure), so it is not read"], HeldBy.BACK_PRESSURE
    if time.split.is_paused:
        return [*path, "it is ahead of others of its group by more than max_drift_ms, and paused"], HeldBy.ALIGNMENT
    if time.split.watermark_ms == NO_WATERMARK and not time.split.records:
        return [*path, "it has brought no record yet"], HeldBy.NO_RECORDS
    if held := _by_a_large_bound(time.bound_ms, time.split):
        return [*path, held], HeldBy.BOUND
    return path, HeldBy.RECORDS


def _by_a_large_bound(bound_ms: int | None, split: HoldingSplit) -> str:
    """How a bound that its records hardly need holds back a split that goes on; empty if none does."""
    behind_ms, watermark_ms = split.most_behind_ms, split.watermark_ms
    is_known = split.records >= _KNOWN_RECORDS and split.standing_ms <= STANDS_MS
    if bound_ms is None or behind_ms is None or bound_ms < behind_ms * _NEEDED or not is_known:
        return ""
    return (
        f"the bound of {bound_ms:,} ms holds it back: newest record {shown_watermark(watermark_ms + bound_ms + 1)}, "
        f"watermark {shown_watermark(watermark_ms)}; no record was more than {_seconds(behind_ms)} behind the newest "
        "before it"
    )


def _split(split: HoldingSplit, count: int) -> str:
    which = f"split {split.split!r} of {count}" if split.split else "its records"
    return f"{which}: {shown_watermark(split.watermark_ms)}, for {_seconds(split.standing_ms)}"


def _rank(subtask: SubtaskWatermark) -> tuple[bool, int]:
    """Those that do not run first, and those that are idle last."""
    return subtask.is_idle, NO_WATERMARK - 1 if subtask.watermark_ms is None else subtask.watermark_ms


def _seconds(ms: int) -> str:
    return f"{ms / 1000:,.1f} s"
