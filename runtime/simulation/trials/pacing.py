"""Pacing: sources slowed down, so that a small job lasts for many checkpoints of virtual time.

A job's result does not depend on its speed, but its faults do: a collection of forty records goes through an
unhindered job as a single batch, between two checkpoints. So a source that has no rate of its own gives small batches,
with a pause after each. The user's objects stay as they are; it is the job's copies that are changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import cloudpickle

from ....actors.flow.elements import Batch
from ....actors.operators.source import END, Source
from ....actors.tasks.shipping import pickled
from ....messages import VertexId
from ...api.translation import Translation
from ...connectors import CollectionSource, GeneratorSource
from ...connectors.paced_source import PacedSource

_BATCHES = 30
"""The number of batches into which a source's records are divided, where their number is known."""

_ROWS_OF_A_FILE = 10


_AHEAD = 8
"""A source that runs ahead is by this factor faster than the others."""


def slowed_sources(translation: Translation) -> dict[VertexId, str]:
    """Those that `paced` slows down, and their names."""
    chains = translation.program.chains
    return {
        vertex.vertex_id: vertex.operators[0].name
        for vertex in translation.graph.vertices
        if _is_slowed(cloudpickle.loads(chains[vertex.vertex_id])[0].operator)
    }


def paced(
    translation: Translation, pause_ms: float, reference: Translation | None = None, ahead: VertexId | None = None
) -> Translation:
    """The same job, whose sources pause for so much virtual time after each batch.

    `reference`: the job that has this pause, when that is another parallelism's: this one then lasts as long.
    `ahead`: a source that runs ahead of the others.
    """
    others = {vertex.vertex_id: vertex.parallelism for vertex in (reference or translation).graph.vertices}
    chains: Mapping[VertexId, bytes] = {
        vertex.vertex_id: _paced_chain(
            translation.program.chains[vertex.vertex_id],
            pause_ms / _AHEAD if vertex.vertex_id == ahead else pause_ms,
            vertex.parallelism,
            others.get(vertex.vertex_id, vertex.parallelism),
        )
        for vertex in translation.graph.vertices
    }
    return replace(translation, program=replace(translation.program, chains=chains))


def _paced_chain(chain: bytes, pause_ms: float, parallelism: int, other: int) -> bytes:
    operators = cloudpickle.loads(chain)
    source = operators[0].operator
    if not _is_slowed(source):
        return chain
    of_each, of_each_other = _batches(source, parallelism), _batches(source, other)
    if isinstance(source, PacedSource):
        source.batch_rows = min(source.batch_rows, _batch_rows(source, parallelism))
    slow = _SlowSource(source, pause_ms * of_each_other / of_each)
    vars(source).update(poll=slow.poll, poll_delay_ms=slow.poll_delay_ms)
    return pickled(operators)


def _is_slowed(source: Any) -> bool:
    return isinstance(source, Source) and getattr(source, "records_per_second", None) is None


def _batch_rows(source: PacedSource, parallelism: int) -> int:
    count = _count(source)
    return _ROWS_OF_A_FILE if count is None else max(1, count // (parallelism * _BATCHES))


def _batches(source: Source, parallelism: int) -> float:
    """How many each subtask has, or what is in proportion to that where the number of records is not known."""
    count = _count(source)
    if count is None or not isinstance(source, PacedSource):
        return 1 / parallelism
    return max(1, count / (parallelism * min(source.batch_rows, _batch_rows(source, parallelism))))


def _count(source: Source) -> int | None:
    match source:
        case CollectionSource(records=records):
            return len(records)
        case GeneratorSource(count=count):
            return count or 0
        case _:
            return None


class _SlowSource:
    """Stands before a source's own `poll`."""

    def __init__(self, source: Source, pause_ms: float) -> None:
        self._source = source
        self._pause_ms = pause_ms
        self._ready_ms: float | None = None

    def poll(self) -> Batch | Any:
        if self._left_ms() > 0:
            return None
        batch = type(self._source).poll(self._source)
        if batch is not None and batch is not END:
            self._ready_ms = self._source.context.clock.now_ms() + self._pause_ms
        return batch

    def poll_delay_ms(self) -> float | None:
        left_ms = self._left_ms()
        return left_ms if left_ms > 0 else type(self._source).poll_delay_ms(self._source)

    def _left_ms(self) -> float:
        return 0.0 if self._ready_ms is None else self._ready_ms - self._source.context.clock.now_ms()
