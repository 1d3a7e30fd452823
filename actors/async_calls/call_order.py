"""CallOrder: which results may leave, and when a watermark may follow them.

An epoch lies between two watermarks. Results of an epoch leave in the order of the input, or as they come; those of a
later one wait until all of it has left, and its watermark. Flink: StreamElementQueue, with its ordered and
unordered version.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..flow.elements import NO_WATERMARK
from .call import Call


class Epoch:
    """The calls between two watermarks."""

    __slots__ = ("behind_ms", "done", "held", "order", "unfinished", "watermark_ms")

    def __init__(self, behind_ms: int = NO_WATERMARK) -> None:
        self.behind_ms = behind_ms
        """The watermark before it, as long as that has not passed."""
        self.unfinished = 0
        self.order: deque[Call] = deque()
        """Those that have not left, where they leave in order."""
        self.done: list[Call] = []
        """Those that may leave, where they leave as they come."""
        self.held: list[Call] = []
        """Those that may start when it is the first epoch."""
        self.watermark_ms: int | None = None
        """The one that ends it; None while it is open."""

    def take_held(self) -> list[Call]:
        held, self.held = self.held, []
        return held


class CallOrder:
    """The epochs of one operator. At least one is there, the last one is open."""

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._epochs: deque[Epoch] = deque([Epoch()])

    @property
    def first(self) -> Epoch:
        return self._epochs[0]

    @property
    def last(self) -> Epoch:
        return self._epochs[-1]

    def add(self, call: Call, epoch: Epoch) -> None:
        call.epoch = epoch
        epoch.unfinished += 1
        if self._ordered:
            epoch.order.append(call)

    def finish(self, call: Call) -> None:
        """Its results are there."""
        call.is_done, epoch = True, call.epoch
        epoch.unfinished -= 1
        if not self._ordered:
            epoch.done.append(call)

    @property
    def may_leave(self) -> bool:
        """Whether `leaving` gives any."""
        epoch = self.first
        return bool(epoch.order) and epoch.order[0].is_done if self._ordered else bool(epoch.done)

    def leaving(self) -> Iterator[Call]:
        """Take out the calls of the first epoch that may leave now."""
        epoch = self.first
        if self._ordered:
            while epoch.order and epoch.order[0].is_done:
                yield epoch.order.popleft()
        else:
            done, epoch.done = epoch.done, []
            yield from done

    def close(self, watermark_ms: int) -> None:
        """A watermark comes behind all calls that there are."""
        self.last.watermark_ms = watermark_ms
        self._epochs.append(Epoch(watermark_ms))

    @property
    def reached_ms(self) -> int | None:
        """The watermark that is next, once all calls before it are finished; None as long as they are not."""
        first = self.first
        return None if first.unfinished else first.watermark_ms

    @property
    def has_epochs(self) -> bool:
        """Whether a watermark waits."""
        return len(self._epochs) > 1

    def pass_watermark(self) -> Epoch:
        """All that there is to do for the first watermark is done; returns the epoch that is the first one now."""
        self._epochs.popleft()
        self.first.behind_ms = NO_WATERMARK
        return self.first
