"""TaskRounds: how far the round marks of a loop have come in one task, by what its input channels have said.

A task inside a loop sends a mark on when it has come on all channels inside the loop, and all other input has ended: so
all that the head had sent before it has been processed. At the head marks come back on feedback channels; a round is
over when its mark has come on all of them, and what the tails say of it is added up. As each tail waits for all heads,
and each head for all tails, no task is more than one round ahead of another.

A value machine: it calls no operator and sends nothing. Marks are no part of a snapshot: after a restore each head
sends the one of its round again. Flink ML: the epoch watermarks of flink-ml-iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..barriers.input_gate import GateChannel
from ..flow.elements import Element, RoundMark, TimedBatch

_ALL = 2**63 - 1
"""Of a channel that has ended: the number of its last mark."""


class TaskRounds:
    """One attempt's."""

    def __init__(self, channels: Sequence[GateChannel]) -> None:
        self._feedback = frozenset(index for index, each in enumerate(channels) if each.feedback)
        self._come = dict.fromkeys(self._feedback or range(len(channels)), 0)
        """By channel that is waited for, the number of its newest mark."""
        self._inputs = frozenset(range(len(channels))) - self._feedback
        self._ended: set[int] = set()
        self._sums: dict[int, RoundMark] = {}
        self._passed = 0

    @property
    def is_head(self) -> bool:
        """Whether the task is at the head of a loop."""
        return bool(self._feedback)

    def is_feedback(self, channel: int) -> bool:
        return channel in self._feedback

    def has_ended(self, channel: int) -> bool:
        return channel in self._ended

    @property
    def all_input_ended(self) -> bool:
        """Whether no record comes any more but those that are sent back."""
        return self._inputs <= self._ended

    def receive(self, channel: int, mark: RoundMark) -> RoundMark | None:
        """A mark on a channel; the mark that has come on all of them by this, with what all of them say."""
        self._come[channel] = max(mark.number, self._come[channel])
        so_far = self._sums.get(mark.number, RoundMark(mark.number))
        self._sums[mark.number] = RoundMark(mark.number, so_far.records + mark.records, so_far.wanting + mark.wanting)
        return self._look()

    def end(self, channel: int) -> RoundMark | None:
        """The channel's data has ended: it is waited for no more."""
        self._ended.add(channel)
        if channel not in self._come:
            return None
        self._come[channel] = _ALL
        return self._look()

    def _look(self) -> RoundMark | None:
        number = min(self._come.values())
        if not self._passed < number < _ALL:
            return None
        self._passed = number
        over = self._sums[number]
        self._sums = {each: mark for each, mark in self._sums.items() if each > number}
        return over


def of_the_first_round(element: Element) -> Element:
    """What comes into rounds from outside the loop: event time inside is the round, whatever its own was."""
    if isinstance(element, TimedBatch):
        element = element.records
    if isinstance(element, pa.RecordBatch | list):
        return TimedBatch(element, np.full(len(element), 1, np.int64))
    return element
