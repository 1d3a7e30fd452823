"""LoopTurns: what a task in a loop does beside its input: it sends the parts of a round, and passes marks on.

TaskRounds counts the marks; they are sent here. A task outside of loops has a LoopTurns too, which is never due. The
TaskLoop owns it, and calls it on the task's thread when there is nothing to do for a checkpoint.
"""

from __future__ import annotations

from ..flow.elements import RoundMark
from ..operators.loops import LoopIsOver
from .operator_hooks import blame
from .task_rounds import TaskRounds
from .task_setup import TaskParts


class LoopTurns:
    """One attempt's."""

    def __init__(self, parts: TaskParts) -> None:
        self.rounds = TaskRounds(parts.gate.channels)
        self._parts = parts
        self._sends_round = False
        """At the head of a loop: there is more to send before the mark of its round."""
        self._mark: RoundMark | None = None
        """It has come on all channels, and what was before it has not all been done."""

    @property
    def is_due(self) -> bool:
        """Whether there is a part of a round to send, or a mark to pass on."""
        return self._mark is not None or self._sends_round

    @property
    def has_mark(self) -> bool:
        """Whether a mark is next; a part of a round, otherwise."""
        return self._mark is not None

    def begin(self) -> None:
        """At the head: all input has ended, and the first round begins."""
        self._parts.chain.loop_head.begin_rounds()
        self._sends_round = True

    def receive(self, channel: int, mark: RoundMark) -> None:
        self._mark = self.rounds.receive(channel, mark) or self._mark

    def end(self, channel: int) -> None:
        """The channel's data has ended."""
        self._mark = self.rounds.end(channel) or self._mark

    def end_static_input(self, input_index: int) -> None:
        """A channel into the loop has ended. With the last one of its input the first operator is notified."""
        channels = enumerate(self._parts.gate.channels)
        if all(self.rounds.has_ended(index) for index, each in channels if each.input_index == input_index):
            first = self._parts.chain.operators[0]
            with blame(first):
                first._input_ended(input_index)

    def send(self) -> None:
        """At the head: a part of the round, and behind the last one its mark."""
        chain = self._parts.chain
        if not chain.send_round():
            self._sends_round = False
            self._send_mark(chain.loop_head.number)

    @property
    def may_pass(self) -> bool:
        """Whether all has been done that was before the mark."""
        calls = self._parts.chain.calls
        return calls is None or not calls.in_flight

    def pass_mark(self) -> bool:
        """Send the mark on; at the head its round is over. Whether it was the last round: there is no more data."""
        chain, mark = self._parts.chain, self._mark
        assert mark is not None, "a mark is passed when it has come"
        self._mark = None
        if not self.rounds.is_head:
            self._send_mark(mark.number)
            return False
        if mark.number != chain.loop_head.number:  # it was sent again after a restore
            return False
        self._sends_round = chain.round_over(mark)
        return not self._sends_round

    def refuse_late_feedback(self, records: int) -> None:
        """Raises LoopIsOver, wrapped: they have come back round a loop whose data has ended."""
        head = self._parts.chain.loop_head
        with blame(head):
            raise LoopIsOver(head.context.name, records)

    def _send_mark(self, number: int) -> None:
        self._parts.outputs.send_mark(self._parts.chain.marked(number))
