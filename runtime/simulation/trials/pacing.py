"""Pacing: sources slowed down, so that a small job lasts for many checkpoints of virtual time.

A job's result does not depend on its speed, but its faults do: a collection of forty records goes through an
unhindered job as a single batch, between two checkpoints. So a source that has no rate of its own gives small batches,
with a pause after each. Even ones, of one size, where runs are compared without faults; uneven ones in histories: their
sizes and pauses are the history's chance, so that barriers and failures fall between other records each time, and
between two of one batch. The user's objects stay as they are; it is the job's copies that are changed.
"""

from __future__ import annotations

import random
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
from ..world.file_system import current_disk
from ..world.process import Process

_BATCHES = 30
"""The number of batches into which a source's records are divided, where their number is known."""

_ROWS_OF_A_FILE = 10

_SCALES = (1, 1, 2)
"""By one of these factors uneven batches are larger in an attempt, so that few of them are of a single record."""

_UNEVEN = 2
"""By this factor at most an uneven batch is larger than that, too."""

_PAUSES = 0.5, 1.5
"""By a factor between these an uneven pause is shorter or longer."""

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
    translation: Translation,
    pause_ms: float,
    reference: Translation | None = None,
    ahead: VertexId | None = None,
    *,
    is_uneven: bool = False,
) -> Translation:
    """The same job, whose sources pause for so much virtual time after each batch.

    `reference`: the job that has this pause, when that is another parallelism's: this one then lasts as long.
    `ahead`: a source that runs ahead of the others. `is_uneven`: batches and pauses are of several sizes, and the job
    lasts as long all the same.
    """
    others = {vertex.vertex_id: vertex.parallelism for vertex in (reference or translation).graph.vertices}
    chains: Mapping[VertexId, bytes] = {
        vertex.vertex_id: _paced_chain(
            translation.program.chains[vertex.vertex_id],
            pause_ms / _AHEAD if vertex.vertex_id == ahead else pause_ms,
            vertex.parallelism,
            others.get(vertex.vertex_id, vertex.parallelism),
            is_uneven=is_uneven,
        )
        for vertex in translation.graph.vertices
    }
    return replace(translation, program=replace(translation.program, chains=chains))


def _paced_chain(chain: bytes, pause_ms: float, parallelism: int, other: int, *, is_uneven: bool) -> bytes:
    operators = cloudpickle.loads(chain)
    source = operators[0].operator
    if not _is_slowed(source):
        return chain
    of_each, of_each_other = _batches(source, parallelism), _batches(source, other)
    slow = (_UnevenSource if is_uneven else _SlowSource)(source, pause_ms * of_each_other / of_each)
    if isinstance(source, PacedSource):
        slow.limit(min(source.batch_rows, _batch_rows(source, parallelism)))
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

    def __init__(self, source: Any, pause_ms: float) -> None:
        self._source = source
        self._pause_ms = pause_ms
        self._ready_ms: float | None = None

    def limit(self, rows: int) -> None:
        """A batch is to have this number of records."""
        self._source.batch_rows = rows

    def poll(self) -> Batch | Any:
        if self._left_ms() > 0:
            return None
        batch = type(self._source).poll(self._source)
        if batch is not None and batch is not END:
            self._ready_ms = self._now_ms() + self._pause_after_ms()
        return batch

    def poll_delay_ms(self) -> float | None:
        left_ms = self._left_ms()
        return left_ms if left_ms > 0 else type(self._source).poll_delay_ms(self._source)

    def _left_ms(self) -> float:
        return 0.0 if self._ready_ms is None else self._ready_ms - self._now_ms()

    def _now_ms(self) -> float:
        return float(self._source.context.clock.now_ms())

    def _pause_after_ms(self) -> float:
        return self._pause_ms


class _UnevenSource(_SlowSource):
    """Batches of a size that is chance, each with a pause in proportion; where a source decides on its batches itself,
    only the pauses are chance. Each attempt has a chance of its own, so what is read again comes in other batches.
    """

    _chance: random.Random | None = None
    _rows = 0
    """Usually, of a batch; 0: the source decides."""
    _most = 0
    _taken = 0

    def limit(self, rows: int) -> None:
        source = self._source
        self._rows = rows
        if isinstance(source, GeneratorSource) and source.columnar:  # its rows are dealt out in blocks of this size
            source.batch_rows = rows
        else:
            source.batch_rows = min(source.batch_rows, rows * _UNEVEN * max(_SCALES))
        vars(source)["read"] = self._read

    def _read(self, max_records: int) -> Batch | Any:
        chance = self._drawn_from()
        batch = type(self._source).read(self._source, min(max_records, chance.randint(1, self._most)))
        self._taken = 0 if batch is None or batch is END else len(batch)
        return batch

    def _pause_after_ms(self) -> float:
        usual = self._taken / self._rows if self._rows else 1.0
        return self._pause_ms * usual * self._drawn_from().uniform(*_PAUSES)

    def _drawn_from(self) -> random.Random:
        if self._chance is None:
            process = current_disk().owner()
            assert isinstance(process, Process), "a source is polled by the process of its TaskManager"
            context = self._source.context
            attempt = f"{context.name} {context.subtask_index} {process.name} {self._now_ms()}"
            self._chance = process.world.chance(f"batches of {attempt}")
            self._most = self._rows * _UNEVEN * self._chance.choice(_SCALES)
        return self._chance
