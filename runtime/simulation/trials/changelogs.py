"""Changelogs of a job: which of its sinks get changes, and what holds of them there.

Changes of a row come in order to a sink that reads the operator that makes them, subtask by subtask: a key has one
subtask, and a job that is rescaled goes on where the one before ended. Where other operators, or a change of
parallelism, stand between, only the rows count that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ....actors.flow.changelog import Changelog
from ....messages import Partitioning
from ...api.stream_graph import StreamEdge, StreamNode
from ...connectors import FileSink

OUT_OF_ORDER = Changelog(in_order=False)


def changelogs_of(nodes: Iterable[StreamNode]) -> Mapping[str, Changelog]:
    """By the sink's name. Of a sink that is not there no change can come."""
    found = ((node.name, _reaching(node)) for node in nodes if node.role == "sink")
    return {name: changelog for name, changelog in found if changelog is not None}


def _reaching(sink: StreamNode) -> Changelog | None:
    producers = [node.operator._changelog for node in _before(sink)]
    if not any(producers):
        return None
    direct = len(sink.inputs) == 1 and isinstance(sink.operator, FileSink) and _is_straight(sink.inputs[0], sink)
    return (sink.inputs[0].source.operator._changelog if direct else None) or OUT_OF_ORDER


def _is_straight(edge: StreamEdge, consumer: StreamNode) -> bool:
    """Whether each subtask reads one, whatever the job's parallelism."""
    if edge.output_tag or edge.partitioning not in (None, Partitioning.FORWARD):
        return False
    return consumer.follows_input or consumer.parallelism == edge.source.parallelism


def _before(node: StreamNode) -> Iterator[StreamNode]:
    """All whose records may reach it, round loops too."""
    seen: set[int] = set()
    todo = [node]
    while todo:
        reader = todo.pop()
        for edge in (*reader.inputs, *reader.feedback):
            if edge.source.position not in seen:
                seen.add(edge.source.position)
                todo.append(edge.source)
                yield edge.source
