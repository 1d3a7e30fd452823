"""OperatorChain: the operators of one vertex, run one after the other in the task's step.

A chained hand-over is a function call on a whole batch. Between operators a batch is turned into what the next one
takes: rows for a per-record operator, an Arrow batch for a columnar one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ...messages import CheckpointId, UnsupportedValue
from ..errors import RecordNotSent, UserCodeError
from ..flow.elements import Batch
from ..flow.records import batch_of, rows_of
from ..operators.collector import Collector
from ..operators.operator import Operator, Takes
from ..operators.without_key import without_key
from ..unrun import has_run, refuse

_EMITTING = ("on_end", "before_barrier")
"""Hooks that emit to a collector, and so return nothing."""


class OperatorChain:
    """Feeds batches through operators and hands what comes out at the end to `emit`."""

    def __init__(self, operators: Sequence[Operator], emit: Callable[[Batch], None]) -> None:
        self.operators = tuple(operators)
        self._emit = emit
        self._collectors = tuple(Collector() for _ in self.operators)
        self._idlers = _overriding(self.operators, "on_idle")
        self._flushers = _overriding(self.operators, "before_barrier")

    def open(self) -> None:
        """Open the last operator first, so that whatever an operator emits finds its successors open. Flink:
        OperatorChain.
        """
        for operator in reversed(self.operators):
            _call(operator, "open")
            with blame(operator):
                operator._opened()

    def process(self, batch: Batch, input_index: int = 0, start: int = 0) -> None:
        """Run one batch through the chain from operator `start`; `input_index` is the first operator's input."""
        if start == len(self.operators):
            self._emit(batch)
            return
        operator, out = self.operators[start], self._collectors[start]
        process: Callable[[Batch, Collector], Any] = operator.process_batch_2 if input_index else operator.process_batch
        emitter = self.operators[start - 1] if start else None
        with blame(operator):
            taken = _as_taken(operator._taken_as(input_index), batch)
        is_last = start == len(self.operators) - 1  # what goes out to other tasks costs something per batch
        for piece in (taken,) if is_last else operator._in_pieces(input_index, taken):
            with blame(operator, emitter=emitter):
                if (result := process(piece, out)) is not None:
                    refuse(f"{type(operator).__name__}.process_batch{'_2' if input_index else ''}", result)
            self._pass_on(start)

    def end(self) -> None:
        """All input has ended: each operator in turn emits what is left."""
        for index, operator in enumerate(self.operators):
            _call(operator, "on_end", self._collectors[index])
            self._pass_on(index)

    def idle(self) -> float | None:
        """There is no input: operators may emit what they hold back. Returns in how many ms one wants to be asked
        again.
        """
        delays: list[float | None] = []
        for index in self._idlers:
            delays.append(_call(self.operators[index], "on_idle", self._collectors[index]))
            self._pass_on(index)
        return min((delay for delay in delays if delay is not None), default=None)

    def checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """Let each operator emit what it holds back, then each put what must survive into its state."""
        for index in self._flushers:
            _call(self.operators[index], "before_barrier", checkpoint_id, self._collectors[index])
            self._pass_on(index)
        for operator in self.operators:
            _call(operator, "on_checkpoint", checkpoint_id)

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        for operator in self.operators:
            _call(operator, "on_checkpoint_complete", checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: CheckpointId) -> None:
        for operator in self.operators:
            _call(operator, "on_checkpoint_aborted", checkpoint_id)

    def close(self) -> list[UserCodeError]:
        """Close every operator, the first one first; returns what they raised instead of stopping at it."""
        errors: list[UserCodeError] = []
        for operator in self.operators:
            try:
                _call(operator, "close")
            except UserCodeError as error:  # the others must be closed too
                errors.append(error)
        return errors

    def find(self, name: str) -> Operator | None:
        """The operator with this name or id."""
        for operator in self.operators:
            if name in (operator.context.name, operator.context.operator_id):
                return operator
        return None

    def _pass_on(self, index: int) -> None:
        for batch in self._collectors[index].taken():
            self.process(batch, 0, index + 1)


def _overriding(operators: Sequence[Operator], method: str) -> tuple[int, ...]:
    """The places of the operators that define this method: the others need not be called."""
    base = getattr(Operator, method)
    return tuple(index for index, each in enumerate(operators) if getattr(type(each), method, base) is not base)


class blame:
    """Names the operator in whatever it raises, be it SystemExit, and the position of its record if that is known.

    `emitter`: whose records it takes; named instead if it was given one that cannot be written.
    """

    __slots__ = ("_emitter", "_operator", "_position")

    def __init__(self, operator: Operator, position: int | None = None, *, emitter: Operator | None = None) -> None:
        self._operator = operator
        self._position = position
        self._emitter = emitter

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _traceback: Any) -> None:
        if error is not None and not isinstance(error, UserCodeError):
            if self._emitter is not None and isinstance(error, UnsupportedValue):
                raise RecordNotSent(self._emitter.context.name, error) from error
            cause = without_key(error, self._operator)
            raise UserCodeError(self._operator.context.name, self._position) from cause


class hook(blame):
    """The same around a method that is called without a key; there is none afterwards either, whatever it did."""

    __slots__ = ("_name",)

    def __init__(self, operator: Operator, name: str) -> None:
        super().__init__(operator)
        self._name = name

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._operator._leave_key()
        if error is not None:
            error = without_key(error, self._operator, self._name)
        super().__exit__(kind, error, traceback)


def _call(operator: Operator, name: str, *args: Any) -> Any:
    """Call one of the operator's hooks. Its result is refused if nothing of the hook has run, or if it was to emit
    that.
    """
    with hook(operator, name):
        result = getattr(operator, name)(*args)
        if result is None:
            return None
        what = f"{type(operator).__name__}.{name}"
        return refuse(what, result) if name in _EMITTING else has_run(what, result)


def _as_taken(takes: Takes, batch: Batch) -> Batch:
    if takes == "records" and isinstance(batch, pa.RecordBatch):
        return rows_of(batch)
    if takes == "columns" and not isinstance(batch, pa.RecordBatch):
        return batch_of(batch)
    return batch
