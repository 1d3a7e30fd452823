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

import logging
from abc import abstractmethod
from collections import defaultdict, deque
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ...messages import CheckpointId
from ...messages.counted import counted
from ...state.columns.batch_codec import pack_batch, unpack_batch
from ...state.kinds.descriptors import OperatorListState
from ..errors import UnwantedResult
from ..flow.elements import END_OF_TIME, AnyBatch, Batch, RoundMark, TimedBatch, Times, Watermark
from .collector import Collector, OutputTag
from .operator import Operator, Takes

log = logging.getLogger(__name__)

MANY_ROUNDS = 1_000
LONG_LOOP_MS = 10 * 60_000
"""From the end of the input on."""
MUCH_IN_LOOP_BYTES = 64 * 1024 * 1024
"""On its way back to a subtask of a head at a checkpoint: more than in a loop whose records leave it as they come."""

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
            f"loop {head!r} has ended, and {counted(records, 'record')} came back to it after that: an operator inside "
            'emits when its data has ended (on_end, an aggregate with emit="end"). Let that leave the loop, as a side '
            "output that only what is behind the loop reads, or emit with each record or round"
        )


class LoopHead(Operator):
    """What both heads have in common."""

    takes: ClassVar[Takes] = "any"
    inputs: ClassVar[int] = 2
    _emits_at_end = False

    _said_much = False
    _began_ms = 0.0
    """When rounds began, in this attempt."""
    _said_after_ms = 0.0
    _said: RoundMark | None = None
    """When it was said last that the rounds take long, and what the last one of them said then."""

    number = 0
    """Of the round that it is in; 0: rounds have not begun."""

    _in_loop = IN_LOOP

    def take_in_loop(self) -> list[AnyBatch]:
        """What was on its way back when the snapshot was taken, once."""
        packed = self._in_loop.get()
        self._in_loop.update([])
        return [unpack_batch(each) for each in packed]

    def begin_rounds(self) -> None:
        """All input has ended: it is in the round `number` now, that of the snapshot, whose mark is not sent."""
        self._began_ms = self.context.clock.now_ms()

    @abstractmethod
    def round_over(self, over: RoundMark, out: Collector) -> bool:
        """The mark of its round has come back from all tails, and says this; whether there is a next round."""

    @abstractmethod
    def send_round(self, out: Collector) -> bool:
        """Send a part of what its round begins with; whether there is more. The round's mark goes behind the last."""

    def look_at_checkpoint(self, size_bytes: int) -> None:
        """So much was on its way back at a checkpoint: say once, in the log, that it may grow for ever."""
        if size_bytes < MUCH_IN_LOOP_BYTES or self._said_much:
            return
        self._said_much = True
        log.warning(
            "loop %r: %d MB are on their way back to subtask %d, in the memory of its TaskManager and in each "
            "checkpoint. If that grows, records come in, or are made in the loop, faster than they leave: look which "
            "never leave, send back fewer for each that comes, or slow the source down (records_per_second)",
            self.context.name,
            size_bytes // 1_000_000,
            self.context.subtask_index,
        )

    def _opened(self) -> None:
        self.metrics.gauge("round", lambda: self.number)

    def _look_at(self, over: RoundMark) -> None:
        """Say that the loop may have no end, in the log: in rounds 1,000, 10,000, ...; and after 10 minutes, 20, ...
        All heads get the same marks, and the first one says it.
        """
        if self.context.subtask_index:
            return
        if over.number >= MANY_ROUNDS and str(over.number).strip("0") == "1":
            log.warning(
                "loop %r has gone round %d times since its input ended, and in the last round %d records were sent "
                "back: if that is not meant, look why they never leave",
                self.context.name,
                over.number,
                over.records,
            )
        for_ms = self.context.clock.now_ms() - self._began_ms
        if self._may_be_endless and for_ms >= max(LONG_LOOP_MS, 2 * self._said_after_ms):
            before, self._said, self._said_after_ms = self._said, over, for_ms
            log.warning(
                "loop %r goes round since its input ended %d min ago: %d rounds so far, and in the last one %d records "
                "were sent back%s. If that does not come to 0 by itself, look which records never leave; "
                "delta_iterate takes max_rounds",
                self.context.name,
                for_ms // 60_000,
                over.number,
                over.records,
                "" if before is None else f", {before.records} in round {before.number}",
            )

    @property
    def _may_be_endless(self) -> bool:
        """Whether its rounds have no limit."""
        return True

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        """That of the input; what is sent back has the same columns."""
        return inputs[0]


