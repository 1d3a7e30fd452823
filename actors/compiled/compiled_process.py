"""CompiledProcess: runs an operator's compiled `process` over whole batches.

Owned by the operator, given to it by `equip` when its task has placed it; holds the state, the kernels for the kinds
of batches it had, and their work tables. What is Python in the operator (`open`, `on_receive`, `on_end`) works on the
same state, by the backend's accessors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...messages import DictRow
from ...state.columnar.slot_backend import SlotBackend
from ...state.columnar.slot_keys import check_key_types
from ...state.keys.key_groups import key_group_range
from ...state.kinds.declared_states import declared_states
from ..errors import UserCodeError
from ..flow.elements import Batch
from ..flow.key_selector import KeySelectionFailed
from ..flow.records import batch_of
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .errors import CannotCompile
from .input_columns import WorkTable, address_of, put_columns
from .kernel_cache import check_numba, compiled_for, empty_batch
from .layout import POSITION, SLOTS, Layout
from .output_rows import OutputRows, output_schema
from .signature import RecordForm, Signature, check_operator, signature_of


@dataclass(slots=True)
class _Prepared:
    """A kernel with what it works on."""

    layout: Layout
    kernel: Any
    work: WorkTable
    output: OutputRows


class CompiledProcess:
    """One operator's."""

    def __init__(self, operator: KeyedOperator) -> None:
        where = operator.context
        groups = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)
        self.state = SlotBackend(groups[0], groups[-1], where.max_parallelism)
        self._operator = operator
        self._declared = declared_states(type(operator))
        self._prepared: dict[Signature, _Prepared] = {}

    def prepare(self, schema: pa.Schema) -> None:
        """Compile for batches of these columns ahead of the first. Raises CannotCompile."""
        signature = _foreseen(self._operator, schema)
        if signature is not None:
            self._prepared_for(signature)

    def process(self, batch: Batch, out: Collector) -> None:
        """Raises UserCodeError with the position of the record at which `process` raised."""
        operator = self._operator
        try:
            columns, form = _as_columns(batch)
            keys = _key_arrays(operator, batch, columns)
        except KeySelectionFailed as error:
            raise UserCodeError(operator.context.name, operator._taken + error.position) from error
        prepared = self._prepared_for(signature_of(operator, columns.schema, [key.type for key in keys], form))
        kept = self._fill(prepared, columns, keys)
        try:
            prepared.kernel(len(columns), address_of(prepared.work))
        except Exception as error:
            position = int(prepared.work[POSITION])
            raise UserCodeError(operator.context.name, operator._taken + position) from error
        del kept
        collected = prepared.output.take(batch, columns, keys)
        if collected is not None:
            out.emit(collected)
        operator._taken += len(columns)

    def _prepared_for(self, signature: Signature) -> _Prepared:
        found = self._prepared.get(signature)
        if found is None:
            layout, kernel = compiled_for(type(self._operator), signature)
            work = np.zeros(layout.cells, np.int64)
            found = self._prepared[signature] = _Prepared(layout, kernel, work, OutputRows(layout, work))
        return found

    def _fill(self, prepared: _Prepared, columns: pa.RecordBatch, keys: list[pa.Array]) -> list[Any]:
        """Write into the work table what this batch is. What is returned must be kept while the kernel runs."""
        layout, work = prepared.layout, prepared.work
        slots: npt.NDArray[np.int64] = np.ascontiguousarray(self.state.slots_of(keys), np.int64)
        work[SLOTS] = address_of(slots)
        read = [(layout.columns[index], columns.column(index)) for index in layout.columns_read]
        read += [(layout.keys[index], keys[index]) for index in layout.keys_read]
        kept: list[Any] = [slots, *put_columns(work, read)]
        for attribute, fields in layout.states.items():
            held = self.state.columns(self._declared[attribute])  # type: ignore[arg-type]
            kept.append(arrays := (held.present, *held.values))
            work[fields.cell : fields.cell + len(arrays)] = [address_of(array) for array in arrays]
        numbers = work.view(np.float64)
        for name, (kind, cell) in layout.attributes.items():
            (numbers if kind == "float" else work)[cell] = getattr(self._operator, name)
        prepared.output.begin(len(columns))
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
    return output_schema(compiled_for(type(operator), signature)[0], schema)


def _foreseen(operator: KeyedOperator, schema: pa.Schema) -> Signature | None:
    """Of batches with these columns; None when the type of the key is known only from a record. Raises InvalidKey."""
    (selector,) = operator._selectors
    keys = selector.arrays(empty_batch(schema))
    if keys is None:
        return None
    types = [key.type for key in keys]
    check_key_types(types)
    return signature_of(operator, schema, types, "row")


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


def _key_arrays(operator: KeyedOperator, batch: Batch, columns: pa.RecordBatch) -> list[pa.Array]:
    """The parts of the keys. Raises KeySelectionFailed, or CannotCompile for keys that are no columns."""
    (selector,) = operator._selectors
    keys = selector.arrays(columns) if isinstance(batch, pa.RecordBatch) else None
    if keys is not None and not any(key.null_count for key in keys):
        return keys
    found = selector.keys(batch)
    kinds = set(map(type, found))
    if tuple not in kinds:
        try:
            return [pa.array(found)]
        except (pa.ArrowException, TypeError, OverflowError) as error:
            told = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise CannotCompile(f"{operator.context.name}: keys of type {told} make no column: {error}") from error
    if kinds == {tuple} and len(found[0]) > 1 and len(set(map(len, found))) == 1:
        return [pa.array(part) for part in zip(*found, strict=True)]
    name = operator.context.name
    raise CannotCompile(f"{name}: a compiled operator's keys are all of one type, or tuples of two or more")
