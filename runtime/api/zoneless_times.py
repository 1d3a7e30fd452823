"""Whether windows of local days meet event times that say no time zone. They count as UTC, so each such day would begin
hours beside midnight, and a date would be a moment of the day before or after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

import pyarrow.types as pt

from ...actors.flow.key_selector import getter_of
from .event_time import assigners_before
from .samples import samples_of
from .stream_graph import StreamEdge
from .warned import warn


def warn_of_zoneless_times(windows: Any, edges: Iterable[StreamEdge]) -> None:
    """Looks at the columns, or at the records of a collection, that times are taken from."""
    zone = getattr(windows, "tz", None)
    if zone in (None, "UTC"):
        return
    for node, assigner in assigners_before(edges):
        time = assigner.column
        if time is not None and (found := _zoneless(time, node.inputs)):
            value = f"row[{time!r}]"
            if found == "dates":
                aware = f"datetime.combine({value}, time(12), ZoneInfo({zone!r}))"
            else:
                aware = f"{value}.replace(tzinfo=ZoneInfo({zone!r}))"
            warn(
                f"window: days of tz={zone!r} begin at local midnight, and the event times of {node.name!r} are "
                f"{found} in the column {time!r}, which say no time zone and count as UTC: if they are local, give "
                f"them their zone before assign_timestamps, as with .map(lambda row: {{**row, {time!r}: {aware}}})"
            )


def _zoneless(time: str, edges: Iterable[StreamEdge]) -> str:
    """Which of the times without a zone they are; empty where they have one, are numbers, or are not known."""
    for edge in edges:
        if edge.schema is not None and time in edge.schema.names:
            kind = edge.schema.field(time).type
            if pt.is_date(kind):
                return "dates"
            if pt.is_timestamp(kind) and kind.tz is None:
                return "timestamps"
        for sample in filter(None, samples_of([edge])):
            for value in (getter_of(time, each)(each) for each in sample.records):
                if type(value) is date:
                    return "dates"
                if isinstance(value, datetime) and value.tzinfo is None:
                    return "datetimes"
    return ""