class StreamHead(LoopHead):
    """Of a loop in a stream. With input at its end, rounds only say whether anything still goes round."""

    _quiet_rounds = 0
    """In which nothing was sent back: after the first one event time ends, after the second one the loop."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        out.emit_element(_timed(self, batch, self.timestamps))

    def process_batch_2(self, batch: Batch, out: Collector) -> None:
        out.emit_element(_timed(self, batch, self.timestamps))

    def begin_rounds(self) -> None:
        super().begin_rounds()
        self.number = 1

    def round_over(self, over: RoundMark, out: Collector) -> bool:
        """After a restore the first mark does not count what had been sent back before the snapshot."""
        self.number = over.number + 1
        self._look_at(over)
        if over.number == 1 or over.records:
            return True
        self._quiet_rounds += 1
        return self._quiet_rounds == 1

    def send_round(self, out: Collector) -> bool:
        """When nothing goes round any more, event time comes to its end but for the last millisecond: what is due then
        may still go round.
        """
        if self._quiet_rounds == 1:
            out.emit_element(Watermark(END_OF_TIME - 1))
        return False


class RoundsHead(LoopHead):
    """Of a loop in rounds: `max_rounds` at most, and as long as records are sent back; with `has_criterion`, as long as
    records come to the criterion's tail. `converges`: when none are, its result is final, and not before.
    """

    _round = OperatorListState(int, mode="union", name="round")
    _kept: OperatorListState[Any] = OperatorListState(object, name="kept")
    """(round, packed batch): what was sent back in a round, and has not been sent in the next one."""

    def __init__(self, max_rounds: int | None, *, has_criterion: bool = False, converges: bool = False) -> None:
        self.max_rounds, self.has_criterion, self.converges = max_rounds, has_criterion, converges

    def open(self) -> None:
        self.number = min(self._round.get(), default=1)
        self._returned: defaultdict[int, list[Batch]] = defaultdict(list)
        for number, packed in self._kept.get():
            self._returned[number].append(unpack_batch(packed))
        self._to_send = deque(self._returned.pop(self.number - 1, ()))

    def process_batch(self, batch: Batch, out: Collector) -> None:
        self._send(batch, out)

    def process_batch_2(self, batch: Batch, out: Collector) -> None:
        assert self.timestamps is not None, "a tail says the round of all that it sends back"
        self._returned[int(self.timestamps[0])].append(batch)

    def round_over(self, over: RoundMark, out: Collector) -> bool:
        self._look_at(over)
        returned = self._returned.pop(over.number, [])
        wanted = over.wanting if self.has_criterion else over.records
        if wanted and over.number == self.max_rounds:
            self._warn_of_the_rest(wanted)
        if not wanted or (self.max_rounds is not None and over.number >= self.max_rounds):
            for batch in returned:
                out.emit_to(RESULT, batch)
            return False
        self.number = over.number + 1
        self._to_send.extend(returned)
        return True

    def _warn_of_the_rest(self, wanted: int) -> None:
        """Once, though each subtask sees it: an answer that is not final looks like one that is."""
        if self.context.subtask_index or not (self.converges or self.has_criterion):
            return
        what = "came to its criterion" if self.has_criterion else "were changed by the last one"
        log.warning(
            "loop %r ends after max_rounds=%d, though %s %s: its result is not final. Raise max_rounds%s",
            self.context.name,
            self.max_rounds,
            counted(wanted, "record"),
            what,
            "" if self.has_criterion else ", or leave it out",
        )

    def send_round(self, out: Collector) -> bool:
        if self._to_send:
            self._send(self._to_send.popleft(), out)
            return True
        out.emit_element(Watermark(self.number))
        return False

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        kept = {**self._returned, self.number - 1: self._to_send}
        self._round.update([self.number])
        self._kept.update((number, pack_batch(batch)) for number, batches in kept.items() for batch in batches)

    @property
    def _may_be_endless(self) -> bool:
        return self.max_rounds is None

    def _send(self, batch: Batch, out: Collector) -> None:
        out.emit(batch, np.full(len(batch), self.number, np.int64))


class LoopTail(Operator):
    """Sends what it gets back to the head of its loop, and counts it. One of a criterion only counts."""

    takes: ClassVar[Takes] = "any"
    _emits_at_end = False

    _counted: OperatorListState[Any] = OperatorListState(object, name="counted")
    """(round, records): of rounds whose mark has not passed, and of the last one whose mark has."""
    _next = OperatorListState(int, mode="union", name="next")
    """The next mark of each tail."""

    def __init__(self, *, by_round: bool, is_criterion: bool = False) -> None:
        """`by_round`: the event time of a record is its round; else rounds only say whether anything goes round."""
        self.by_round, self.is_criterion = by_round, is_criterion

    def open(self) -> None:
        self._counts: defaultdict[int, int] = defaultdict(int)
        for number, records in self._counted.get():
            self._counts[number] += records
        numbers = list(self._next.get())
        self._number = max(numbers, default=1)
        """Of the next mark; if not exact, of the next one of the tail that was furthest."""
        self._is_exact = not numbers
        """Not after a restore, before a mark has passed."""

    def process_batch(self, batch: Batch, out: Collector) -> None:
        times, number = self.timestamps, self._number
        if self.by_round and self.watermark != END_OF_TIME:  # whatever time it has: that round is not over here
            if not self._is_exact:
                number = min(number, max(self.watermark, 0) + 1)
            times = np.full(len(batch), number, np.int64)
        self._counts[number] += len(batch)
        if self.is_criterion:
            _check_criterion(batch)
        else:
            out.emit_element(_timed(self, batch, times))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        return inputs[0]

    def mark(self, number: int) -> RoundMark:
        """What the tail says of this round, which is over here. It may be asked again after a restore."""
        self._number, self._is_exact = number + 1, True
        self._counts = defaultdict(int, {each: count for each, count in self._counts.items() if each >= number})
        count = self._counts[number]
        return RoundMark(number, 0, count) if self.is_criterion else RoundMark(number, count)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        if self.by_round:
            self._counted.update(self._counts.items())
            self._next.update([self._number])


def _timed(operator: Operator, batch: Batch, times: Times | None) -> AnyBatch:
    """The batch that the operator has got, with these event times."""
    return batch if times is None else TimedBatch(batch, times, operator.time_column, operator.split_watermarks)


def _check_criterion(records: Batch) -> None:
    """Raises UnwantedResult for a record that is meant to say no: that one has come says yes."""
    if isinstance(records, list) and any(each is False or (type(each) is np.bool_ and not each) for each in records):
        raise UnwantedResult(
            "the criterion of the loop got the record False: it goes on as long as any record comes there, whatever "
            "that is; write .filter(goes_on) in place of .map(goes_on)"
        )
