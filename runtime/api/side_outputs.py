"""SideOutputs: the streams beside an operator's own: what it sends to tags, what came too late, what it gave up.

A part of every stream.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from ...actors.async_calls.failed_record import ERRORS
from ...actors.operators.aggregate import ColumnarAggregate
from ...actors.operators.assign_timestamps import AssignTimestamps
from ...actors.operators.collector import OutputTag
from ...actors.operators.filter import Filter
from ...actors.operators.flat_map import FlatMap
from ...actors.operators.map import Map
from ...actors.operators.map_batches import MapBatches
from ...actors.operators.reduce import KeyedReduce
from ...actors.operators.source import Source
from ...messages.known_names import known_arguments
from .async_settings import check_has_errors
from .errors import InvalidProgram
from .stream_graph import StreamEdge, StreamNode

S = TypeVar("S")
"""The stream of a side output."""

_WITHOUT_SIDES = (Source, Map, Filter, FlatMap, MapBatches, AssignTimestamps, KeyedReduce, ColumnarAggregate)
"""Operators of which nothing goes to side outputs."""


class SideOutputs(Generic[S]):
    """Those of the operator that emits this stream."""

    @abstractmethod
    def _own_node(self) -> StreamNode:
        """That operator."""

    @abstractmethod
    def _beside(self, edge: StreamEdge) -> S:
        """The stream on this edge."""

    @known_arguments(first=1)
    def side_output(self, tag: OutputTag) -> S:
        """What the operator before sends to this side output: `out.collect_to(tag, record)`. Flink: getSideOutput."""
        if not isinstance(tag, OutputTag):
            raise InvalidProgram(_no_tag(tag))
        node = self._own_node()
        if isinstance(node.operator, _WITHOUT_SIDES):
            raise InvalidProgram(
                f"side_output: {node.name!r} sends nothing to side outputs, so {tag.name!r} would stay empty: call it "
                "on the stream of the operator that calls out.collect_to(tag, record)"
            )
        return self._beside(StreamEdge(node, output_tag=tag.name, tag_schema=tag.schema))

    @property
    def errors(self) -> S:
        """Of an operator with coroutines and `on_error="errors"`: a FailedRecord for each record that it gave up."""
        check_has_errors(self._own_node().operator, self._own_node().name)
        return self.side_output(ERRORS)

    @property
    def late(self) -> S:
        """Of windows and joins by event time: the records that came too late; of a join, those of the first stream."""
        tag = getattr(self._own_node().operator, "late_tag", None)
        if tag is None:
            name = self._own_node().name
            raise InvalidProgram(
                f"late: {name!r} has no late records: read `late` of the stream that windows, a join by event time or "
                "deduplicate(...) return"
            )
        return self.side_output(tag)

    @property
    def late_right(self) -> S:
        """Of an interval or window join: the records of the second stream that came too late."""
        tag = getattr(self._own_node().operator, "late_right_tag", None)
        if tag is None:
            name = self._own_node().name
            raise InvalidProgram(f"late_right: {name!r} is no interval join, and no window join of columns")
        return self.side_output(tag)


def _no_tag(given: Any) -> str:
    written = f": write side_output(OutputTag({given!r:.60}))" if isinstance(given, str) else ""
    return f"side_output: wanted an OutputTag, found {given!r:.60}{written}"
