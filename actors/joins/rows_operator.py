"""RowsOperator: what the operators share that keep rows of columns by key: their state, and the joins' two inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from ...messages import StateDescription
from ...state.columnar.keyed_rows import KeyedRows
from ...state.columnar.rows_format import KeptRows, describe_rows
from ...state.keys.key_groups import key_group_range
from ..errors import NoEventTime
from ..flow.elements import Times
from ..flow.records import conform
from ..operators.collector import Collector
from ..operators.operator import Operator, Takes
from .joined_columns import How, JoinedColumns


class RowsOperator(Operator):
    """Has one KeyedRows, of rows that it knows the columns of when the job is submitted."""

    takes: ClassVar[Takes] = "columns"

    _kept: tuple[KeptRows, ...] = ()
    _state: KeyedRows | None = None

    def _own_states(self) -> tuple[StateDescription, ...]:
        return (describe_rows(self._kept),)

    @property
    def keyed_state(self) -> KeyedRows:
        """What the task snapshots and restores; there once the operator has its context."""
        if self._state is None:
            assert self._kept, "whoever submits the job asks for output_schema"
            where = self.context
            groups = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)
            self._state = KeyedRows(self._kept, groups, where.max_parallelism)
        return self._state

    def _event_times(self, what: str, side: int | None = None) -> Times:
        """Those of the batch at hand, of the input of this side where there are two. Raises NoEventTime."""
        if self.timestamps is None:
            raise NoEventTime(self.context.name, what, side)
        return self.timestamps


class ColumnarJoin(RowsOperator):
    """Joins rows of two inputs with equal keys."""

    inputs: ClassVar[int] = 2

    _columns: JoinedColumns

    def __init__(self, left_keys: Sequence[str], right_keys: Sequence[str], how: How, suffix: str) -> None:
        self._keys = (tuple(left_keys), tuple(right_keys))
        self._suffix = suffix
        self._how = how
        self._outer = (how in ("left", "full"), how in ("right", "full"))
        """Whether a row of this side is a result of its own if it has no match."""

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        left, right = (KeptRows(keys, known(schema)) for keys, schema in zip(self._keys, inputs, strict=True))
        self._kept = (left, right)
        is_changelog = self._changelog is not None
        self._columns = JoinedColumns(left, right, self._how, self._suffix, is_changelog=is_changelog)
        return self._columns.schema

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        self._take(0, conform(batch, self._kept[0].schema), out)

    def process_batch_2(self, batch: pa.RecordBatch, out: Collector) -> None:
        self._take(1, conform(batch, self._kept[1].schema), out)

    @abstractmethod
    def _take(self, side: int, batch: pa.RecordBatch, out: Collector) -> None:
        """Take one batch of the left (0) or the right (1) input."""


def known(schema: pa.Schema | None, whose: str = "its columns") -> pa.Schema:
    """Raises ValueError for None."""
    if schema is None:
        raise ValueError(
            f"{whose} are not known before the job runs: declare them behind it, as .map_batches(lambda batch: batch, "
            "schema=pa.schema([...]))"
        )
    return schema
