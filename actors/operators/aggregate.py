"""ColumnarAggregate: aggregates per key over Arrow batches, as in `aggregate(flights=Count(), miles=Sum("distance"))`.

All rows of a batch go into NumPy arrays at once; see state/columnar_table.py. Flink: GroupAggFunction; with a
`LocalAggregate` before the shuffle, MiniBatchLocalGroupAggFunction and MiniBatchGlobalGroupAggFunction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from ...state.aggregates import Aggregate, Avg, Count, Max, Min, Sum
from ...state.columnar_backend import ColumnarBackend
from ...state.columnar_table import ColumnarTable
from ...state.key_groups import key_group_range
from .operator import Collector, Operator, Takes

__all__ = ["Aggregate", "Avg", "ColumnarAggregate", "Count", "LocalAggregate", "Max", "Min", "Sum"]


class _Aggregation(Operator):
    """What both phases share."""

    takes: ClassVar[Takes] = "columns"

    def __init__(self, keys: Sequence[str], aggregates: Mapping[str, Aggregate]) -> None:
        _check(keys, aggregates)
        self._keys, self._aggregates = tuple(keys), dict(aggregates)


class ColumnarAggregate(_Aggregation):
    """One row of aggregates per key. `emit`: "updates", after each batch a row for each key in it; "end", once, all.

    `partials`: the input is what a LocalAggregate of the same keys and aggregates emits.
    """

    _schema: pa.Schema | None = None
    _state: ColumnarBackend | None = None

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Mapping[str, Aggregate],
        emit: str = "updates",
        *,
        partials: bool = False,
    ) -> None:
        super().__init__(keys, aggregates)
        if emit not in ("updates", "end"):
            raise ValueError(f"emit: wanted 'updates' or 'end', found {emit!r}")
        self._emits_updates, self._takes_partials = emit == "updates", partials

    @property
    def keyed_state(self) -> ColumnarBackend:
        """What the task snapshots and restores; there once the operator has its context."""
        if self._state is None:
            where = self.context
            groups = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)
            self._state = ColumnarBackend(self._keys, self._aggregates, groups, where.max_parallelism)
        return self._state

    def open(self) -> None:
        if self._schema is not None:
            self.keyed_state.expect(self._schema, partials=self._takes_partials)

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        table = self.keyed_state.table_for(batch.schema, partials=self._takes_partials)
        slots = table.merge(batch) if self._takes_partials else table.update(batch)
        if self._emits_updates:
            out.emit(table.results(table.distinct(slots)))

    def on_end(self, out: Collector) -> None:
        table = self.keyed_state.table
        if table is not None and not self._emits_updates:
            out.emit(table.results(table.all_slots()))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (self._schema,) = inputs
        if self._schema is None:
            return None
        make = ColumnarTable.for_partials if self._takes_partials else ColumnarTable.for_input
        return make(self._keys, self._aggregates, self._schema).result_schema


class LocalAggregate(_Aggregation):
    """The first phase, before the shuffle: each batch becomes one partial per key in it. It keeps no state.

    Worth it where batches hold many rows per key. What follows is a ColumnarAggregate that takes partials.
    """

    _MOST_KEYS: ClassVar[int] = 1 << 20
    """Slots are kept from batch to batch only because that is faster; with more of them they are given up."""

    _table: ColumnarTable | None = None

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        if self._table is None or len(self._table) > self._MOST_KEYS:
            self._table = ColumnarTable.for_input(self._keys, self._aggregates, batch.schema)
        slots = self._table.distinct(self._table.update(batch))
        out.emit(self._table.partials(slots))
        self._table.reset(slots)

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (schema,) = inputs
        if schema is None:
            return None
        return ColumnarTable.for_input(self._keys, self._aggregates, schema).partial_schema


def _check(keys: Sequence[str], aggregates: Mapping[str, Aggregate]) -> None:
    if not keys or not aggregates:
        raise ValueError("wanted at least one key column and one aggregate")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise ValueError(f"{name}: wanted an aggregate such as Count() or Sum('column'), found {aggregate!r:.80}")
        if name in keys:
            raise ValueError(f"{name!r} is a key column already: give the aggregate {aggregate} another name")
