"""LoopHead and LoopTail: the two ends of a loop, between which records go round.

    input ---> head ---> the operators of the loop ---> tail
                ^------------ feedback edge ------------'

The head takes input, and what its tails send back to it. StreamHead sends both on as they come: records go round as
long as operators send them back. RoundsHead keeps what comes back until its round is over: no record of a round is
sent before all of the one before have been processed. The event time of a record inside is its round, from 1, and the
watermark says which rounds are over; so timers and windows of operators inside go by rounds.

When all input has ended the head sends a RoundMark, and the next one when that has come back from all tails. Marks say
how many records were sent back, to all heads alike: so they agree, without anybody else, on whether there is another
round. What is on its way back when a checkpoint is taken is part of the head's state.

Source: Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (2015), section 4.3; FLIP-15 and
FLIP-16 (loops in streams), which Flink never had; Flink's DataSet.iterate for rounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from typing import Any, ClassVar

import numpy as np

from ...messages import CheckpointId
from ...state.columns.batch_codec import pack_batch, unpack_batch
from ...state.kinds.descriptors import OperatorListState
from ..flow.elements import END_OF_TIME, NO_WATERMARK, AnyBatch, Batch, RoundMark, TimedBatch, Watermark
from .collector import Collector, OutputTag
from .operator import Operator, Takes

RESULT = OutputTag("result")
"""What the last round of a RoundsHead has sent back."""

IN_LOOP = OperatorListState(bytes, name="in-loop")
"""What was on its way back at a checkpoint: packed batches. Its task adds them to the snapshot, and gives them to its
gate when it is restored.
"""


class LoopIsOver(RuntimeError):
    """A record was sent back when the loop had ended."""

    def __init__(self, head: str, records: int) -> None:
        super().__init__(
            f"loop {head!r} has ended, and {records} records were sent back to it after that: an operator inside emits "
            'when its data has ended (on_end, an aggregate with emit="end"), which can leave the loop, but not go '
            "round again"
        )


class LoopHead(Operator):
    """What both heads have in common."""

    takes: ClassVar[Takes] = "any"
    inputs: ClassVar[int] = 2
    _emits_at_end = False

    number = 0
    """Of the round that it is in; 0: rounds have not begun."""

    _in_loop = IN_LOOP

    def take_in_loop(self) -> list[AnyBatch]:
        """What was on its way back when the snapshot was taken, once."""
        packed = self._in_loop.get()
        self._in_loop.update([])
        return [unpack_batch(each) for each in packed]

    @abstractmethod
    def begin_rounds(self, out: Collector) -> int:
        """All input has ended. Returns the number of the mark to be sent now."""

    @abstractmethod
    def round_over(self, over: RoundMark, out: Collector) -> int | None:
        """The mark of this round has come back from all tails. Returns the number of the next; None: there is none."""

    def _times(self, batch: Batch) -> AnyBatch:
        """The batch with the event times that it came with."""
        if self.timestamps is None:
            return batch
        return TimedBatch(batch, self.timestamps, self.time_column, self.split_watermarks)


class StreamHead(LoopHead):
    """Of a loop in a stream. With input at its end, rounds only say whether anything still goes round."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        out.emit_element(self._times(batch))

    def process_batch_2(self, batch: Batch, out: Collector) -> None:
        out.emit_element(self._times(batch))

    def begin_rounds(self, out: Collector) -> int:
        """Event time is at its end but for the last millisecond: what is due before that may still go round."""
        if self.watermark != NO_WATERMARK:
            out.emit_element(Watermark(END_OF_TIME - 1))
        self.number = 1
        return self.number

    def round_over(self, over: RoundMark, out: Collector) -> int | None:
        """After a restore the first mark does not count what had been sent back before the snapshot."""
        if over.number > 1 and not over.records:
            return None
        self.number = over.number + 1
        return self.number


