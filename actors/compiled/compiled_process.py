"""CompiledProcess: runs an operator's compiled `process` over whole batches, and its `on_timer` over due timers.

Owned by the operator, given to it by `equip` when its task has placed it; holds the state, the kernels for the kinds
of batches it had, and their work tables. What is Python in the operator (`open`, `on_receive`, `on_end`) works on the
same state, by the backend's accessors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...messages import DictRow
from ...state.columnar.slot_backend import SlotBackend
from ...state.columnar.slot_keys import check_key_types
from ...state.keys.key_groups import key_group_range
from ...state.keys.word_table import Slots
from ...state.kinds.declared_states import declared_states
from ..errors import NoEventTime, UserCodeError
from ..flow.elements import Batch, Times
from ..flow.key_selector import KeySelectionFailed
from ..flow.records import batch_of
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .input_columns import WorkTable, address_of, put_columns
from .kernel_cache import check_numba, compiled_for, empty_batch
from .key_columns import key_columns, keys_as_columns
from .layout import POSITION, SLOTS, TIMES, WATERMARKS, Kind, Layout, Output
from .output_rows import OutputRows, Rows, kinds_of, output_schema, times_of_rows
from .signature import RecordForm, Signature, check_operator, has_on_timer, signature_of, uses_time
from .timer_log import TimerLog


@dataclass(slots=True)
class _Prepared:
    """A kernel with what it works on."""

    layout: Layout
    kernel: Any
    work: WorkTable
    output: OutputRows
    log: TimerLog
    kinds: list[Kind]
    """Of the columns that are collected."""


class CompiledProcess:
    """One operator's."""

    def __init__(self, operator: KeyedOperator) -> None:
        where = operator.context
        groups = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)
        self.state = SlotBackend(groups[0], groups[-1], where.max_parallelism)
        self._operator = operator
        self._declared = declared_states(type(operator))
        self._has_on_timer = has_on_timer(type(operator))
        self._prepared: dict[Signature, _Prepared] = {}
        self._collected: Output | None = None
        """What `process` collects, once it is known."""

    def prepare(self, schema: pa.Schema) -> None:
        """Compile for batches of these columns ahead of the first. Raises CannotCompile."""
        signature = _foreseen(self._operator, schema)
        if signature is not None:
            self._prepared_for(signature)
            if self._has_on_timer:
                self._prepared_for(signature.of_timers)

    def process(self, batch: Batch, out: Collector) -> None:
        """Raises UserCodeError with the position of the record at which `process` raised."""
        operator, times = self._operator, self._operator.timestamps
        try:
            columns, form = _as_columns(batch)
            keys = key_columns(operator, batch, columns)
        except KeySelectionFailed as error:
            raise UserCodeError(operator.context.name, operator._taken + error.position) from error
        types = [key.type for key in keys]
        prepared = self._prepared_for(signature_of(operator, columns.schema, types, form, is_timed=times is not None))
        slots = self.state.slots_of(keys)
        kept = self._fill(prepared, columns, keys, slots, times)
        try:
            prepared.kernel(len(columns), address_of(prepared.work))
        except NoEventTime:  # a kernel does not know whose it is
            named = NoEventTime(operator.context.name, "self.timestamp")
            raise UserCodeError(operator.context.name, operator._taken + int(prepared.work[POSITION])) from named
        except Exception as error:
            raise UserCodeError(operator.context.name, operator._taken + int(prepared.work[POSITION])) from error
        del kept
        if prepared.layout.uses_timers:
            self._take_timers(prepared.log, slots, times)
        _emit(prepared.output.take(batch, columns, keys, prepared.kinds), times, out)
        operator._taken += len(columns)

    def fire(self, watermark_ms: int, out: Collector) -> bool:
        """Fire a slice of the timers that are due; whether there may be more."""
        operator = self._operator
        if not self._has_on_timer:
            return operator._fire(operator.timers.queues.event, "event", watermark_ms, out)
        timers = self.state.slot_timers
        times, slots, _ = timers.due(watermark_ms)
        if not len(times):
            return False
        keys = self._keys_of(slots)
        prepared = self._prepared_for(signature_of(operator, pa.schema([]), [key.type for key in keys]).of_timers)
        self.state.changed(slots, len(slots))
        kept = self._fill(prepared, None, keys, slots, times)
        fired = prepared.kernel(len(times), address_of(prepared.work))
        del kept
        timers.fired(fired)
        prepared.log.apply(timers)
        _emit(prepared.output.take([], None, keys, prepared.kinds), times, out)
        return True

    def _take_timers(self, log: TimerLog, slots: Slots, times: Times | None) -> None:
        """What the records of a batch have registered and deleted."""
        timers, looks = self.state.slot_timers, self._operator._overdue
        if looks is not None and times is not None and not looks.is_seen:
            self._operator._came(times)
            looks.look_at_batch(log.overdue(timers, (slots, times)))
        log.apply(timers)

    def _watermarks(self, rows: int, *, of_records: bool) -> Times:
        """How far event time is for each row: records of one batch may be of several splits."""
        operator = self._operator
        if operator.split_watermarks is None or not of_records:
            return np.full(rows, operator.watermark, np.int64)
        return np.maximum(operator.split_watermarks, operator.watermark).astype(np.int64, copy=False)

    def _keys_of(self, slots: Slots) -> list[pa.Array]:
        keys = self.state.slot_keys
        columns = keys.columns(slots)
        return keys_as_columns(self._operator.context.name, keys.known.listed(slots)) if columns is None else columns

    def _prepared_for(self, signature: Signature) -> _Prepared:
        found = self._prepared.get(signature)
        if found is None:
            found = self._prepared[signature] = self._made(signature)
        return found

    def _made(self, signature: Signature) -> _Prepared:
        cls = type(self._operator)
        layout, kernel = compiled_for(cls, signature)
        if signature.method == "on_timer":
            kinds = kinds_of(layout, self._collected, cls.__qualname__)
        else:
            kinds = kinds_of(layout, _collected_by_timers(cls, signature), cls.__qualname__)
            self._collected = layout.output
            self._prepared = {known: each for known, each in self._prepared.items() if known.method == "process"}
        work = np.zeros(layout.cells, np.int64)
        return _Prepared(layout, kernel, work, OutputRows(layout, work), TimerLog(work), kinds)

    def _fill(
        self,
        prepared: _Prepared,
        columns: pa.RecordBatch | None,
        keys: list[pa.Array],
        slots: Slots,
        times: Times | None,
    ) -> list[Any]:
        """Write into the work table what the rows are. What is returned must be kept while the kernel runs."""
        layout, work = prepared.layout, prepared.work
        kept: list[Any] = [slots := np.ascontiguousarray(slots, np.int64)]
        work[SLOTS] = address_of(slots)
        if times is not None:
            kept.append(times := np.ascontiguousarray(times, np.int64))
            work[TIMES] = address_of(times)
        if layout.reads_watermark:
            kept.append(watermarks := self._watermarks(len(slots), of_records=columns is not None))
            work[WATERMARKS] = address_of(watermarks)
        read = [(layout.keys[index], keys[index]) for index in layout.keys_read]
        if columns is not None:
            read += [(layout.columns[index], columns.column(index)) for index in layout.columns_read]
        kept += put_columns(work, read)
        for attribute, fields in layout.states.items():
            held = self.state.columns(self._declared[attribute])  # type: ignore[arg-type]
            kept.append(arrays := (held.present, *held.values))
            work[fields.cell : fields.cell + len(arrays)] = [address_of(array) for array in arrays]
        numbers = work.view(np.float64)
        for name, (kind, cell) in layout.attributes.items():
            (numbers if kind == "float" else work)[cell] = getattr(self._operator, name)
        if layout.uses_timers or layout.method == "on_timer":
            prepared.log.begin(self.state.slot_timers)
        prepared.output.begin(len(slots))
        return kept


