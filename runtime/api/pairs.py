"""Which operators give tuples of records, in which names of columns are not to be found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ...actors.joins.record_interval_join import RecordIntervalJoin
from ...actors.joins.record_join import RecordJoin
from ...actors.joins.record_temporal_join import RecordTemporalJoin
from ...actors.joins.record_top_n import RecordTopN
from ...actors.joins.tagged_records import CoGroup
from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.async_functions import AsyncFilter
from ...actors.operators.filter import Filter
from ...actors.windows.window_operator import WindowOperator
from .errors import UnknownColumn
from .stream_graph import StreamEdge, StreamNode

_PLACE = re.compile(r"_[1-9]\d*")
"""How an item of a tuple is called."""


def refuse_names_in_pairs(method: str, names: Sequence[Any], edges: Iterable[StreamEdge]) -> None:
    """Raises UnknownColumn for a name of a column, where all that comes along one of these are tuples of records."""
    wrong = [name for name in names if isinstance(name, str) and not _PLACE.fullmatch(name)]
    for edge in edges if wrong else ():
        if not edge.output_tag and (found := _tuples_of(edge.source)):
            node, shape = found
            raise UnknownColumn(
                f"{method}: results of {node.name!r} are {shape}, which have no {wrong[0]!r}: write map(...) behind it "
                "that makes records with names of them, or a function of the tuple in place of the name"
            )


def _tuples_of(node: StreamNode) -> tuple[StreamNode, str] | None:
    """The operator that makes them, and how they are called."""
    operator: Any = node.operator
    if isinstance(operator, Filter | AsyncFilter | AssignTimestamps):
        each = [None if edge.output_tag else _tuples_of(edge.source) for edge in node.inputs]
        return each[0] if all(each) else None
    if isinstance(operator, RecordJoin | RecordIntervalJoin | RecordTemporalJoin | RecordTopN):
        return node, operator.results
    if isinstance(operator, WindowOperator) and isinstance(operator.function, CoGroup):
        return (node, operator.function.results) if operator.function.results else None
    return None
