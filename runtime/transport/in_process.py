"""A channel between two tasks of one TaskManager: a bounded deque, shared by two threads without a lock.

Elements are handed over as they are, and batches count as what they are estimated to take. The two ends may be made at
different times (`LocalChannels` lets them meet), and may be used by two threads, one thread per end.

Invariant: each counter has one writer, and each end writes its own counter before it reads the other's. So of a
producer that finds the window full and a consumer that takes a batch, at least one sees the other, and no wake-up is
missed; a wake-up too many does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

import pyarrow as pa

from ...actors.errors import ChannelBroken
from ...actors.flow.channels import InputChannel, OutputChannel
from ...actors.flow.elements import Element, EndOfPartition, TimedBatch, estimated_bytes
from ...messages import ChannelId
from ...state.columns.numbered_rows import NamedRows, NumberedRows
from .limits import FRAME_BYTES, grown

Wake = Callable[[], None]


def nobody() -> None:
    """The wake-up of an end that nobody has opened yet."""


_BATCHES = (pa.RecordBatch, list, TimedBatch, NamedRows, NumberedRows)


def _cost_of(element: Element) -> int:
    """Its part of the window; that of control elements is nothing."""
    return FRAME_BYTES + estimated_bytes(element) if isinstance(element, _BATCHES) else 0


class _Shared:
    """What the two ends have in common."""

    def __init__(self, window_bytes: int) -> None:
        if window_bytes < 1:
            raise ValueError(f"window_bytes: wanted at least 1, found {window_bytes}")
        self.window_bytes = window_bytes
        self.elements: deque[tuple[Element, int]] = deque()
        """Each with its part of the window."""
        self.sent_bytes = 0  # from the beginning on; written by the producer only
        self.taken_bytes = 0  # the same; written by the consumer only
        self.broken: str | None = None
        self.consumer_closed = False
        self.abandoned = False
        """One end is closed; if the other was never opened, nobody will miss the channel much."""
        self.wake_consumer: Wake = nobody
        self.wake_producer: Wake = nobody

    @property
    def usage(self) -> float:
        return min(1.0, max(0, self.sent_bytes - self.taken_bytes) / self.window_bytes)


class _LocalOutput:
    """The producer's end."""

    def __init__(self, shared: _Shared, wake: Wake) -> None:
        self._shared = shared
        self._ended = False
        shared.wake_producer = wake

    def is_available(self) -> bool:
        shared = self._shared
        return shared.sent_bytes - shared.taken_bytes < shared.window_bytes or shared.consumer_closed

    def send(self, element: Element) -> None:
        shared = self._shared
        self._ended = self._ended or type(element) is EndOfPartition
        if shared.consumer_closed:
            if not self._ended:
                raise ChannelBroken("the consumer closed the channel")
            return
        cost = _cost_of(element)
        shared.sent_bytes += cost
        shared.elements.append((element, cost))
        if len(shared.elements) == 1:
            shared.wake_consumer()

    @property
    def bytes_passed(self) -> int:
        return self._shared.sent_bytes

    @property
    def usage(self) -> float:
        return self._shared.usage

    def close(self) -> None:
        self._shared.abandoned = True
        if not self._ended:
            self._shared.broken = "the producer closed the channel before its end"
            self._shared.wake_consumer()


class _LocalInput:
    """The consumer's end."""

    def __init__(self, shared: _Shared, wake: Wake) -> None:
        self._shared = shared
        shared.wake_consumer = wake

    def poll(self) -> Element | None:
        shared = self._shared
        broken = shared.broken  # read first: frames sent before the break come before it
        try:
            element, cost = shared.elements.popleft()
        except IndexError:
            if broken is not None:
                raise ChannelBroken(broken) from None
            return None
        taken, window = shared.taken_bytes, shared.window_bytes
        shared.taken_bytes = taken + cost
        shared.window_bytes = grown(window, cost)
        sent = shared.sent_bytes
        if sent - taken >= window and sent - taken - cost < shared.window_bytes:
            shared.wake_producer()
        return element

    @property
    def bytes_passed(self) -> int:
        return self._shared.taken_bytes

    @property
    def usage(self) -> float:
        return self._shared.usage

    def close(self) -> None:
        self._shared.consumer_closed = self._shared.abandoned = True
        self._shared.elements.clear()
        self._shared.wake_producer()


class LocalChannels:
    """Where the two ends of in-process channels meet, by channel id, whichever is opened first."""

    def __init__(self, window_bytes: int, max_waiting: int) -> None:
        self._window_bytes = window_bytes
        self._max_waiting = max_waiting
        self._lock = Lock()
        self._half_open: dict[ChannelId, _Shared] = {}

    def open_output(self, channel_id: ChannelId, wake: Wake) -> OutputChannel:
        return _LocalOutput(self._meet(channel_id), wake)

    def open_input(self, channel_id: ChannelId, wake: Wake, window_bytes: int) -> InputChannel:
        shared = self._meet(channel_id)
        shared.window_bytes = window_bytes
        return _LocalInput(shared, wake)

    def _meet(self, channel_id: ChannelId) -> _Shared:
        with self._lock:
            shared = self._half_open.pop(channel_id, None)
            if shared is None:
                self._forget_abandoned()
                shared = self._half_open[channel_id] = _Shared(self._window_bytes)
            return shared

    def _forget_abandoned(self) -> None:
        if len(self._half_open) >= self._max_waiting:
            self._half_open = {key: shared for key, shared in self._half_open.items() if not shared.abandoned}
