"""TaskWatermarks: how far event time has come in one task, by what its input channels have said.

Keeps the newest watermark of each channel; the task's is the least of all that are waited for. A channel whose data has
ended holds nothing back. One that is idle is not waited for; one that is active again is waited for as soon as it is as
far as the task. When all channels that have not ended are idle, the task is as far as the furthest of them
(FLINK-38454), and idle itself. A channel that has said nothing yet holds everything back.

Channels of one group are idle together: what they know of it comes from one subtask (`idle_groups`), and reaches here
at different times. So each is waited for as long as one of them is active, or further than it. In Flink the first
channel that is active again takes event time ahead of records that are on their way on the others.

A value machine: it calls no operator and sends nothing. Its watermarks are part of each snapshot. Flink:
StatusWatermarkValve.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ...messages import NO_EDGE, InputWatermark, SubtaskIndex
from ..flow.elements import END_OF_TIME, NO_WATERMARK


class Channel(Protocol):
    """What is to be known of an input channel: a GateChannel."""

    @property
    def edge(self) -> int: ...

    @property
    def producer_subtask(self) -> SubtaskIndex: ...

    @property
    def input_index(self) -> int: ...


class ChannelProgress(NamedTuple):
    """How far one channel is, and since when, by the task's clock."""

    channel: int
    watermark_ms: int
    moved_ms: float


class TaskWatermarks:
    """One attempt's, with one watermark for each of its input channels; a source has none.

    `now_ms`, of each call: by the task's clock, to say since when a channel stands still.
    """

    def __init__(
        self,
        channels: int,
        now_ms: float = 0.0,
        feedback: Iterable[int] = (),
        groups: Sequence[int | None] = (),
    ) -> None:
        """`feedback`: channels that lead back to here in a loop, and so hold nothing back. `groups`: of each channel
        its group, if it is in one.
        """
        self._by_channel = [NO_WATERMARK] * channels
        self._feedback = tuple(feedback)
        self._let_go()
        self._groups = tuple(groups) or (None,) * channels
        self._says_idle = [False] * channels
        """What the channel itself has said last."""
        self._is_idle = [False] * channels
        """Whether it is idle, and so are all others of its group, as far as it."""
        self._is_aligned = [True] * channels
        """Whether it is waited for; one that was idle is not, as long as it is behind the task."""
        self._moved_ms = [now_ms] * channels
        self.current_ms = NO_WATERMARK
        """It never goes back."""

    @property
    def is_idle(self) -> bool:
        """Whether every channel that has not ended is idle, and there is one."""
        open_channels = self._open()
        return bool(open_channels) and all(self._is_idle[channel] for channel in open_channels)

    def receive(self, channel: int, timestamp_ms: int, now_ms: float = 0.0) -> bool:
        """A channel says how far it is; returns whether the task is further than before.

        What is not newer than the channel's last one changes nothing but that the channel is active: event time never
        goes back.
        """
        was_idle, said_idle = self._is_idle[channel], self._says_idle[channel]
        self._says_idle[channel] = False
        if timestamp_ms > self._by_channel[channel]:
            self._by_channel[channel], self._moved_ms[channel] = timestamp_ms, now_ms
        elif not was_idle:
            return False
        if said_idle or timestamp_ms == END_OF_TIME:
            self._settle_group(channel)
        self._is_aligned[channel] = self._by_channel[channel] >= self.current_ms or not (
            was_idle or not self._is_aligned[channel]
        )
        return self._look()

    def set_idle(self, channel: int, is_idle: bool) -> bool:
        """A channel is idle, or active again; returns whether the task is further than before."""
        if self._says_idle[channel] == is_idle:
            return False
        self._says_idle[channel] = is_idle
        self._settle_group(channel)
        return self._look()

    def end(self, channel: int, now_ms: float = 0.0) -> bool:
        """The channel's data has ended; returns whether the task is further than before."""
        return self.receive(channel, END_OF_TIME, now_ms)

    @property
    def slowest(self) -> ChannelProgress | None:
        """The channel that holds the task back, of those that are waited for. For any thread."""
        active = [channel for channel in self._open() if not self._is_idle[channel]]
        if not active:
            return None
        slowest = min(active, key=lambda channel: self._by_channel[channel])
        return ChannelProgress(slowest, self._by_channel[slowest], self._moved_ms[slowest])

    @property
    def furthest_ms(self) -> int:
        """The watermark of the channel that is furthest of those whose data has not ended, or that of the task."""
        return max(self.current_ms, *(each for each in self._by_channel if each != END_OF_TIME), NO_WATERMARK)

    def snapshot(self, channels: Sequence[Channel]) -> tuple[InputWatermark, ...]:
        """By channel; empty if none has one. A channel that is not waited for is as far as the task."""
        if all(watermark == NO_WATERMARK for watermark in self._by_channel):
            return ()
        waited_for = [not idle and aligned for idle, aligned in zip(self._is_idle, self._is_aligned, strict=True)]
        return tuple(
            InputWatermark(
                channel.edge,
                channel.producer_subtask,
                channel.input_index,
                watermark if waited else max(watermark, self.current_ms),
            )
            for channel, watermark, waited in zip(channels, self._by_channel, waited_for, strict=True)
        )

    def restore(self, stored: Sequence[InputWatermark], channels: Sequence[Channel]) -> None:
        """Go on where a snapshot was taken. If the channels are others now, all those of one input are as far as the
        least of the input's old ones.
        """
        by_channel = {(each.edge, each.producer_subtask): each.watermark_ms for each in stored if each.edge != NO_EDGE}
        names = [(channel.edge, channel.producer_subtask) for channel in channels]
        least: dict[int, int] = {}
        for each in stored:
            least[each.input_index] = min(each.watermark_ms, least.get(each.input_index, END_OF_TIME))
        for index, (channel, name) in enumerate(zip(channels, names, strict=True)):
            if set(by_channel) <= set(names):
                self._by_channel[index] = by_channel.get(name, least.get(channel.input_index, NO_WATERMARK))
            else:
                self._by_channel[index] = least.get(channel.input_index, NO_WATERMARK)
        self._let_go()
        self._look()

    def _settle_group(self, channel: int) -> None:
        """One of a group has said something else of it, or has ended."""
        group = self._groups[channel]
        members = [channel] if group is None else [each for each, its in enumerate(self._groups) if its == group]
        members = [each for each in members if self._by_channel[each] != END_OF_TIME]
        reached = {self._by_channel[each] for each in members}
        is_idle = len(reached) == 1 and all(self._says_idle[each] for each in members)
        for each in members:
            if self._is_idle[each] != is_idle:
                self._is_idle[each] = is_idle
                self._is_aligned[each] = self._by_channel[each] >= self.current_ms

    def _let_go(self) -> None:
        for channel in self._feedback:
            self._by_channel[channel] = END_OF_TIME

    def _open(self) -> list[int]:
        return [channel for channel, watermark in enumerate(self._by_channel) if watermark != END_OF_TIME]

    def _look(self) -> bool:
        before, self.current_ms = self.current_ms, max(self.current_ms, self._least())
        return self.current_ms > before

    def _least(self) -> int:
        open_channels = self._open()
        if not open_channels:
            return END_OF_TIME if self._by_channel else NO_WATERMARK
        active = [channel for channel in open_channels if not self._is_idle[channel]]
        if not active:
            return max(self._by_channel[channel] for channel in open_channels)
        waited_for = [self._by_channel[channel] for channel in active if self._is_aligned[channel]]
        return min(waited_for, default=NO_WATERMARK)
