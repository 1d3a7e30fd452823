"""Backlog: the input of an operator's coroutines of which no calls have been made yet: batches as they came, and the
watermarks between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from ..errors import UserCodeError
from ..flow.elements import AnyBatch, Batch, TimedBatch, Times, Watermark, estimated_bytes
from ..flow.key_selector import KeySelectionFailed
from ..flow.records import rows_of, rows_one_by_one, values_of
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .call import CallKind
from .frozen_calls import CallInFlight
from .settings import AsyncSettings
from .waiting_batches import WaitingBatch, waiting_calls

NewRecord: TypeAlias = "tuple[Any, Any, int | None, int]"
"""Key, record, event time and watermark."""
NewCall: TypeAlias = "tuple[Any, Any, int | None, int, int, int | None, float]"
"""The same, with its input, position and size."""


class Piece:
    """One batch, and how many of its records have been taken."""

    __slots__ = (
        "_each",
        "_operator",
        "batch",
        "input_index",
        "is_keyed",
        "marks",
        "position",
        "size",
        "taken",
        "times",
        "watermark_ms",
    )

    def __init__(
        self,
        operator: Operator,
        batch: Batch,
        input_index: int,
        position: int | None,
        watermark_ms: int,
        times: Times | None,
        marks: Times | None,
    ) -> None:
        self._operator = operator
        self.batch = batch
        self.input_index = input_index
        self.position = position
        """Of its first record among those of the attempt; None for a restored one."""
        self.watermark_ms = watermark_ms
        self.times = times
        self.marks = marks
        self.taken = 0
        self.is_keyed = isinstance(operator, KeyedOperator)
        self.size = estimated_bytes(batch) / max(len(batch), 1)
        self._each: Iterator[NewRecord] | None = None

    def each(self) -> Iterator[NewRecord]:
        """The records that were not taken yet, always of the same iterator; whoever takes one counts it in `taken`.
        Raises UserCodeError for a record without a key.
        """
        if self._each is None:
            keys, records = self._keyed()
            times: Iterable[int | None] = repeat(None) if self.times is None else self.times.tolist()
            watermarks: Iterable[int] = repeat(self.watermark_ms)
            if self.marks is not None:
                watermarks = np.maximum(self.marks, self.watermark_ms).tolist()
            self._each = zip(keys, records, times, watermarks)  # noqa: B905 - may repeat
        return self._each

    def position_of(self, index: int) -> int | None:
        return None if self.position is None else self.position + index

    def rest(self) -> AnyBatch:
        """What was not taken, with its event times."""
        start, batch = self.taken, self.batch
        records = batch[start:] if isinstance(batch, list) else batch.slice(start)
        if self.times is None:
            return records
        return TimedBatch(records, self.times[start:], None, None if self.marks is None else self.marks[start:])

    def _keyed(self) -> tuple[Iterable[Any], Iterable[Any]]:
        operator, batch = self._operator, self.batch
        if not isinstance(operator, KeyedOperator):
            if isinstance(batch, list):
                return repeat(None), batch
            if not batch.num_columns:
                return repeat(None), rows_of(batch)
            return repeat(None), rows_one_by_one(batch, [values_of(column) for column in batch.columns])
        try:
            return operator._keyed_rows(self.input_index, batch)
        except KeySelectionFailed as error:
            raise UserCodeError(operator.context.name, self.position_of(error.position)) from error


class Backlog:
    """Of one operator. Owned by its AsyncCalls."""

    def __init__(self, operator: Operator, settings: AsyncSettings) -> None:
        self._operator = operator
        self._settings = settings
        self._pieces: deque[Piece | Watermark] = deque()
        self._position = 0
        self.kind: CallKind = "batch" if operator._takes_batches else "record"
        """Of the calls."""
        self._group: list[Any] = []
        """The records of the next call, where one takes several."""
        self._group_times: list[int] = []
        self._group_marks: list[int] = []
        self._group_size = 0.0
        self._group_position: int | None = 0
        self._group_due_ms = 0.0
        """By a clock that nobody sets."""

    def __bool__(self) -> bool:
        return bool(self._pieces or self._group)

    def has_some(self, now_ms: float) -> bool:
        """Whether `taken` gives anything now."""
        return bool(self._pieces) or (bool(self._group) and self._group_due_ms <= now_ms)

    @property
    def due_ms(self) -> float | None:
        """When a call is to be made of the records that wait for more."""
        return self._group_due_ms if self._group else None

    def add_batch(self, batch: Batch, input_index: int) -> None:
        operator = self._operator
        times, marks = operator.timestamps, operator.split_watermarks
        self._pieces.append(Piece(operator, batch, input_index, self._position, operator.watermark, times, marks))
        self._position += len(batch)

    def add_watermark(self, watermark_ms: int) -> None:
        self._pieces.append(Watermark(watermark_ms))

    def add_restored(self, each: CallInFlight) -> None:
        """A batch that waited when a snapshot was taken."""
        self._pieces.append(self._piece_of(each))

    def _piece_of(self, each: CallInFlight) -> Piece:
        batch = each.record
        timed = (batch.times, batch.watermarks) if isinstance(batch, TimedBatch) else (None, None)
        records = batch.records if isinstance(batch, TimedBatch) else batch
        return Piece(self._operator, records, each.input_index, None, each.watermark_ms, *timed)

    def taken(self, is_enough: Callable[[], bool]) -> Iterator[NewCall | Watermark]:
        """Take one after the other out, until it is enough. Raises UserCodeError for a record without a key."""
        pieces = self._pieces
        while pieces and not is_enough():
            piece = pieces[0]
            if isinstance(piece, Watermark):
                if self._group:
                    yield self._take_group()
                pieces.popleft()
                yield piece
            elif self.kind == "batch":
                yield from self._grouped(piece, is_enough)
            else:
                yield from self._each(piece, is_enough)
        if self._group and self._group_due_ms <= self._operator.context.clock.now_ms() and not is_enough():
            yield self._take_group()

    def _each(self, piece: Piece, is_enough: Callable[[], bool]) -> Iterator[NewCall]:
        input_index, position_of, size = piece.input_index, piece.position_of, piece.size
        for key, record, time_ms, watermark_ms in piece.each():
            taken = piece.taken
            piece.taken = taken + 1
            yield key, record, time_ms, watermark_ms, input_index, position_of(taken), size
            if is_enough():
                break
        if piece.taken == len(piece.batch):
            self._pieces.popleft()

    def take_piece(self) -> Piece | None:
        """Take the next batch out, if a batch is next."""
        if self._pieces and isinstance(self._pieces[0], Piece) and self.kind == "record":
            piece = self._pieces.popleft()
            assert isinstance(piece, Piece)
            return piece
        return None

    def put_back(self, piece: Piece) -> None:
        """The rest of the batch that was taken out."""
        if piece.taken < len(piece.batch):
            self._pieces.appendleft(piece)

    # -- calls of several records

    def _grouped(self, piece: Piece, is_enough: Callable[[], bool]) -> Iterator[NewCall]:
        rows = piece.batch if isinstance(piece.batch, list) else rows_of(piece.batch)
        wanted = self._settings.batch_size
        while piece.taken < len(rows) and not is_enough():
            if not self._group:
                self._group_due_ms = self._operator.context.clock.now_ms() + self._settings.batch_wait_ms
                self._group_position = piece.position_of(piece.taken)
            part = slice(piece.taken, piece.taken + wanted - len(self._group))
            self._group += rows[part]
            if piece.times is not None:
                self._group_times += piece.times[part].tolist()
                marks = (
                    np.full(len(piece.times[part]), piece.watermark_ms) if piece.marks is None else piece.marks[part]
                )
                self._group_marks += marks.tolist()
            self._group_size += piece.size * len(rows[part])
            piece.taken = min(part.stop, len(rows))
            if len(self._group) == wanted:
                yield self._take_group()
        if piece.taken == len(rows):
            self._pieces.popleft()

    def _take_group(self) -> NewCall:
        watermark_ms = self._operator.watermark
        taken = None, self._group_batch(), None, watermark_ms, 0, self._group_position, self._group_size
        self._group, self._group_times, self._group_marks, self._group_size = [], [], [], 0.0
        return taken

    def _group_batch(self) -> list[Any] | TimedBatch:
        """A copy: more may come while a snapshot with it is written."""
        records = self._group.copy()
        if not self._group_times:
            return records
        times, marks = (np.array(each, np.int64) for each in (self._group_times, self._group_marks))
        return TimedBatch(records, times, None, marks)

    # -- for snapshots

    def rest(self, number: int, taken_out: Piece | None, behind_ms: int) -> Callable[[], Iterator[CallInFlight]]:
        """What is here now, behind what is left of the one that was taken out, as calls of kind "waiting", numbered
        from `number`; the callable makes them, on any thread. `behind_ms`: the watermark that all of it waits behind.
        """
        there = [*self._pieces]
        if taken_out is not None and taken_out.taken < len(taken_out.batch):
            there.insert(0, taken_out)
        waiting: list[WaitingBatch] = []
        if self._group:
            waiting.append(WaitingBatch(self._group_batch(), 0, self._operator.watermark, behind_ms))
        for piece in there:
            if isinstance(piece, Watermark):
                behind_ms = piece.timestamp_ms
            elif len(batch := piece.rest()):
                waiting.append(WaitingBatch(batch, piece.input_index, piece.watermark_ms, behind_ms))
        return lambda: waiting_calls(waiting, self._operator, number)

    def calls_of(self, each: CallInFlight) -> Iterator[CallInFlight]:
        """A restored batch that waited, as a call for each record, or for each group."""
        piece = self._piece_of(each)
        records = self._batches(piece) if self.kind == "batch" else piece.each()
        for key, record, time_ms, watermark_ms in records:
            yield each._replace(kind=self.kind, key=key, record=record, time_ms=time_ms, watermark_ms=watermark_ms)

    def _batches(self, piece: Piece) -> Iterator[NewRecord]:
        rows = piece.batch if isinstance(piece.batch, list) else rows_of(piece.batch)
        size = self._settings.batch_size
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            batch: AnyBatch = rows[part]
            if piece.times is not None:
                batch = TimedBatch(batch, piece.times[part], None, None if piece.marks is None else piece.marks[part])
            yield None, batch, None, piece.watermark_ms