def equip(operator: Operator) -> None:
    """Give an operator that knows where it runs what it needs to run compiled; others need nothing."""
    if isinstance(operator, KeyedOperator) and operator.compiled:
        operator._batch_process = CompiledProcess(operator)


def emitted_schema(operator: KeyedOperator, schema: pa.Schema | None) -> pa.Schema | None:
    """Of what `process` collects from input of these columns; None when it cannot be known. Asked at submit, so that
    errors of compilation show there. Raises CannotCompile, or NumbaMissing.

    The operator remembers the columns, and is compiled for them when it is opened.
    """
    operator._input_schema = schema
    check_operator(type(operator))
    check_numba(type(operator).__qualname__)
    signature = None if schema is None else _foreseen(operator, schema)
    if signature is None:
        return None
    cls = type(operator)
    layout, on_timer = compiled_for(cls, signature)[0], _collected_by_timers(cls, signature)
    kinds = kinds_of(layout, on_timer, cls.__qualname__)
    if layout.output is None and has_on_timer(cls):
        layout = compiled_for(cls, signature.of_timers)[0]
        kinds = kinds_of(layout, None, cls.__qualname__)
    return output_schema(layout, schema, kinds)


def _collected_by_timers(cls: type[KeyedOperator], signature: Signature) -> Output | None:
    return compiled_for(cls, signature.of_timers)[0].output if has_on_timer(cls) else None


def _foreseen(operator: KeyedOperator, schema: pa.Schema) -> Signature | None:
    """Of batches with these columns; None when the type of the key is known only from a record. Raises InvalidKey."""
    (selector,) = operator._selectors
    keys = selector.arrays(empty_batch(schema))
    if keys is None:
        return None
    types = [key.type for key in keys]
    check_key_types(types)
    return signature_of(operator, schema, types, is_timed=uses_time(type(operator)))


def _emit(collected: tuple[Batch, Rows | None] | None, times: Times | None, out: Collector) -> None:
    if collected is not None:
        records, rows = collected
        out.emit(records, None if times is None or rows is None else times_of_rows(times, rows))


def _as_columns(batch: Batch) -> tuple[pa.RecordBatch, RecordForm]:
    """The batch as columns, and what the interpreted `process` would be given of it."""
    if isinstance(batch, pa.RecordBatch):
        return batch, "row"
    columns, first = batch_of(batch), batch[0]
    if isinstance(first, dict):
        return columns, "dict row" if isinstance(first, DictRow) else "dict"
    return columns, "value" if len(columns.schema) == 1 and not _has_columns(first) else "row"


def _has_columns(record: Any) -> bool:
    return isinstance(record, tuple) or hasattr(record, "__dataclass_fields__")
