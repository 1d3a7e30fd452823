"""What the API checks of event time before a program is submitted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...actors.joins.deduplicate import Deduplicate
from ...actors.joins.interval_join import IntervalJoin
from ...actors.joins.record_deduplicate import RecordDeduplicate
from ...actors.joins.record_interval_join import RecordIntervalJoin
from ...actors.joins.record_join import RecordJoin
from ...actors.joins.record_temporal_join import RecordTemporalJoin
from ...actors.joins.regular_join import RegularJoin
from ...actors.joins.tagged_records import TagSide
from ...actors.joins.temporal_join import TemporalJoin
from ...actors.joins.window_join import WindowJoin
from ...actors.operators.assign_timestamps import Alignment, AssignTimestamps
from ...actors.operators.filter import Filter
from ...actors.operators.flat_map import FlatMap
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.loops import RoundsHead
from ...actors.operators.map import Map
from ...actors.operators.map_batches import MapBatches
from ...actors.operators.source import Source
from ...actors.operators.source_reader import assigner_behind
from ...actors.operators.watermark_generators import WatermarkStrategy
from ...actors.windows.assigners import WindowAssigner
from ...actors.windows.columnar_windows import ColumnarWindows
from ...actors.windows.window_operator import WindowOperator
from ...messages import Partitioning, shown
from ...messages.whose_code import is_ours
from ...state.kinds.durations import duration_ms
from .chaining import Size
from .errors import InvalidProgram
from .operator_checks import function_of
from .stream_graph import StreamEdge, StreamNode
from .timer_methods import OF_EVENT_TIME, sets_a_timer
from .window_parts import check_watermark_generator

log = logging.getLogger(__name__)

_STRATEGIES = "bounded_out_of_orderness(5_000), monotonous(), punctuated(function) or a WatermarkStrategy of your own"


def checked_time(time: Any) -> str | Callable[[Any], Any]:
    """The name of a column, or a function. Raises InvalidProgram."""
    if isinstance(time, str):
        return time
    if not callable(time):
        raise InvalidProgram(
            f"assign_timestamps: wanted the name of the time column, or a function of the record, found {shown(time)}"
        )
    return function_of(time, "assign_timestamps")  # type: ignore[no-any-return]


def checked_strategy(watermarks: Any) -> WatermarkStrategy:
    """Something that makes watermark generators. Raises InvalidProgram, and InvalidOperator for what it makes."""
    if isinstance(watermarks, type) or not callable(getattr(watermarks, "generator", None)):
        raise InvalidProgram(f"assign_timestamps: wanted {_STRATEGIES} as watermarks, found {shown(watermarks)}")
    if not is_ours(type(watermarks)):
        check_watermark_generator(watermarks.generator())
    return watermarks  # type: ignore[no-any-return]


def checked_ms(name: str, value: Any) -> int | None:
    """A duration of assign_timestamps, or None. Raises InvalidProgram."""
    return None if value is None else duration_ms(f"assign_timestamps: {name}", value, error=InvalidProgram)


def checked_alignment(max_drift_ms: Any, group: Any) -> Alignment | None:
    """How subtasks and splits wait for each other, if they do. Raises InvalidProgram."""
    drift_ms = checked_ms("max_drift_ms", max_drift_ms)
    if not isinstance(group, str) or not group:
        raise InvalidProgram(f"assign_timestamps: wanted the name of a group, found {shown(group)}")
    return None if drift_ms is None else Alignment(group, drift_ms)


def check_assigners(chains: Sequence[Sequence[StreamNode]], sizes: Mapping[int, Size]) -> None:
    """What goes by the splits of a source must stand in its chain. Raises InvalidProgram; warns of lost splits.

    `sizes`: each node's, by its position.
    """
    for chain in chains:
        behind = [node.operator for node in chain[1:]] if chain[0].role == "source" else []
        assigner = assigner_behind(behind)
        for node in chain:
            if not isinstance(node.operator, AssignTimestamps) or node.operator is assigner:
                continue
            if node.operator.alignment is not None:
                advice = _same_parallelism(node, sizes) or (
                    "put assign_timestamps behind the source, or behind map, filter and flat_map only, with the same "
                    "parallelism, before the stream branches"
                )
                raise InvalidProgram(
                    f"operator {node.name!r} aligns watermarks (max_drift_ms), but runs in no task of a source: "
                    f"{advice}"
                )
            source = _origin(node)
            if isinstance(source, Source) and _reads_splits(source):
                log.warning(
                    "operator %r does not see the splits of %s, and keeps one watermark for all: where one of them is "
                    "read ahead, records of the others are late%s",
                    node.name,
                    type(source).__name__,
                    f": {same}" if (same := _same_parallelism(node, sizes)) else _RIGHT_BEHIND,
                )


_RIGHT_BEHIND = (
    ". Put assign_timestamps right behind the source; map, filter and flat_map may stand between. A function of the "
    "record may read the time out of it"
)


def _same_parallelism(assigner: StreamNode, sizes: Mapping[int, Size]) -> str:
    """What to do where it stands right behind its source, and parallelisms alone differ on the way; empty elsewhere."""
    way = [assigner]
    while len(way[-1].inputs) == 1 and way[-1].inputs[0].partitioning in (None, Partitioning.FORWARD):
        way.append(way[-1].inputs[0].source)
    source, *behind = reversed(way)
    if source.role != "source" or assigner_behind([node.operator for node in behind]) is not assigner.operator:
        return ""
    wanted = sizes[source.position].parallelism
    other = next((node for node in behind if sizes[node.position].parallelism != wanted), None)
    if other is None:
        return ""
    return (
        f"the source {source.name!r} has parallelism {wanted}, and {other.name!r} {sizes[other.position].parallelism}: "
        f"give both the same, as by parallelism={wanted} at {other.name!r}"
    )


def tell_assigners(windows: WindowAssigner, edges: Sequence[StreamEdge]) -> None:
    """Of windows whose ms may well be meant as seconds: where times are assigned it is known whether they are dates."""
    written = windows.as_if_seconds if isinstance(windows, WindowAssigner) else ""
    if written and windows.time == "processing":
        log.warning(
            "windows by the clock: the durations of %s are milliseconds. If seconds are meant, write seconds=...; "
            "ms=... says that they are not",
            written,
        )
        return
    ask_of_event_time(written, edges)


def ask_of_event_time(written: str, edges: Iterable[StreamEdge]) -> None:
    """The same of a call with such durations of event time, as `as_if_seconds` gives it."""
    for _, assigner in assigners_before(edges) if written else ():
        assigner.as_if_seconds.append(written)


def ask_of_time_to_live(written: str, time: str, edges: Iterable[StreamEdge]) -> None:
    """The same of a call with such a duration by this time: "event" or "processing"."""
    if time == "event":
        ask_of_event_time(written, edges)
    elif written:
        log.warning(
            "%s: the duration is milliseconds of the clock. If seconds are meant, write seconds=...; ms=... says that "
            "they are not",
            written,
        )


def assigners_before(edges: Iterable[StreamEdge]) -> Iterator[tuple[StreamNode, AssignTimestamps]]:
    """The nearest assign_timestamps on each way back to a source; none beyond the beginning of rounds, which have times
    of their own.
    """
    waiting, seen = [edge.source for edge in edges], set[int]()
    while waiting:
        node = waiting.pop()
        if node.position in seen:
            continue
        seen.add(node.position)
        if isinstance(node.operator, AssignTimestamps):
            yield node, node.operator
        elif not isinstance(node.operator, RoundsHead):
            waiting += [edge.source for edge in node.inputs]


def check_event_times(nodes: Sequence[StreamNode]) -> None:
    """Whether what goes by event time can have any: records that come from a source through functions alone have times
    only where there is an assign_timestamps. Raises InvalidProgram, which names the input.
    """
    for node in nodes:
        if _is_in_rounds(node) or not goes_by_event_time(node.operator):
            continue
        for edge in node.inputs:
            if (source := _timeless_source(edge.source)) is not None:
                which = ("first ", "second ")[edge.input_index] if node.operator.inputs == 2 else ""
                raise InvalidProgram(
                    f"operator {node.name!r} goes by event time, and the records of its {which}input, from {source!r}, "
                    'have none: put stream.assign_timestamps("column", bounded_out_of_orderness(ms)) before it'
                )


def warn_of_timers_that_wait(nodes: Sequence[StreamNode]) -> None:
    """Of timers of event time behind a source without watermarks: they wait until it ends, and nothing is wrong."""
    for node in nodes:
        kind = type(node.operator)
        if not isinstance(node.operator, KeyedOperator) or is_ours(kind) or _is_in_rounds(node):
            continue
        sources = [_without_watermarks(edge.source) for edge in node.inputs]
        holding = [each for each in sources if each is not None]
        endless = [each for each in holding if not each.bounded]
        if not endless and not all(sources):
            continue
        if (place := sets_a_timer(kind, OF_EVENT_TIME)) is None:
            continue
        held_by = [*endless, *holding][0]
        log.warning(
            "operator %r sets timers of event time (%s), and there is no assign_timestamps between it and source %r: "
            "event time does not advance there, so they %s. For timers by the records' times put "
            'stream.assign_timestamps("column", bounded_out_of_orderness(ms)) before it%s; for those of the clock '
            "write self.timers.at_processing_time(self.processing_time() + ms)",
            node.name,
            place,
            held_by.name,
            "never fire" if endless else "fire all at once, when the data has ended",
            _OF_RULES if node.inputs[sources.index(held_by)].partitioning is Partitioning.BROADCAST else "",
        )


_OF_RULES = (
    ", or, if its records have no times and are to hold nothing back, write "
    ".assign_timestamps(lambda record: 0, monotonous(), idle_after_ms=1_000) before .broadcast()"
)


def goes_by_event_time(operator: Any) -> bool:
    """Of the built-in ones."""
    if isinstance(operator, WindowOperator):
        return operator.time == "event"
    if isinstance(operator, _WITH_LIFETIME):
        return operator.lifetime.goes_by_event_time
    return isinstance(operator, _BY_EVENT_TIME)


def _is_in_rounds(node: StreamNode) -> bool:
    """Then its records have the round as their time, wherever they come from."""
    return node.loop is not None and isinstance(node.loop.operator, RoundsHead)


def _timeless_source(node: StreamNode) -> str | None:
    """The name of a source whose records come here without times; None where that cannot be known."""
    if isinstance(node.operator, Source):
        return node.name
    if not isinstance(node.operator, _KEEPS_TIMES):
        return None
    return next(filter(None, (_timeless_source(edge.source) for edge in node.inputs)), None)


def _without_watermarks(node: StreamNode) -> StreamNode | None:
    """A source from which a way leads through here without an assign_timestamps; one without end, if there is any."""
    waiting, seen, found = [node], set[int](), list[StreamNode]()
    while waiting:
        node = waiting.pop()
        if node.position in seen or isinstance(node.operator, AssignTimestamps | RoundsHead):
            continue
        seen.add(node.position)
        waiting += [edge.source for edge in node.inputs]
        if isinstance(node.operator, Source):
            found.append(node)
    return min(found, key=lambda each: each.bounded, default=None)


_BY_EVENT_TIME = (ColumnarWindows, IntervalJoin, RecordIntervalJoin, TemporalJoin, RecordTemporalJoin, WindowJoin)

_WITH_LIFETIME = (Deduplicate, RecordDeduplicate, RegularJoin, RecordJoin)
"""Operators that keep records for a while, by event time or by the clock."""

_KEEPS_TIMES = (Map, Filter, FlatMap, MapBatches, TagSide)
"""Operators that give no records a time."""


def _reads_splits(source: Source) -> bool:
    return type(source).current_splits is not Source.current_splits and not source.splits_only_after_rescale


def _origin(node: StreamNode) -> Any:
    """The operator that the stream begins with, if there is just one."""
    while len(node.inputs) == 1:
        node = node.inputs[0].source
    return node.operator