class RoundsHead(LoopHead):
    """Of a loop in rounds: `max_rounds` at most, and as long as records are sent back; with `has_criterion`, as long as
    records come to the criterion's tail.
    """

    _round = OperatorListState(int, mode="union", name="round")
    _kept: OperatorListState[Any] = OperatorListState(object, name="kept")
    """(round, packed batch): what has been sent back in a round that is not over."""

    def __init__(self, max_rounds: int | None, *, has_criterion: bool = False) -> None:
        self.max_rounds, self.has_criterion = max_rounds, has_criterion

    def open(self) -> None:
        self.number = min(self._round.get(), default=1)
        self._returned: defaultdict[int, list[Batch]] = defaultdict(list)
        for number, packed in self._kept.get():
            self._returned[number].append(unpack_batch(packed))

    def process_batch(self, batch: Batch, out: Collector) -> None:
        self._send(batch, out)

    def process_batch_2(self, batch: Batch, out: Collector) -> None:
        assert self.timestamps is not None, "a tail says the round of all that it sends back"
        self._returned[int(self.timestamps[0])].append(batch)

    def begin_rounds(self, out: Collector) -> int:
        out.emit_element(Watermark(self.number))
        return self.number

    def round_over(self, over: RoundMark, out: Collector) -> int | None:
        returned = self._returned.pop(over.number, [])
        wanted = over.wanting if self.has_criterion else over.records
        if not wanted or (self.max_rounds is not None and over.number >= self.max_rounds):
            for batch in returned:
                out.emit_to(RESULT, batch)
            return None
        self.number = over.number + 1
        for batch in returned:
            self._send(batch, out)
        out.emit_element(Watermark(self.number))
        return self.number

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._round.update([self.number])
        self._kept.update(
            (number, pack_batch(batch)) for number, batches in self._returned.items() for batch in batches
        )

    def _passes(self, watermark_ms: int) -> bool:
        return False

    def _send(self, batch: Batch, out: Collector) -> None:
        out.emit(batch, np.full(len(batch), self.number, np.int64))


class LoopTail(Operator):
    """Sends what it gets back to the head of its loop, and counts it. One of a criterion only counts."""

    takes: ClassVar[Takes] = "any"
    _emits_at_end = False

    _counted: OperatorListState[Any] = OperatorListState(object, name="counted")
    """(round, records): of rounds whose mark has not passed, and of the last one whose mark has."""
    _rounds = OperatorListState(int, mode="union", name="rounds")
    """Of each tail, the round that it is in."""

    def __init__(self, *, by_round: bool, is_criterion: bool = False) -> None:
        """`by_round`: the event time of a record is its round; else rounds only say whether anything goes round."""
        self.by_round, self.is_criterion = by_round, is_criterion

    def open(self) -> None:
        self._counts: defaultdict[int, int] = defaultdict(int)
        for number, records in self._counted.get():
            self._counts[number] += records
        self._number = min(self._rounds.get(), default=1)

    def process_batch(self, batch: Batch, out: Collector) -> None:
        """Records that have lost their time on the way are of the round that the tail is in: it goes no further before
        all of them have come.
        """
        times, number = self.timestamps, self._number
        if self.by_round and times is not None:
            number = int(times[0])
        elif self.by_round:
            times = np.full(len(batch), number, np.int64)
        self._counts[number] += len(batch)
        if not self.is_criterion:
            timed = batch if times is None else TimedBatch(batch, times, self.time_column, self.split_watermarks)
            out.emit_element(timed)

    def mark(self, number: int) -> RoundMark:
        """What the tail says of this round, which is over here. It may be asked again after a restore."""
        self._number = number + 1
        self._counts = defaultdict(int, {each: count for each, count in self._counts.items() if each >= number})
        count = self._counts[number]
        return RoundMark(number, 0, count) if self.is_criterion else RoundMark(number, count)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        if self.by_round:
            self._counted.update(self._counts.items())
            self._rounds.update([self._number])
