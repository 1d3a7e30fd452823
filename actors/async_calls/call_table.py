"""CallTable: the calls of one operator that have not left: one after the other for each key, and in order where wanted.

It knows which may begin, and which may leave; it begins and emits nothing. On the task's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

from ...state.keys.key_hash import java_hash
from ..flow.elements import TimedBatch
from .backlog import NewCall
from .call import Call
from .call_order import CallOrder, Epoch
from .frozen_calls import CallInFlight, Results


class CallTable:
    """`in_epochs`: calls behind a watermark begin when all before it has left, and its timers have fired."""

    def __init__(self, *, keyed: bool, ordered: bool, in_epochs: bool) -> None:
        self._is_keyed = keyed
        self._in_epochs = in_epochs
        self.order = CallOrder(ordered=ordered)
        self.ready: deque[Call] = deque()
        """Those that may begin, in the order in which it was their turn."""
        self.next_number = 0
        self.size_bytes = 0.0
        self._held: dict[int, Call] = {}
        """By number."""
        self._last: dict[Any, Call] = {}
        """By key, the last call of those that are not finished: the next one waits for it."""

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Call]:
        return iter(self._held.values())

    @property
    def is_calm(self) -> bool:
        """Whether no call is here, and no watermark waits."""
        return not self._held and not self.order.has_epochs

    # -- a call comes

    def add(self, new: NewCall) -> Call:
        """Of a record, behind all that there are. Raises InvalidKey for what cannot be one."""
        key, record, time_ms, watermark_ms, input_index, position, size = new
        call = Call(self._take_number(), key, record, watermark_ms)
        if time_ms is not None:
            call.time_ms = time_ms
        call.position, call.size, call.input_index = position, size, input_index
        self._hold(call, self.order.last)
        self._enqueue(call)
        return call

    def add_timer(self, call: Call) -> None:
        """Before the first watermark passes, be it one of the clock: a timer that waited for a watermark would hold up
        those of its key that the watermark waits for.
        """
        call.number = self._take_number()
        self._hold(call, self.order.first)
        self._enqueue(call)

    def add_restored(self, each: CallInFlight) -> Call:
        call = Call(self._take_number(), each.key, each.record, each.watermark_ms)
        call.kind = each.kind  # and the time for all its tries begins again
        call.tries = call.failures = each.tries
        call.time_ms, call.input_index, call.identity = each.time_ms, each.input_index, each.identity or None
        self._hold(call, self.order.last)
        if each.results is None:
            self._enqueue(call)
        else:
            call.results = each.results
            self.order.finish(call)
        return call

    def adopt(self, call: Call) -> None:
        """One that runs already, and that nothing is before."""
        self._hold(call, self.order.last)
        if self._is_keyed:
            self._last[call.key] = call

    def _take_number(self) -> int:
        number = self.next_number
        self.next_number = number + 1
        return number

    def _hold(self, call: Call, epoch: Epoch) -> None:
        if not self._is_keyed:
            call.key = call.number
        self._held[call.number] = call
        self.size_bytes += call.size
        self.order.add(call, epoch)

    def _enqueue(self, call: Call) -> None:
        """Its turn comes when the one before it of its key is finished."""
        if self._in_epochs and call.epoch is not self.order.first:
            call.epoch.held.append(call)
            return
        if self._is_keyed:
            try:
                before = self._last.get(call.key)
            except TypeError:
                java_hash(call.key)  # raises InvalidKey
                raise
            self._last[call.key] = call
            if before is not None:
                before.following = call
                return
        self.ready.append(call)

    # -- and goes

    def finish(self, call: Call) -> None:
        """It is committed: the next one of its key may begin."""
        self.order.finish(call)
        if self._is_keyed:
            following = call.following
            if following is None:
                del self._last[call.key]
            else:
                call.following = None
                self.ready.append(following)

    def leaving(self) -> Iterator[Call]:
        """Take out those that may leave now, in their order."""
        for call in self.order.leaving():
            del self._held[call.number]
            self.size_bytes -= call.size
            yield call

    def pass_watermark(self) -> None:
        """All that there is to do for the first watermark is done."""
        for call in self.order.pass_watermark().take_held():
            self._enqueue(call)

    def frozen(self, prefix: str) -> Callable[[], Iterator[CallInFlight]]:
        """All, as a snapshot holds them; the callable makes them, on any thread. `prefix`: of idempotency keys.

        The task stands still meanwhile, so only what must be exact is taken now; and in columns, for new objects by the
        thousand would have Python look for garbage. One that begins before it is written has its key in the snapshot.
        """
        calls = list(self._held.values())
        failures = [each.failures for each in calls]
        again = [each.again_wall_ms for each in calls] if any(failures) else repeat(0)
        last_ms = self.order.last.behind_ms
        behind = [each.epoch.behind_ms for each in calls] if self.order.has_epochs else repeat(last_ms)
        results = [_copied_results(each) if each.is_done else None for each in calls]

        def in_flight() -> Iterator[CallInFlight]:
            columns = zip(calls, failures, again, behind, results)  # noqa: B905 - some may repeat
            for call, failed, again_ms, behind_ms, emitted in columns:
                identity = call.identity or (f"{prefix}{call.number}" if call.tries else "")
                where = call.number, identity, call.kind, call.record, call.time_ms, call.watermark, call.input_index
                own = _results_of(*emitted) if isinstance(emitted, tuple) else emitted
                yield CallInFlight(call.key, *where, failed, call.began_wall_ms, behind_ms, again_ms, own)

        return in_flight


def _copied_results(call: Call) -> Results | tuple[list[Any], int | None]:
    """Of most calls records, and their time."""
    if call.results is None:
        if call.out.is_plain:
            return call.out[:], call.out.time_ms
        call.results = call.out.all_taken()
    return call.results  # type: ignore[no-any-return]


def _results_of(records: list[Any], time_ms: int | None) -> Results:
    if not records:
        return []
    return [("", records if time_ms is None else TimedBatch(records, np.full(len(records), time_ms, np.int64)))]
