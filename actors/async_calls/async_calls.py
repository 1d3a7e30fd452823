"""AsyncCalls: runs `async def process` of one operator in one attempt, between its task and its coroutines.

On the task's thread it makes a call of each record, begins as many as may run, settles those that have ended, and lets
their results out, in order where that is wanted. On the event loop nothing is decided (event_loop.py). So a checkpoint
sees each call either as done, with its results and its changes of state, or as not begun, and never waits for one.

A record goes this way: backlog (a batch, as it came) -> call, behind the call before it of the same key -> ready, when
it is its key's turn -> running -> settled -> out. Where nothing is in flight, a whole batch is taken in a run (run.py).
Flink: AsyncWaitOperator, with the keyed state of FLIP-425.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from itertools import chain
from math import ceil
from typing import Any, Final, cast

from ...messages import GrantPermits
from ...state.backends.frozen_state import Stored
from ...state.backends.shared_backend import SharedBackend
from ...state.errors import CallIsOver
from ...state.keys.key_groups import key_group_range
from ..errors import UserCodeError
from ..flow.elements import END_OF_TIME, NO_WATERMARK, Watermark
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from .backlog import Backlog
from .call import Call, NextTry
from .call_begin import CallBegin
from .call_table import CallTable
from .event_loop import CallLoop, CallRunner
from .failed_tries import FailedTries
from .frozen_calls import NAME, FrozenCalls
from .kept_outs import KeptOuts
from .permits import Permits
from .restored_calls import RestoredCalls
from .retry import Retry
from .run import Run
from .runs import Runs
from .settings import HELD_PER_CALL, AsyncSettings
from .timer_calls import TimerCalls

_SETTLED_AT_BARRIER: Final = 500
"""A few milliseconds of work."""


class AsyncCalls:
    """Made before the operator's state is restored, which gives it all that was in flight; owned by the task."""

    name = NAME

    def __init__(
        self,
        operator: Operator,
        settings: AsyncSettings,
        backend: SharedBackend,
        host: CallLoop,
        delay_ms: Callable[[Retry, int], float],
        permits: Permits | None = None,
    ) -> None:
        self._operator = operator
        self._settings = settings
        self._backend = backend
        self._host = host
        self._permits = permits
        self._runner: CallRunner | None = None
        keyed = operator if isinstance(operator, KeyedOperator) else None
        self._keyed = keyed
        self._has_timers = TimerCalls.are_of(operator)
        ordered = keyed is None if settings.ordered is None else settings.ordered
        self._table = CallTable(keyed=keyed is not None, ordered=ordered, in_epochs=self._has_timers)
        self._timers = TimerCalls(operator, backend, self._table)
        self._begin = CallBegin(operator, settings)
        self._backlog = Backlog(operator, settings)
        self._failed = FailedTries(
            settings, operator.context.name, keyed=keyed is not None, permits=permits, delay_ms=delay_ms
        )
        self._restored = RestoredCalls(operator, self._table, self._backlog, self._timers, self._failed)
        self._most_held = settings.max_in_flight * (1 if keyed is None else HELD_PER_CALL)
        self._running = 0
        self._runs = Runs(operator, settings, backend, host)
        self._has_ended_well = False
        """Whether some coroutine has, in this attempt."""
        self._kept_outs = KeptOuts(backend)
        self._is_open = False
        self._failure: BaseException | None = None
        """What `open` has raised; or code that went on when its record was done."""
        backend.misused = self._misused
        self.is_draining = False
        self._is_drained = False

    # -- life cycle

    def open(self) -> None:
        """Open the operator; records wait until it is open."""
        operator = self._operator
        self._runs.open()
        self._runner = self._new_runner()
        if iscoroutinefunction(type(operator).open):
            self._runner.run(cast(Any, operator).open, self._opened)
        else:
            opening: Any = cast(Any, operator).open()
            if opening is None:
                self._is_open = True
            else:  # of a decorated one
                self._runner.run(lambda: opening, self._opened)

    def _opened(self, error: BaseException | None) -> None:
        """On the event loop's thread."""
        self._failure = error
        self._is_open = error is None

    def _misused(self, error: CallIsOver) -> None:
        """On the event loop's thread, or another one."""
        if self._failure is None:
            self._failure = error
            self._operator.context.wake()

    def close(self) -> None:
        """Cancel all that runs and close the operator. Raises what its `close` raises."""
        operator, runner = self._operator, self._runner
        for call in self._table:
            unit = call.retried or call
            unit.is_over = unit.is_undone = True
        is_async = iscoroutinefunction(operator.close)
        last = cast(Any, operator).close if is_async else None
        if runner is None and is_async:  # it was never opened
            runner = self._new_runner()
        if runner is not None:
            runner.close(self._settings.close_timeout_ms, last)
        if not is_async:
            operator.close()

    def _new_runner(self) -> CallRunner:
        operator = self._operator
        return self._host.runner(self._begin, self._what, operator.context.wake)

    @property
    def _what(self) -> str:
        """The method, for a user."""
        return f"{type(self._operator).__name__}.process"

    # -- what comes in

    @property
    def in_flight(self) -> int:
        """How many records it holds of which calls have been made."""
        return len(self._table)

    def waiting_at(self) -> str:
        """The lines at which coroutines wait."""
        return "an unknown line" if self._runner is None else self._runner.waiting_at()

    @property
    def is_full(self) -> bool:
        return self._is_crowded() or bool(self._backlog)

    def _take_restored(self, watermark_ms: int) -> None:
        if self._restored.take(watermark_ms):
            self._fill()
            self._submit()

    def take(self, batch: Any, input_index: int) -> None:
        self._take_restored(NO_WATERMARK)
        if self._keyed is not None:
            self._keyed._came(self._keyed.timestamps)
        self._backlog.add_batch(batch, input_index)
        self._fill()
        self._submit()

    def advance(self, watermark_ms: int) -> bool:
        """Only the end of time has more to do: until all has left."""
        self._take_restored(watermark_ms)
        if watermark_ms == END_OF_TIME:
            if self._is_drained:
                return False
            if self.is_draining:
                return True
            self.is_draining = True
        self._backlog.add_watermark(watermark_ms)
        self._fill()
        self._submit()
        return self.is_draining

    # -- what is due

    def due_ms(self, now_ms: int) -> int | None:
        runner, table = self._runner, self._table
        if self._failure is not None or (runner is not None and runner.has_ended) or self._runs.results:
            return now_ms
        if self._runs.current is not None or not self._is_open:
            return None
        if table.order.may_leave or self._restored:
            return now_ms
        if (reached_ms := table.order.reached_ms) is not None and not (
            reached_ms == END_OF_TIME and self._awaits_begun()
        ):
            return now_ms
        may_request = self._permits is None or not self._permits.are_requested  # it has not, before it was open
        if may_request and table.ready and self._running < self._settings.max_in_flight:
            return now_ms
        own_ms = self._now_ms()
        if self._backlog.has_some(own_ms) and not self._is_crowded():
            return now_ms
        times = [
            None if due is None else now_ms + ceil(due - own_ms) for due in (self._failed.due_ms, self._backlog.due_ms)
        ]
        if self._has_timers and not self.is_draining:
            times.append(self._timers.due_ms(now_ms))
        return min((each for each in times if each is not None), default=None)

    def do_due(self, now_ms: int, out: Collector) -> None:
        self._raise_failure()
        self._take_restored(NO_WATERMARK)
        self._settle_ended()
        if self._runs.current is None:
            self._failed.take_due(self._now_ms(), self._table.ready)
            if self._has_timers and not self.is_draining:
                self._timers.fire("processing", now_ms)
        self._let_out(out)
        self._fill()
        self._let_out(out)
        self._submit()

    def granted(self, message: GrantPermits) -> None:
        if self._permits is not None:
            self._permits.granted(message)
            self._submit()

    def say_again(self) -> None:
        """A request that another JobManager has had may never be answered."""
        if self._permits is not None:
            self._permits.say_again()

    def settle(self) -> None:
        """At a barrier; the task stands still meanwhile, so no more than some. In the snapshot the others run still."""
        self._kept_outs.look()
        self._raise_failure()
        self._settle_ended(_SETTLED_AT_BARRIER)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise UserCodeError(self._operator.context.name, None) from self._failure

    def _settle_ended(self, most: int | None = None) -> None:
        """Commit those that have ended well, and decide about the others."""
        for ended in self._runner.taken(most) if self._runner is not None else ():
            if isinstance(ended, Run):
                self._end_run(ended)
            else:
                self._running -= 1
                self._settle(ended)

    def _is_crowded(self) -> bool:
        """Enough may begin, or too many are held. Records of the backlog cost no time while a checkpoint is taken."""
        table, settings = self._table, self._settings
        is_full = len(table) >= self._most_held or table.size_bytes >= settings.max_in_flight_bytes
        return is_full or self._running + len(table.ready) >= settings.max_in_flight

    # -- snapshots: it is a KeptState

    def load(self, stored: Stored) -> None:
        self._restored.load(stored)

    def freeze(self) -> FrozenCalls:
        """With the lock of the state in hand, so that a run stands between two records."""
        run, is_keyed = self._runs.current, self._keyed is not None
        number, piece = self._table.next_number, None
        if run is not None:
            number, piece = run.number, run.piece
        has_later = bool(piece or self._table or self._backlog or self._runs.results)
        past, held = self._runs.frozen(), self._table.frozen(self._prefix)
        waiting = self._backlog.rest(number, piece, self._table.order.last.behind_ms)
        where = self._operator.context
        own = key_group_range(where.max_parallelism, where.parallelism, where.subtask_index).groups
        later = lambda: chain(past(), held(), waiting())  # noqa: E731
        return FrozenCalls(self._restored.waiting[:], later, has_later, None if is_keyed else own)

    @property
    def _prefix(self) -> str:
        """Of idempotency keys: no other attempt has it."""
        context = self._operator.context
        return f"{context.operator_id}-{context.attempt_id}-"

    # -- the way of a call

    def _fill(self) -> None:
        """Make calls of what waits, as far as there is room; or begin a run."""
        if self._runs.current is not None or self._begin_run():
            return
        for each in self._backlog.taken(self._is_crowded):
            if isinstance(each, Watermark):
                self._table.order.close(each.timestamp_ms)
            else:
                self._table.add(each).kind = self._backlog.kind

    def _submit(self) -> None:
        """Begin as many as may run."""
        ready, runner, settings = self._table.ready, self._runner, self._settings
        for call in self._failed.take_overdue(ready, self._wall_ms()):
            self._failed.give_up_overdue(call, self._what, others_ended=self._has_ended_well)
            self._finish(call)
        count = min(len(ready), settings.max_in_flight - self._running)
        if count <= 0 or not self._is_open or runner is None:
            return
        if self._permits is not None:
            count = self._permits.take(count)
        calls = [ready.popleft() for _ in range(count)]
        now_ms, prefix = self._wall_ms(), self._prefix
        for call in calls:
            self._begin.prepare(call, now_ms, prefix)
        self._running += count
        if calls:
            runner.submit(calls)

    def _settle(self, call: Call) -> None:
        """Its try has ended. Raises UserCodeError where that fails the task."""
        unit = call.retried or call
        error = call.error
        if error is None and unit.lent is not None:
            error = self._backend.forgotten(unit)
        if error is not None:
            self._backend.roll_back(unit)
            call.retried = NextTry(call)
            call.failures = call.tries
            call.out.close()
            call.out = Collector()
            call.error, call.is_expired = None, False
            if self._failed.is_tried_again(call, error, self._now_ms(), self._wall_ms()):
                return
            self._failed.give_up(call, error, others_ended=self._has_ended_well)
        else:
            self._has_ended_well = True
        self._finish(call)

    def _finish(self, call: Call) -> None:
        """It will not be tried again; what it has emitted leaves when its turn comes."""
        unit = call.retried or call
        self._backend.commit(unit)
        self._timers.finished(call)
        self._kept_outs.close(call, unit)
        self._table.finish(call)

    def _let_out(self, out: Collector) -> None:
        """Emit what may leave, and the watermarks behind it; their timers come before them."""
        if self._runs.results:
            self._runs.results.move_to(out)
        if self._runs.current is not None:
            return
        while True:
            for call in self._table.leaving():
                if call.results is None:
                    out.take_over(call.out)
                else:
                    for tag, batch in call.results:
                        out.put(tag, batch)
            reached_ms = self._table.order.reached_ms
            if reached_ms is None or (self._has_timers and self._timers.fire("event", reached_ms)):
                return
            if reached_ms == END_OF_TIME:
                if self._awaits_begun():
                    return
                self._kept_outs.look()
                where = self._operator.context
                self._kept_outs.warn_of_threads(where.name, where.threads)
                self._raise_failure()  # of the last one that was waited for
            self._pass(reached_ms, out)

    # -- runs

    def _begin_run(self) -> bool:
        """Where nothing is in flight, take the next batch in a run; whether one has begun."""
        if not self._table.is_calm or not self._is_open or self._runner is None:
            return False
        run = self._runs.begin(self._backlog, self._table.next_number, self._prefix)
        if run is not None:
            self._runner.submit([run])
        return run is not None

    def _end_run(self, run: Run) -> None:
        """What it has emitted leaves next; the call that ended it is in flight."""
        call = self._runs.end(run, self._backlog, self._table.next_number)
        self._kept_outs.add(run.kept)
        self._has_ended_well |= run.number - self._table.next_number > (call is not None)
        self._table.next_number = run.number
        if call is None:
            return
        self._table.adopt(call)
        if run.waits:
            self._running += 1
        else:
            self._settle(call)

    # -- watermarks and timers

    def _pass(self, watermark_ms: int, out: Collector) -> None:
        """All before this watermark has left, and its timers have fired."""
        operator = self._operator
        self._table.pass_watermark()
        is_end = watermark_ms == END_OF_TIME
        if self._keyed is not None and not is_end:
            self._keyed._reached_ms = max(self._keyed._reached_ms, watermark_ms)
            self._keyed._look_at_deleted(watermark_ms)
        arrived_ms, operator.watermark = operator.watermark, watermark_ms
        operator.on_watermark(watermark_ms, out)
        operator.watermark = arrived_ms
        if is_end:
            self.is_draining, self._is_drained = False, True
            return
        out.emit_element(Watermark(watermark_ms))

    def _awaits_begun(self) -> bool:
        """At the end of the data: what records have begun, and not awaited, may still use what is lost then."""
        runner = self._runner
        return runner is not None and runner.awaits_begun(self._settings.close_timeout_ms)

    def _now_ms(self) -> float:
        return self._operator.context.clock.now_ms()

    def _wall_ms(self) -> int:
        return self._operator.context.clock.wall_ms()
