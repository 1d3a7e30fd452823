"""RemoteOutputChannel: the producer's end of a channel to another TaskManager.

Elements wait in line here until the consumer has opened the channel and its credit is not used up. The last batch may
take more than what is left, so a batch of any size goes through a window of any size. The task sends and closes on its
thread, the poller thread brings what the consumer says; a lock keeps the two apart, and nothing under it blocks. It
touches no socket: frames leave through `transmit`.

Invariants. `_credit` is all credit received minus the cost of all batches sent; a batch leaves only while it is above
0, so it falls below 0 by less than one batch. Everything leaves in the order of `send`: a control element costs nothing
and still waits behind the batches before it, so a barrier never passes a record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

from ...actors.errors import ChannelBroken
from ...actors.flow.elements import Element, EndOfPartition
from ...messages import ChannelId
from ...state.columns.arrow_batches import Payload
from .frames import FrameKind, Header, pack_header
from .in_process import Wake, nobody
from .limits import cost_of
from .payloads import Content, encode_element

Frame: TypeAlias = "tuple[bytes] | tuple[bytes, Payload]"
"""A header, and for a batch its payload."""

Consumer = bytes
"""The connection of the consumer's TaskManager, as its ROUTER names it."""


class RemoteOutputChannel:
    """Made when the task opens it, or when the consumer's OPEN comes first."""

    def __init__(
        self,
        channel_id: ChannelId,
        transmit: Callable[[Consumer, Frame], None],
        release: Callable[[ChannelId], None],
        max_payload_bytes: int,
    ) -> None:
        self.channel_id = channel_id
        self._transmit = transmit
        self._release = release
        self._max_payload_bytes = max_payload_bytes
        self._wake: Wake = nobody
        self._lock = Lock()
        self._waiting: deque[Content] = deque()
        self._credit = 0
        self._window = 0
        """The most credit that there was at once."""
        self.bytes_passed = 0
        self._consumer: Consumer | None = None
        self._next_sent = self._next_received = 0
        self._lost: str | None = None
        self._ended = self._closed = False

    def attach(self, wake: Wake) -> None:
        """The producing task is here."""
        self._wake = wake

    def is_available(self) -> bool:
        """A broken channel is available, so that the task comes, sends, and learns why."""
        return not self._waiting or self._lost is not None

    def send(self, element: Element) -> None:
        contents = tuple(encode_element(element, self._max_payload_bytes))
        with self._lock:
            self._ended = self._ended or type(element) is EndOfPartition
            if self._lost is None:
                self._waiting.extend(contents)
                self._forward()
            elif not self._ended:
                raise ChannelBroken(f"channel {self.channel_id}: {self._lost}")

    @property
    def usage(self) -> float:
        """Of the credit that its consumer has given."""
        if self._waiting:
            return 1.0
        return min(1.0, max(0.0, 1 - self._credit / self._window)) if self._window else 0.0

    def close(self) -> None:
        """After EndOfPartition waiting frames still go out; before it, the consumer learns that nothing more comes."""
        with self._lock:
            self._closed = True
            if not self._ended:
                self._break("the producer closed it before its end")
            over = self._is_over()
        if over:
            self._release(self.channel_id)

    def receive(self, consumer: Consumer, header: Header) -> bool:
        """Take one frame of the consumer's; False if it is not the consumer of this channel, or too late."""
        with self._lock:
            if self._consumer is None and header.kind is FrameKind.OPEN and self._lost is None:
                self._consumer = consumer
            if consumer != self._consumer or self._lost is not None:
                return False
            self._take(header)
            over = self._is_over()
        self._wake_if_available()
        if over:
            self._release(self.channel_id)
        return True

    def abort(self, reason: str) -> None:
        """Give the channel up on both sides."""
        with self._lock:
            self._break(reason)

    def consumer_lost(self, consumer: Consumer | None, reason: str) -> None:
        """The connection is gone; None stands for every connection."""
        with self._lock:
            if self._lost is not None or (consumer is not None and consumer != self._consumer):
                return
            self._lose(reason)
            over = self._is_over()
        self._wake_if_available()
        if over:
            self._release(self.channel_id)

    def _wake_if_available(self) -> None:
        if self.is_available():
            self._wake()

    def _take(self, header: Header) -> None:
        if header.sequence != self._next_received:
            self._break(f"frame {header.sequence} of the consumer came where {self._next_received} was due")
            return
        self._next_received += 1
        wanted = FrameKind.CREDIT if header.sequence else FrameKind.OPEN
        if header.kind is wanted and header.first > 0:
            self._credit += header.first
            self._window = max(self._window, self._credit)
            self._forward()
        elif header.kind is FrameKind.CLOSE:
            self._lose("the consumer closed it")
        else:
            self._break(f"the consumer sent {header}")

    def _forward(self) -> None:
        while self._consumer is not None and self._waiting:
            payload = self._waiting[0].payload
            if payload is not None:
                if self._credit <= 0:
                    return
                cost = cost_of(payload)
                self._credit -= cost
                self.bytes_passed += cost
            self._transmit_to(self._consumer, self._waiting.popleft())

    def _transmit_to(self, consumer: Consumer, content: Content) -> None:
        head = pack_header(Header(content.kind, self.channel_id, self._next_sent, content.first, content.second))
        self._next_sent += 1
        self._transmit(consumer, (head,) if content.payload is None else (head, content.payload))

    def _break(self, reason: str) -> None:
        if self._consumer is not None and self._lost is None:
            self._transmit_to(self._consumer, Content(FrameKind.ABORT))
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._waiting.clear()

    def _is_over(self) -> bool:
        return self._closed and not self._waiting
