"""Inputs: what the sources of a user's job emit, for whoever computes from that what the job is to commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....actors.operators.source import Source
from ...api.environment import StreamEnvironment
from ...connectors import CollectionSource, GeneratorSource
from .job_trial import Unfit

_ROWS = 1024

Inputs = dict[str, list[Any]]
"""By the source's name, all of its records in their order; rows of columns as dictionaries."""


def inputs_of(env: StreamEnvironment) -> Inputs:
    """Raises Unfit for a source whose records are known to nobody before it has run."""
    return {
        node.name: list(_records(node.name, node.operator)) for node in env.graph.nodes if _is_source(node.operator)
    }


def _is_source(operator: Any) -> bool:
    return isinstance(operator, Source)


def _records(name: str, source: Any) -> Iterator[Any]:
    match source:
        case CollectionSource(records=records):
            yield from records
        case GeneratorSource(columnar=True, count=int(count)):
            for start in range(0, count, _ROWS):
                yield from source.function(start, min(_ROWS, count - start)).to_pylist()
        case GeneratorSource(count=int(count)):
            yield from map(source.function, range(count))
        case _:
            raise Unfit(
                f"expected: a function gets the records of from_collection and generate, and source {name!r} is a "
                f"{type(source).__name__}: give the records themselves"
            )
