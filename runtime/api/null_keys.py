"""Whether a key may be null: said when a job is submitted, where the schema of an inlet tells it.

A record whose key is None fails the job, and fails it again after each restart. Whoever sends a record into an
inlet gets an error at once if the column is declared as one that is never null.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from ...actors.operators.assign_timestamps import AssignTimestamps
from ..connectors.inlet.inlet_source import InletSource
from .stream_graph import StreamEdge, StreamNode

log = logging.getLogger(__name__)


def warn_of_null_keys(nodes: Sequence[StreamNode]) -> None:
    """A line in the log for each column of an inlet that is the key, or part of it, of an operator right behind."""
    for node in nodes:
        sources = ((_source(edge.source), edge) for edge in node.inputs)
        found = [
            (source.name, column)
            for source, edge in sources
            if isinstance(source.operator, InletSource)
            for column in _nullable_keys(edge)
        ]
        for inlet, column in dict.fromkeys(found):
            log.warning(
                "operator %r has the key column %r of inlet %r, which may be null, and a record without a key fails "
                "the job: declare it pa.field(%r, ..., nullable=False) in the inlet's schema, so that such a record is "
                "refused when it is sent, or leave it out before key_by, as with "
                ".filter(lambda record: record[%r] is not None)",
                *(node.name, column, inlet, column, column),
            )


def _source(node: StreamNode) -> StreamNode:
    """Where its records come from, all of them and as they are."""
    while isinstance(node.operator, AssignTimestamps):
        node = node.inputs[0].source
    return node


def _nullable_keys(edge: StreamEdge) -> Iterator[str]:
    schema = edge.schema
    if schema is None or edge.selector is None:
        return
    for part in edge.selector.parts:
        if not callable(part):
            field = schema.field(part)
            if field.nullable:
                yield field.name
