"""OperatorChain: the operators of one vertex, run one after the other in the task's step.

A chained hand-over is a function call on a whole batch. Between operators a batch is turned into what the next one
takes: rows for a per-record operator, an Arrow batch for a columnar one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from sys import getrefcount
from typing import Any

import numpy as np
import pyarrow as pa

from ...messages import CheckpointId, GrantPermits
from ..errors import UserCodeError
from ..flow.elements import (
    END_OF_TIME,
    AnyBatch,
    Batch,
    KnownRows,
    RoundMark,
    SlotRows,
    TimedBatch,
    Times,
    Watermark,
    WatermarkStatus,
)
from ..flow.records import batch_of, rows_of
from ..operators.beside_state import BesideState
from ..operators.collector import OWN_REFERENCES, Collector
from ..operators.loops import LoopHead, LoopTail
from ..operators.operator import Operator, RecordCalls, Takes
from ..unrun import check_emitted, refuse
from .kept_collectors import KeptCollectors
from .operator_hooks import blame, call, call_ours_too, hook

_LEFT = (
    "understudy: user code of {} has forked process {}, and its child {} came back to the task: the child is ended "
    "here. A child has to end in the function that forks it, with os._exit(); subprocess and multiprocessing see to "
    "that\n"
)


def plain_collector(_: Operator) -> Collector:
    return Collector()


class OperatorChain:
    """Feeds batches and watermarks through operators. What comes out at the end goes to `emit`, with the name of the
    side output if it is one; watermarks and statuses go to `broadcast`.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        emit: Callable[..., None],
        broadcast: Callable[[Watermark | WatermarkStatus], None] = lambda _: None,
        make_collector: Callable[[Operator], Collector] = plain_collector,
        *,
        in_rounds: bool = False,
    ) -> None:
        """`in_rounds`: inside a loop whose rounds are event time; batches that have lost it get that of their round."""
        self.operators = tuple(operators)
        self._emit = emit
        self._broadcast = broadcast
        self._make_collector = make_collector
        self._in_rounds = in_rounds
        self._pid = os.getpid()
        self._collectors = [make_collector(each) for each in self.operators]
        self._kept = KeptCollectors()
        self._misused = self._kept.misused
        self._idlers = _overriding(self.operators, "on_idle")
        self._flushers = _overriding(self.operators, "before_barrier")
        self._clocked = tuple(
            index
            for index, each in enumerate(self.operators)
            if each._calls is not None or index in _overriding(self.operators, "_due_ms")
        )
        self._fillable = tuple(self.operators[index] for index in _overriding(self.operators, "_wants_no_input"))
        self._beside: tuple[BesideState, ...] = ()
        self.calls = self.operators[0]._calls if self.operators else None
        """Of the first operator, if it runs coroutines; no other one does."""

    def open(self) -> None:
        """Open the last operator first, so that whatever an operator emits finds its successors open. Flink:
        OperatorChain.
        """
        for operator in reversed(self.operators):
            if operator._calls is None:
                operator._belong_here(partial(self._kept.note, operator))
                call(operator, "open")
            else:
                with hook(operator, "open"):
                    operator._calls.open()
            with blame(operator):
                operator._opened()
        self._beside = tuple(map(BesideState, self.operators))
        self._leave_fork()

    def process(self, batch: AnyBatch | KnownRows | SlotRows, input_index: int = 0, start: int = 0) -> None:
        """Run one batch through the chain from operator `start`; `input_index` is the first operator's input."""
        if start == len(self.operators):
            self._emit(batch)
            return
        operator = self.operators[start]
        process: Callable[[Batch, Collector], Any] = operator.process_batch_2 if input_index else operator.process_batch
        if operator._calls is not None:
            process = partial(_take, operator._calls, input_index)
        emitter = self.operators[start - 1] if start else None
        times: Times | None = None
        marks: Times | None = None
        column: str | None = None
        records: Batch
        if isinstance(batch, TimedBatch):
            records, times, marks, column = batch.records, batch.times, batch.watermarks, batch.column
        else:
            records = batch
        with blame(operator):
            taken = _as_taken(operator._taken_as(input_index), records)
        is_last = start == len(self.operators) - 1  # what goes out to other tasks costs something per batch
        taken_rows = 0
        for piece in (taken,) if is_last else operator._in_pieces(input_index, taken):
            if times is not None:
                own = slice(taken_rows, taken_rows + len(piece))
                operator.timestamps, operator.time_column = times[own], column
                operator.split_watermarks = None if marks is None else marks[own]
                taken_rows += len(piece)
            with blame(operator, emitter=emitter):
                if (result := process(piece, self._collectors[start])) is not None:
                    refuse(f"{type(operator).__name__}.process_batch{'_2' if input_index else ''}", result)
            if times is not None:
                operator.timestamps = operator.split_watermarks = operator.time_column = None
            self._pass_on(start)

    def advance(self, watermark_ms: int) -> bool:
        """Event time has come this far at the head of the chain. Does a part of what the first operator has to do then,
        whether there is more of it; the watermark goes on behind all that comes of it. The end of time does not: what
        operators emit in `end` goes before it.
        """
        head = self.operators[0]
        head.watermark = watermark_ms
        more = self._advance(0, watermark_ms)
        if not more and watermark_ms != END_OF_TIME and head._passes(watermark_ms):
            self._forward(1, watermark_ms)
        return more

    @property
    def loop_head(self) -> LoopHead:
        """The first operator, of a task with feedback edges."""
        head = self.operators[0]
        assert isinstance(head, LoopHead), "only the head of a loop has feedback edges"
        return head

    def round_over(self, over: RoundMark) -> bool:
        """At the head of a loop: all it had sent has come round; whether there is a next round."""
        with hook(self.loop_head, "round_over"):
            goes_on = self.loop_head.round_over(over, self._collectors[0])
        self._pass_on(0)
        return goes_on

    def send_round(self) -> bool:
        """At the head of a loop: send a part of what its round begins with; whether there is more."""
        with hook(self.loop_head, "send_round"):
            is_more = self.loop_head.send_round(self._collectors[0])
        self._pass_on(0)
        return is_more

    def marked(self, number: int) -> RoundMark:
        """The mark of this round passes, behind all that operators hold back: what it says on feedback edges."""
        for index in self._flushers:
            call(self.operators[index], "before_barrier", CheckpointId(0), self._collectors[index])
            self._pass_on(index)
        tail = self.operators[-1]
        return tail.mark(number) if isinstance(tail, LoopTail) else RoundMark(number)

    def fire_due(self, now_ms: int) -> tuple[bool, int | None]:
        """Does a part of what is due by the clock: whether anything was done; else when something will be due."""
        due_ms: int | None = None
        for index in self._clocked:
            operator = self.operators[index]
            at_ms = operator._due_ms()
            if at_ms is not None and at_ms <= now_ms:
                with hook(operator, "on_timer"):
                    operator._on_due(now_ms, self._collectors[index])
                self._pass_on(index)
                return True, None
            if at_ms is not None:
                due_ms = at_ms if due_ms is None else min(due_ms, at_ms)
        return False, due_ms

    @property
    def has_clock(self) -> bool:
        """Whether anything can be due by the clock."""
        return bool(self._clocked)

    @property
    def is_full(self) -> bool:
        """Whether the first operator has as many records in flight as it may have, or another one wants no more."""
        if self.calls is not None and self.calls.is_full:
            return True
        return any([each._wants_no_input for each in self._fillable])  # noqa: C419 (nearly always empty, and asked at each step)

    @property
    def is_settled(self) -> bool:
        """Whether no operator has anything left to do for the job's last checkpoint."""
        return all(each._has_applied_all for each in self.operators)

    @property
    def is_draining(self) -> bool:
        """Whether data has ended, and not all that the first operator had in flight has left it."""
        return self.calls is not None and self.calls.is_draining

    def _forward(self, start: int, watermark_ms: int) -> None:
        """A watermark comes out of the operator before `start`: those behind it do all that there is to do."""
        for index in range(start, len(self.operators)):
            operator = self.operators[index]
            operator.watermark = watermark_ms
            while self._advance(index, watermark_ms):
                pass
            if not operator._passes(watermark_ms):
                return
        self._broadcast(Watermark(watermark_ms))

    def _advance(self, index: int, watermark_ms: int) -> bool:
        operator = self.operators[index]
        with hook(operator, "on_timer"):
            more = operator._advance(watermark_ms, self._collectors[index])
        self._pass_on(index)
        return more

    def end(self) -> None:
        """All input has ended: each operator in turn learns that event time has, and emits what is left. The first one
        has been advanced already.
        """
        for index, operator in enumerate(self.operators):
            operator.watermark = END_OF_TIME
            while index and self._advance(index, END_OF_TIME):
                pass
            call(operator, "on_end", self._collectors[index])
            self._pass_on(index)
            operator._data_ended()
        self._kept.data_ended()

    def idle(self) -> float | None:
        """There is no input: operators may emit what they hold back. Returns in how many ms one wants to be asked
        again.
        """
        delays: list[float | None] = []
        for index in self._idlers:
            delays.append(call(self.operators[index], "on_idle", self._collectors[index]))
            self._pass_on(index)
        return min((delay for delay in delays if delay is not None), default=None)

    def checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """Let each operator emit what it holds back, then each put what must survive into its state."""
        for index in self._flushers:
            call(self.operators[index], "before_barrier", checkpoint_id, self._collectors[index])
            self._pass_on(index)
        self._kept.look()
        if self.calls is not None:
            with blame(self.operators[0]):
                self.calls.settle()
        for operator in self.operators:
            call_ours_too(operator, "on_checkpoint", checkpoint_id)
        for each in self._beside:
            each.look()
        self._leave_fork()

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        for operator in self.operators:
            call_ours_too(operator, "on_checkpoint_complete", checkpoint_id)
        self._leave_fork()

    def checkpoint_aborted(self, checkpoint_id: CheckpointId) -> None:
        for operator in self.operators:
            call(operator, "on_checkpoint_aborted", checkpoint_id)
        self._leave_fork()

    def permits_granted(self, message: GrantPermits) -> None:
        """For the operator that requested them."""
        for operator in self.operators:
            if operator.context.operator_id == message.operator_id:
                with blame(operator):
                    operator._permits_granted(message)

    def say_again(self) -> None:
        """Another JobManager leads: see `Operator._say_again`."""
        for operator in self.operators:
            call(operator, "_say_again")

    @property
    def has_gauges(self) -> bool:
        """Whether any metric of its operators has to be read. From any thread."""
        return any(each.context.metrics.has_functions for each in self.operators)

    def read_gauges(self) -> None:
        for operator in self.operators:
            operator.context.metrics.read_gauges(operator.context.name)

    def close(self) -> list[UserCodeError]:
        """Close every operator, the first one first; returns what they raised instead of stopping at it."""
        errors: list[UserCodeError] = []
        for operator in self.operators:
            try:
                if operator._calls is None:
                    call(operator, "close")
                else:
                    with hook(operator, "close"):
                        operator._calls.close()
            except UserCodeError as error:  # the others must be closed too
                errors.append(error)
        return errors

    def find(self, name: str) -> Operator | None:
        """The operator with this name or id."""
        for operator in self.operators:
            if name in (operator.context.name, operator.context.operator_id):
                return operator
        return None

    def _leave_fork(self) -> None:
        """End this process if user code has forked it off. It has the files and sockets of the task: had it gone on, it
        would write what it has emitted into the midst of what the task itself writes.
        """
        if os.getpid() != self._pid:
            names = ", ".join(repr(each.context.name) for each in self.operators)
            os.write(2, _LEFT.format(names, self._pid, os.getpid()).encode())
            os._exit(1)

    def _pass_on(self, index: int) -> None:
        """What an operator has emitted goes on. Only the chain holds its collector now, unless the operator kept it."""
        self._leave_fork()
        collector = self._collectors[index]
        for element in collector.taken():
            match element:
                case Watermark(timestamp_ms):
                    self._forward(index + 1, timestamp_ms)
                case WatermarkStatus():
                    self._broadcast(element)
                case _:
                    records = element.records if isinstance(element, TimedBatch) else element
                    if type(records) is list and records:
                        operator = self.operators[index]
                        with blame(operator):
                            check_emitted(operator, records, each=operator._calls is not None)
                    if self._in_rounds and element is records:
                        element = self._of_round(element, self.operators[index].watermark)
                    self.process(element, 0, index + 1)
        if collector.has_sides:
            for tag, batch in collector.sides():
                self._emit(batch, tag)
        if getrefcount(collector) > OWN_REFERENCES:
            self._collectors[index] = self._make_collector(self.operators[index])
            self._kept.close(self.operators[index], collector)
        if self._misused:
            self._kept.refuse()

    @staticmethod
    def _of_round(batch: Batch, watermark_ms: int) -> AnyBatch:
        """The rounds up to the watermark are over, so it is of the next one. At the end there are no rounds."""
        if watermark_ms == END_OF_TIME:
            return batch
        return TimedBatch(batch, np.full(len(batch), max(watermark_ms, 0) + 1, np.int64))


def _take(calls: RecordCalls, input_index: int, batch: Batch, _out: Collector) -> None:
    calls.take(batch, input_index)


def _overriding(operators: Sequence[Operator], method: str) -> tuple[int, ...]:
    """The places of the operators that define this method: the others need not be called."""
    base = getattr(Operator, method)
    return tuple(index for index, each in enumerate(operators) if getattr(type(each), method, base) is not base)


def _as_taken(takes: Takes, batch: Batch) -> Batch:
    if takes == "records" and isinstance(batch, pa.RecordBatch):
        return rows_of(batch)
    if takes == "columns" and not isinstance(batch, pa.RecordBatch | KnownRows):
        return batch_of(batch)
    return batch
