"""ColumnarAggregate: aggregates per key over Arrow batches, as in `aggregate(flights=Count(), miles=Sum("distance"))`.

All rows of a batch go into NumPy arrays at once; see state/columnar/columnar_table.py. Flink: GroupAggFunction; with a
`LocalAggregate` before the shuffle, MiniBatchLocalGroupAggFunction and MiniBatchGlobalGroupAggFunction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from ...messages import CheckpointId, StateDescription
from ...state.columnar.columnar_backend import ColumnarBackend
from ...state.columnar.columnar_table import ColumnarTable
from ...state.columnar.known_rows import KnownKeys, KnownRows
from ...state.columns.numbered_rows import NamedRows
from ...state.keys.key_groups import key_group_range
from ...state.kinds.aggregates import Aggregate, Avg, Count, Max, Min, Sum
from ...state.kinds.aggregation_fit import describe_aggregation
from .aggregation import Aggregation
from .collector import Collector

__all__ = ["Aggregate", "Avg", "ColumnarAggregate", "Count", "LocalAggregate", "Max", "Min", "Sum"]


class _WithoutWindows(Aggregation):
    """What both phases share."""

    def __init__(self, keys: Sequence[str], aggregates: Mapping[str, Aggregate], emit: str) -> None:
        super().__init__(keys, aggregates)
        for name, aggregate in aggregates.items():
            if name in keys:
                raise ValueError(f"{name!r} is a key column already: give the aggregate {aggregate} another name")
        if emit not in ("updates", "end"):
            raise ValueError(f"emit: wanted 'updates' or 'end', found {emit!r}")
        self._emits_updates = emit == "updates"

    @property
    def emits_updates(self) -> bool:
        """Whether it emits after each batch; else when the input has ended."""
        return self._emits_updates


class ColumnarAggregate(_WithoutWindows):
    """One row of aggregates per key. `emit`: "updates", after each batch a row for each key in it; "end", once, all.

    `partials`: the input is what a LocalAggregate of the same keys and aggregates emits.
    """

    _state: ColumnarBackend | None = None

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Mapping[str, Aggregate],
        emit: str = "updates",
        *,
        partials: bool = False,
    ) -> None:
        super().__init__(keys, aggregates, emit)
        self.takes_partials = partials

    def in_two_phases(self) -> tuple[LocalAggregate, ColumnarAggregate]:
        """Two operators, one before and one after the shuffle, that together do what this one does."""
        emit = "updates" if self._emits_updates else "end"
        local = LocalAggregate(self._keys, self._aggregates, emit)
        return local, ColumnarAggregate(self._keys, self._aggregates, emit, partials=True)

    def _own_states(self) -> tuple[StateDescription, ...]:
        schema = self._schema and self._table_of(self._schema).partial_schema
        return (describe_aggregation(self._keys, self._aggregates, schema),)

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
            self.keyed_state.expect(self._schema, partials=self.takes_partials)

    def known_keys(self, named: NamedRows) -> KnownKeys:
        """What a channel that brings partials knows of their keys. Raises ValueError for other columns."""
        return KnownKeys(self._keys, self._aggregates, named)

    def process_batch(self, batch: pa.RecordBatch | KnownRows, out: Collector) -> None:
        state = self.keyed_state
        table = state.table_for(batch.schema, partials=self.takes_partials)
        if isinstance(batch, KnownRows):
            slots = table.merge_known(batch)
        else:
            slots = table.merge(batch) if self.takes_partials else table.update(batch)
        state.changed(slots)
        if self._emits_updates:
            out.emit(table.results(table.distinct(slots)))

    def on_end(self, out: Collector) -> None:
        table = self.keyed_state.table
        if table is not None and not self._emits_updates:
            out.emit(table.results(table.all_slots()))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (self._schema,) = inputs
        return None if self._schema is None else self._table_of(self._schema).result_schema

    def _table_of(self, schema: pa.Schema) -> ColumnarTable:
        make = ColumnarTable.for_partials if self.takes_partials else ColumnarTable.for_input
        return make(self._keys, self._aggregates, schema)


class LocalAggregate(_WithoutWindows):
    """The first phase, before the shuffle: many rows become one partial per key. A ColumnarAggregate merges them.

    Partials are held back over several batches, the more the better; they go before a barrier, at the end, and when
    there are many keys. For updates they also go `LINGER_MS` after their first row once input has run out, and after
    `MOST_LINGER_MS` or `MOST_ROWS` while it has not. So there is no state left when a snapshot is taken.
    """

    MOST_KEYS: ClassVar[int] = 1 << 20
    """Between flushes keys keep their slots, only because that is faster; with more of them they are given up."""
    MOST_ROWS: ClassVar[int] = 1 << 20
    ENOUGH_ROWS: ClassVar[int] = 1 << 17
    """Smaller batches wait for each other: tables are out of the processor's cache by the time the next one comes."""
    LINGER_MS: ClassVar[float] = 5.0
    MOST_LINGER_MS: ClassVar[float] = 100.0

    _table: ColumnarTable | None = None
    _since_ms: float = 0.0

    def __init__(self, keys: Sequence[str], aggregates: Mapping[str, Aggregate], emit: str = "updates") -> None:
        super().__init__(keys, aggregates, emit)
        self.emits_slots = False
        """Partials go by slot: set where who deals them out makes numbers of it."""
        self._has_flushed = False
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._held_rows = 0

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        if self._emits_updates and not self._held_rows:
            self._since_ms = self.context.clock.now_ms()
        self._waiting.append(self._checked(batch))
        self._waiting_rows += len(batch)
        self._held_rows += len(batch)
        if self._waiting_rows >= self.ENOUGH_ROWS:
            self._take_in()
        if self._is_due():
            self._flush(out)

    def on_idle(self, out: Collector) -> float | None:
        if not (self._emits_updates and self._held_rows):
            return None
        left_ms = self._since_ms + self.LINGER_MS - self.context.clock.now_ms()
        if left_ms > 0:
            return left_ms
        self._flush(out)
        return None

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        self._flush(out)

    def on_end(self, out: Collector) -> None:
        self._flush(out, is_last=True)
        self._table = None  # its memory is what the results now take

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        (self._schema,) = inputs
        if self._schema is None:
            return None
        return ColumnarTable.for_input(self._keys, self._aggregates, self._schema).partial_schema

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are read, with their keys looked at, so that an error about a null names its row here."""
        if self._table is None:
            self._table = ColumnarTable.for_input(self._keys, self._aggregates, self._schema or batch.schema)
        return self._table.readable(batch)

    def _take_in(self) -> None:
        """Aggregate the batches that wait."""
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        if waiting and self._table is not None:
            self._table.accumulate(waiting)

    def _is_due(self) -> bool:
        if self._table is not None and len(self._table) > self.MOST_KEYS:
            return True
        if not self._emits_updates:
            return False
        return self._held_rows >= self.MOST_ROWS or self.context.clock.now_ms() - self._since_ms >= self.MOST_LINGER_MS

    def _flush(self, out: Collector, *, is_last: bool = False) -> None:
        self._take_in()
        table = self._table
        if table is None or not self._held_rows:
            return
        keeps_slots = len(table) <= self.MOST_KEYS
        if self.emits_slots and keeps_slots and (self._has_flushed or not is_last):
            out.emit_each(table.take_slot_rows())
        else:  # no key will come again by its number
            out.emit_each(table.take_partials())
        self._held_rows = 0
        self._has_flushed = keeps_slots
        if not keeps_slots:
            self._table = None
