"""RemoteInputChannel: the consumer's end of a channel from another TaskManager.

The poller thread delivers frames, the task polls and decodes them on its own thread, and credit flows back as it does.
No batch is taken that comes when the credit is used up, so less than a window and one batch is held here. It touches no
socket: frames leave through `transmit`.

Invariants. `_granted` counts all credit given, `_received` the cost of all batches that came, both with `cost_of`, as
the producer counts. A producer knows of no more credit than `_granted`, so a batch that comes when `_received` has
reached it breaks the protocol. Credit that is not given back is less than half of the window: a producer that waits has
a batch under way, or here to be polled, and polling it gives credit. So neither end waits for the other for ever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from ...actors.errors import ChannelBroken
from ...actors.flow.elements import Element
from ...messages import ChannelId, MalformedMessage
from ...state.columns.arrow_batches import Payload
from .frames import FrameKind, Header, pack_header
from .in_process import Wake
from .limits import cost_of, grown
from .payloads import decode_element


class RemoteInputChannel:
    """Ordered and numbered; `window_bytes` may be under way or waiting here, and what the last batch takes beyond. The
    window grows with the batches.
    """

    def __init__(
        self,
        channel_id: ChannelId,
        window_bytes: int,
        wake: Wake,
        transmit: Callable[[tuple[bytes]], None],
        release: Callable[[ChannelId], None],
    ) -> None:
        self.channel_id = channel_id
        self._wake = wake
        self._transmit = transmit
        self._release = release
        self._lock = Lock()  # of what is sent; what arrives needs none
        self._next_sent = self._next_received = 0
        self._arrived: deque[tuple[Header, Payload | None]] = deque()
        self._granted = window_bytes  # from the beginning on; written by the task's thread only
        self._received = 0  # the same, of batches; written by the poller thread only
        self._window = window_bytes
        self._polled = 0
        self.bytes_passed = 0  # written by the task's thread only
        self._broken: str | None = None
        self._ended = self._closed = False

    def open(self) -> None:
        """Tell the producer, once this channel can be found by the frames that follow."""
        self._tell(FrameKind.OPEN, self._granted)

    def poll(self) -> Element | None:
        broken = self._broken  # read first: what arrived before the break is handed out before it
        try:
            header, payload = self._arrived[0]
        except IndexError:
            if broken is not None:
                raise ChannelBroken(broken) from None
            return None
        try:
            element = decode_element(header, payload)
        except MalformedMessage as error:
            self._break(f"frame {header.sequence} is malformed")
            raise ChannelBroken(f"channel {self.channel_id}: frame {header.sequence}: {error}") from error
        self._arrived.popleft()
        if payload is not None:
            cost = cost_of(payload)
            self.bytes_passed += cost
            self._return_credit(cost)
        return element

    @property
    def usage(self) -> float:
        """Of the window: what has come and was not polled."""
        return min(1.0, max(0, self._received - self.bytes_passed) / self._window)

    def close(self) -> None:
        """Before the end of the partition the producer is notified; nothing is delivered any more."""
        if not (self._closed or self._ended or self._broken is not None):
            self._tell(FrameKind.CLOSE)
        self._closed = True
        self._arrived.clear()
        self._release(self.channel_id)

    def deliver(self, header: Header, payload: Payload | None) -> bool:
        """Take one frame of the producer's, on the poller thread; False if it comes too late to matter."""
        if self._closed or self._ended or self._broken is not None:
            return False
        problem = self._problem_with(header, payload)
        if problem is not None:
            self._break(problem)
            return True
        self._next_received += 1
        self._arrived.append((header, payload))
        self._ended = header.kind is FrameKind.END_OF_PARTITION
        if len(self._arrived) == 1:
            self._wake()
        return True

    def producer_lost(self, reason: str) -> None:
        """Nothing more comes, which matters only before the end of the partition."""
        if not self._ended:
            self._fail(reason)

    def _problem_with(self, header: Header, payload: Payload | None) -> str | None:
        if header.sequence != self._next_received:
            return f"frame {header.sequence} came where {self._next_received} was due"
        if header.kind is FrameKind.ABORT:
            return "the producer gave it up before its end"
        if payload is not None:
            if self._received >= self._granted:
                return f"a batch came when {self._received} of {self._granted} bytes were used up"
            self._received += cost_of(payload)
        return None

    def _break(self, reason: str) -> None:
        if self._broken is None:
            self._fail(reason)
            self._tell(FrameKind.CLOSE)

    def _fail(self, reason: str) -> None:
        self._broken = self._broken or f"channel {self.channel_id}: {reason}"
        self._wake()

    def _return_credit(self, taken: int) -> None:
        """For some batches together, since a frame for each would cost more than small ones do. Less than half of the
        window is held back: a producer that has used up the rest has something under way.
        """
        window = grown(self._window, taken)
        self._polled += taken + window - self._window
        self._window = window
        if 2 * self._polled >= window and not self._ended:
            self._granted += self._polled
            self._tell(FrameKind.CREDIT, self._polled)
            self._polled = 0

    def _tell(self, kind: FrameKind, credit: int = 0) -> None:
        with self._lock:
            self._transmit((pack_header(Header(kind, self.channel_id, self._next_sent, credit)),))
            self._next_sent += 1
