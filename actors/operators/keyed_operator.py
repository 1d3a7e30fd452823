"""KeyedOperator: an operator with one actor per key, whose `process` takes one record at a time.

Its task gives it key selectors and a keyed backend before `open`; to one whose `process` is compiled also the
BatchProcess that runs in its place. It compiles nothing itself: see `compiled`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from ...messages import StateDescription
from ...messages.whose_code import is_ours
from ...state.backends.timer_queue import KIND as TIMERS
from ..errors import EndlessTimers, UserCodeError
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Batch, Times
from ..flow.key_selector import KeySelectionFailed
from ..flow.records import rows_of
from ..unrun import refuse
from .collector import Collector
from .key_context import KeyContext
from .of_records import In, Out
from .operator import MayWait, Takes
from .overdue_timers import OverdueTimers
from .restored_keys import compare
from .timers import FIRED_AT_ONCE, Domain, KeyedTimer, Timers, new_timer

if TYPE_CHECKING:
    from ...state.backends.backend import KeyedStateBackend
    from ...state.backends.timer_queue import PendingTimers
    from ..flow.key_selector import KeySelector


log = logging.getLogger(__name__)


class BatchProcess(Protocol):
    """What takes whole batches of the first input in place of `process`, and holds the state that they work on."""

    @property
    def state(self) -> KeyedStateBackend: ...

    def prepare(self, schema: pa.Schema) -> None:
        """Get ready for batches of these columns, ahead of the first."""
        ...

    def process(self, batch: Batch, out: Collector) -> None:
        """Raises UserCodeError with the position of the record at which `process` raised."""
        ...

    def fire(self, watermark_ms: int, out: Collector) -> bool:
        """Fire a part of the event-time timers that are due, in the order of their times for each key; whether there
        may be more. A snapshot in between holds those that have not fired.
        """
        ...


PARTS_AT_END = 1000
"""At the end of time timers may fire in this number of parts, and in one more for each timer that waits then. Those
that always set the next one come to more.
"""

PIECE_ROWS = 1024
"""This many Rows are made, and what becomes of them is taken by the next operator, before there are more: the numbers
and tuples of a larger batch would not stay in the processor's cache.
"""


class KeyedOperator(KeyContext[In, Out]):
    """One actor per key: `process` runs with `self.key` set and keyed state scoped to that key.

    A question has the key that it was put with. All other methods run without a key, `process_2` of a broadcast stream
    among them, and there `self.key` and keyed state raise NoCurrentKey; what must look at all keys, as `on_end`, goes
    through `self.keys()`.
    """

    takes: ClassVar[Takes] = "records"

    compiled: ClassVar[bool] = False
    """True: `process`, and `on_timer` if there is one, are compiled by Numba (docs/compiled.md)."""

    timers: Timers
    """Registers and deletes timers of the current key."""
    _selectors: tuple[KeySelector, ...]
    _overdue: OverdueTimers | None = None
    """Looks at timers that are deleted; None: they are not the user's."""
    _kept_kinds: frozenset[str] = frozenset()
    """Of restored keys, until the first batch is compared with them."""
    _taken: int = 0
    _input_index: int = 0
    """Of the batch that is processed, or was last."""
    _input_schema: pa.Schema | None = None
    """Of a compiled operator, when it is known before the job runs."""
    _batch_process: BatchProcess | None = None
    """Of a compiled operator, from when its task has placed it."""
    _fired_at_once: ClassVar[int] = FIRED_AT_ONCE
    _reached_ms: int = NO_WATERMARK
    """The last watermark, but the end of time, of which all timers have fired; or the time of the last that has."""
    _parts_left: int | None = None
    """At the end of time: in how many more parts timers may fire."""
    _is_due: bool = False
    """Whether timers of processing time fire."""

    def process(self, record: In, out: Collector[Out]) -> MayWait:
        """Take one record of the first input. Never block: see Operator."""
        raise NotImplementedError(f"{type(self).__name__}.process is not defined")  # abstract

    def process_2(self, record: Any, out: Collector[Out]) -> MayWait:
        """Take one record of the second input of a connected stream; of a broadcast one every subtask takes each."""
        raise NotImplementedError(f"{type(self).__name__}.process_2 is not defined")  # abstract

    def on_timer(self, timer: KeyedTimer, out: Collector[Out]) -> MayWait:
        """A timer of `self.key` is due. `self.timestamp` is its time, which what is emitted gets as well; of a
        processing-time timer there is no event time.
        """
        raise NotImplementedError(f"{type(self).__name__} has registered a timer and defines no on_timer")  # abstract

    def _own_states(self) -> tuple[StateDescription, ...]:
        """Timers, of an operator that takes them: keyed state, be there any other or not."""
        own = super()._own_states()
        if type(self).on_timer is KeyedOperator.on_timer:
            return own
        return (*own, StateDescription("timers", TIMERS))

    @property
    def _no_timers(self) -> str:
        """Why it may register none; empty if it may."""
        if type(self).on_timer is not KeyedOperator.on_timer:
            return ""
        written = f"{'async ' if self._is_async else ''}def on_timer(self, timer, out)"
        return f"{type(self).__name__} registers a timer and defines no on_timer: define `{written}`"

    def processing_time(self) -> int:
        """What the clock of this TaskManager says: ms since the epoch."""
        return self.context.clock.wall_ms()

    def _event_time(self) -> int:
        """That of the record, or of the timer; where there is none, the last watermark."""
        time_ms: int = vars(self).get("timestamp", self._reached_ms)
        return time_ms

    @property
    def _second_is_broadcast(self) -> bool:
        """Whether records of the second input come to every subtask, and have no key."""
        return len(self._selectors) < self.inputs

    def process_batch(self, batch: Batch, out: Collector) -> None:
        if self._batch_process is not None:
            self._batch_process.process(batch, out)
        else:
            self._process_keyed(self.process, 0, batch, out)

    def process_batch_2(self, batch: Batch, out: Collector) -> None:
        if self._second_is_broadcast:
            self._process_broadcast(batch, out)
        else:
            self._process_keyed(self.process_2, 1, batch, out)

    @property
    def keyed_state(self) -> KeyedStateBackend | None:
        """The state of a compiled operator, once its task has placed it; None: the job's backend holds it."""
        if self._batch_process is None:
            assert not self.compiled, "whoever places a compiled operator gives it the BatchProcess that it runs"
            return None
        return self._batch_process.state

    def _data_ended(self) -> None:
        """Timers of windows and joins are ours, and what they would do is done."""
        pending = 0 if self.compiled or is_ours(type(self)) else len(self.timers.queues.processing)
        if pending:
            log.warning(
                "operator %r (subtask %d): %d of its timers of processing time were still to come when the data ended, "
                "and do not fire; what they would do, on_end can do: for key in self.keys(): ...",
                *(self.context.name, self.context.subtask_index, pending),
            )

    def _opened(self) -> None:
        if self._batch_process is not None and self._input_schema is not None:
            self._batch_process.prepare(self._input_schema)

    def _taken_as(self, input_index: int) -> Takes:
        own = (KeyedOperator.process_batch, KeyedOperator.process_batch_2)[input_index]
        return "any" if getattr(type(self), own.__name__) is own else self.takes

    def _in_pieces(self, input_index: int, batch: Batch) -> Iterable[Batch]:
        if self.compiled or len(batch) <= PIECE_ROWS or not isinstance(batch, pa.RecordBatch):
            return (batch,)
        if self._taken_as(input_index) != "any":
            return (batch,)
        return (batch.slice(start, PIECE_ROWS) for start in range(0, len(batch), PIECE_ROWS))

    def _process_keyed(
        self, process: Callable[[Any, Collector], Any], input_index: int, batch: Batch, out: Collector
    ) -> None:
        self._input_index = input_index
        try:
            keys, records = self._keyed_rows(input_index, batch)
        except KeySelectionFailed as error:
            raise UserCodeError(self.context.name, self._taken + error.position) from error
        if self.timestamps is not None:
            self._process_timed(process, input_index, keys, records, self.timestamps, out)
            return
        backend, left = self._backend, iter(keys)
        backend.read_ahead(keys)
        try:
            for key, record in zip(left, records, strict=True):
                backend.current_key = self.key = key
                if (result := process(record, out)) is not None:
                    refuse(f"{type(self).__name__}.process{'_2' if input_index else ''}", result)
        except (Exception, SystemExit) as error:
            raise UserCodeError(self.context.name, self._taken + len(batch) - length_hint(left) - 1) from error
        finally:
            self._leave_key()
        self._taken += len(batch)

    def _process_broadcast(self, batch: Batch, out: Collector) -> None:
        """What comes to every subtask, of which no key is the current one."""
        self._input_index = 1
        left = iter(rows_of(batch) if isinstance(batch, pa.RecordBatch) else batch)
        times: Iterable[int | None] = repeat(None) if self.timestamps is None else self.timestamps.tolist()
        marks, watermark = self.split_watermarks, self.watermark
        by_record = repeat(watermark) if marks is None else np.maximum(marks, watermark).tolist()
        try:
            for record, time_ms, self.watermark in zip(left, times, by_record):  # noqa: B905 - may repeat
                if time_ms is not None:
                    self.timestamp = out.time_ms = time_ms
                if (result := self.process_2(record, out)) is not None:
                    refuse(f"{type(self).__name__}.process_2", result)
                if self._loop is not None:  # an iterator of self.keys() was kept
                    self._leave_key()
                if time_ms is not None and len(out) != len(out.stamps):
                    out.stamp()
        except (Exception, SystemExit) as error:
            at = self._taken + len(batch) - length_hint(left) - 1
            raise UserCodeError(self.context.name, at, hook="process_2") from error
        finally:
            self.watermark = watermark
            self._leave_time(out)
            self._leave_key()
        self._taken += len(batch)

    def _keyed_rows(self, input_index: int, batch: Batch) -> tuple[list[Any], Iterable[Any]]:
        """The key and the record of each row. Raises KeySelectionFailed."""
        keys, records = self._selectors[input_index].keyed_rows(batch)
        if self._kept_kinds and keys:
            compare(self.context.name, self._kept_kinds, keys)
            self._kept_kinds = frozenset()
        return keys, records

    def _process_timed(
        self,
        process: Callable[[Any, Collector], Any],
        input_index: int,
        keys: list[Any],
        records: Iterable[Any],
        times: Times,
        out: Collector,
    ) -> None:
        """The same for records with event times: another loop, so that records without pay nothing for it."""
        backend, left, stamps, marks = self._backend, iter(keys), out.stamps, self.split_watermarks
        watermark = self.watermark
        self._came(times)
        backend.read_ahead(keys)
        by_record = repeat(watermark) if marks is None else np.maximum(marks, watermark).tolist()
        try:
            for key, record, time_ms, own in zip(left, records, times.tolist(), by_record):  # noqa: B905 - may repeat
                backend.current_key = self.key = key
                self.timestamp = out.time_ms = time_ms
                if marks is not None:
                    self.watermark = own
                if (result := process(record, out)) is not None:
                    refuse(f"{type(self).__name__}.process{'_2' if input_index else ''}", result)
                if out and len(out) != len(stamps):
                    out.stamp()
        except (Exception, SystemExit) as error:
            raise UserCodeError(self.context.name, self._taken + len(keys) - length_hint(left) - 1) from error
        finally:
            self.watermark = watermark
            self._leave_time(out)
            self._leave_key()
        self._taken += len(keys)

    def _came(self, times: Times | None) -> None:
        """Records of these event times come."""
        if self._overdue is not None and times is not None:
            self._overdue.came(times)

    def _look_at_deleted(self, watermark_ms: int) -> None:
        """A watermark comes behind all records that have deleted timers."""
        if self._overdue is not None:
            self._overdue.advanced(watermark_ms)

    def _advance(self, watermark_ms: int, out: Collector) -> bool:
        if self._calls is not None:
            return self._calls.advance(watermark_ms)
        self._look_at_deleted(watermark_ms)
        if self._batch_process is not None:
            more = self._batch_process.fire(watermark_ms, out)
        else:
            more = self._fire(self.timers.queues.event, "event", watermark_ms, out)
        if more and watermark_ms == END_OF_TIME:
            self._count_at_end()
        if not more:
            if watermark_ms != END_OF_TIME:
                self._reached_ms = watermark_ms
            self.on_watermark(watermark_ms, out)
        return more

    def _count_at_end(self) -> None:
        """All that are due at the end of time fire a part at a time. Raises EndlessTimers if it never ends."""
        parts = self._parts_left if self._parts_left is not None else PARTS_AT_END + len(self.timers.queues.event)
        self._parts_left = parts - 1
        if parts == 0:
            raise EndlessTimers(self.context.name, PARTS_AT_END * self._fired_at_once)

    def _due_ms(self) -> int | None:
        if self._calls is not None:
            return self._calls.due_ms(self.context.clock.wall_ms())
        return self.timers.queues.processing.next_ms()

    def _on_due(self, now_ms: int, out: Collector) -> None:
        if self._calls is not None:
            self._calls.do_due(now_ms, out)
            return
        self._is_due = True
        try:
            self._fire(self.timers.queues.processing, "processing", now_ms, out)
        finally:
            self._is_due = False

    def _fire(self, queue: PendingTimers, domain: Domain, until_ms: int, out: Collector) -> bool:
        """Fire timers that are due, at most FIRED_AT_ONCE of them; whether there may be more."""
        if not queue:
            return False
        backend, stamps, on_timer = self._backend, out.stamps, self.on_timer
        fired = 0
        try:
            for time_ms, key, namespace in queue.due(until_ms):
                backend.current_key = self.key = key
                if domain == "event":
                    self.timestamp = out.time_ms = time_ms
                if (result := on_timer(new_timer(KeyedTimer, (time_ms, domain, namespace)), out)) is not None:
                    refuse(f"{type(self).__name__}.on_timer", result)
                if out and len(out) != len(stamps):
                    out.stamp()
                fired += 1
                if fired == self._fired_at_once:
                    if domain == "event":
                        self._reached_ms = max(self._reached_ms, time_ms)
                    return True
            return False
        finally:
            self._leave_time(out)
            self._leave_key()
