"""AsyncCalls: what runs `async def process` of one operator in one attempt. It stands between its task and its coroutines.

On the task's thread it makes a call of each record, begins as many as may run, settles those that have ended, and lets
their results out, in order where that is wanted. On the event loop nothing is decided (call_runner.py). So a checkpoint
sees each call either as done, with its results and its changes of state, or as not begun, and never waits for one.

A record goes this way: backlog (a batch, as it came) -> call, behind the call before it of the same key -> ready, when
it is its key's turn -> running -> settled -> out. Flink: AsyncWaitOperator, with the keyed state of FLIP-425.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from inspect import iscoroutinefunction
from itertools import islice
from random import Random
from typing import Any, Final, cast

from ...messages import GrantPermits, ReportThrottled, RequestPermits
from ...state.backends.frozen_state import Stored
from ...state.backends.shared_backend import SharedBackend
from ...state.keys.key_hash import java_hash
from ..errors import UserCodeError
from ..flow.elements import END_OF_TIME, TimedBatch, Watermark
from ..flow.key_selector import field_values
from ..operators.collector import Collector
from ..operators.keyed_operator import KeyedOperator
from ..operators.operator import Operator
from ..operators.timers import FIRED_AT_ONCE, Domain, KeyedTimer
from .backlog import Backlog, NewCall
from .call import Call
from .call_order import CallOrder
from .call_runner import CallRunner
from .event_loop import CallLoop
from .failed_record import ERRORS, FailedRecord
from .frozen_calls import NAME, CallInFlight, FrozenCalls, calls_of
from .permits import Permits
from .retry_after import is_throttled, retry_after_ms
from .run import PlainStates, Run, RunResults
from .settings import HELD_PER_CALL, AsyncSettings

_SHORT_RUN: Final = 64
"""A run that ends after fewer records than these was not worth it."""
_MOST_PATIENCE: Final = 1024
_POOLED: Final = 1024
"""Collectors that are kept for later calls."""


class AsyncCalls:
    """Made before the operator's state is restored, which gives it what was in flight; owned by the task."""

    name = NAME

    def __init__(
        self,
        operator: Operator,
        settings: AsyncSettings,
        backend: SharedBackend,
        host: CallLoop,
        chance: Random,
        permits: Permits | None = None,
    ) -> None:
        self._operator = operator
        self._settings = settings
        self._backend = backend
        self._host = host
        self._chance = chance
        self._permits = permits
        self._runner: CallRunner | None = None
        keyed = operator if isinstance(operator, KeyedOperator) else None
        self._keyed = keyed
        self._has_timers = keyed is not None and type(keyed).on_timer is not KeyedOperator.on_timer
        """Then calls behind a watermark begin when its timers have fired."""
        self._order = CallOrder(ordered=keyed is None if settings.ordered is None else settings.ordered)
        self._backlog = Backlog(operator, settings)
        self._restored: list[CallInFlight] = []
        self._held: dict[int, Call] = {}
        """By number: all that have not left."""
        self._held_bytes = 0.0
        self._most_held = settings.max_in_flight * (1 if keyed is None else HELD_PER_CALL)
        self._last: dict[Any, Call] = {}
        """By key, the last call of those that are not settled: the next one waits for it."""
        self._ready: deque[Call] = deque()
        self._later: list[tuple[int, int, Call]] = []
        """A heap of those that are tried again: by time, and number."""
        self._running = 0
        self._run: Run | None = None
        """Goes on: then no call is in flight."""
        self._results = RunResults()
        """Of runs that are over: they leave before all else."""
        self._run_began_ms = 0
        self._plain: PlainStates | None = None
        self._records_to_run = 0
        """The next run may begin with this number: coroutines that wait make it come later and later."""
        self._patience = 1
        self._next_number = 0
        self._is_open = False
        self._failure: BaseException | None = None
        """What `open` has raised."""
        self._collectors: list[Collector] = []
        self.expects_barrier = False
        """A checkpoint is under way: take all that comes before its barrier, however much is held."""
        self.is_draining = False
        """The data has ended, and not all that came of it has left."""
        self._is_drained = False

    # -- life cycle

    def open(self) -> None:
        """Open the operator; records wait until it is open."""
        operator = self._operator
        self._runner = CallRunner(self._host, self._begin, f"{type(operator).__name__}.process", operator.context.wake)
        opening: Any = cast(Any, operator).open()
        if opening is None:
            self._is_open = True
        else:
            self._runner.run(opening, self._opened)
        restored, self._restored = sorted(self._restored, key=lambda each: each.number), []
        for each in restored:
            self._add_restored(each)
        self._submit()

    def _opened(self, error: BaseException | None) -> None:
        """On the event loop's thread."""
        self._failure = error
        self._is_open = error is None

    def close(self) -> None:
        """Cancel all that runs and close the operator. Raises what its `close` raises."""
        operator, runner = self._operator, self._runner
        for call in self._held.values():
            call.is_over = True
        if runner is None:
            operator.close()
            return
        is_async = iscoroutinefunction(operator.close)
        last = cast(Any, operator).close() if is_async else None
        runner.close(self._settings.close_timeout_ms, last)
        if not is_async:
            operator.close()

    # -- what comes in

    @property
    def in_flight(self) -> int:
        """How many records it holds of which calls have been made."""
        return len(self._held)

    def waiting_at(self) -> str:
        """The lines at which coroutines wait."""
        return "an unknown line" if self._runner is None else self._runner.waiting_at()

    @property
    def is_full(self) -> bool:
        """Whether the task should take no input."""
        return (self._is_crowded or bool(self._backlog)) and not self.expects_barrier

    def take(self, batch: Any, input_index: int) -> None:
        """A batch of the operator's, with its event times as they stand there now."""
        self._backlog.add_batch(batch, input_index)
        self._fill()
        self._submit()

    def advance(self, watermark_ms: int) -> bool:
        """A watermark comes behind all that was taken; whether there is more to do for it, which only the end of time
        has: until all has left.
        """
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
        """When `do_due` wants to be called: a time of the clock, as `now_ms`."""
        runner = self._runner
        if (runner is not None and runner.has_ended) or self._failure is not None or self._may_go_on:
            return now_ms
        if self._order.reached_ms is not None:
            return now_ms
        times = [self._later[0][0]] if self._later else []
        if self._has_timers and not self.is_draining:
            assert self._keyed is not None
            timer_ms = self._keyed.timers.queues.processing.next_ms()
            if timer_ms is not None:
                times.append(timer_ms)
        batch_ms = self._backlog.due_ms
        if batch_ms is not None:
            times.append(batch_ms)
        return min(times, default=None)

    def do_due(self, now_ms: int, out: Collector) -> None:
        """Settle what has ended, let out what may leave, begin what may begin. Raises UserCodeError."""
        if self._failure is not None:
            raise UserCodeError(self._operator.context.name, None) from self._failure
        self.settle()
        while self._later and self._later[0][0] <= now_ms:
            self._ready.append(heappop(self._later)[2])
        if self._has_timers and not self.is_draining:
            assert self._keyed is not None
            self._fire("processing", now_ms)
        self._let_out(out)
        self._fill()
        self._let_out(out)
        self._submit()

    def granted(self, message: GrantPermits) -> None:
        """More calls may begin."""
        if self._permits is not None:
            self._permits.granted(message)
            self._submit()

    def settle(self) -> None:
        """Commit those that have ended well, and decide about the others."""
        if self._runner is None:
            return
        for ended in self._runner.taken():
            if type(ended) is Run:
                self._end_run(ended)
                continue
            assert isinstance(ended, Call)
            self._running -= 1
            if ended.error is None:
                self._commit(ended)
            else:
                self._failed(ended)

    @property
    def _is_crowded(self) -> bool:
        return len(self._held) >= self._most_held or self._held_bytes >= self._settings.max_in_flight_bytes

    @property
    def _may_go_on(self) -> bool:
        """Whether there is something that may begin, or be made, right now."""
        if not self._is_open:
            return False
        if self._results:
            return True
        if self._run is not None:
            return False
        if self._ready and self._running < self._settings.max_in_flight and self._permits is None:
            return True
        return self._backlog.has_some(self._wall_ms()) and not self._is_crowded

    # -- snapshots: it is a KeptState

    def load(self, stored: Stored) -> None:
        self._restored.extend(calls_of(stored))

    def freeze(self) -> FrozenCalls:
        prefix, run, is_keyed = self._prefix, self._run, self._keyed is not None
        frozen = [*self._results.frozen(keyed=is_keyed)]
        number, piece = self._next_number, None
        if run is not None:
            frozen += run.results.frozen(keyed=is_keyed)
            number, piece = run.number, run.piece
            if run.stopped is not None:
                call = run.stopped
                own_key = call.key if is_keyed else call.number
                frozen.append(
                    CallInFlight(
                        own_key, call.number, f"{prefix}{call.number}", "record", call.record, call.time_ms,
                        call.watermark, call.input_index, 1, self._run_began_ms, None,
                    )
                )  # fmt: skip
        frozen += [
            CallInFlight(
                call.key,
                call.number,
                call.identity or (f"{prefix}{call.number}" if call.tries else ""),
                call.kind,
                call.record,
                call.time_ms,
                call.watermark,
                call.input_index,
                call.tries,
                call.began_wall_ms,
                self._results_of(call) if call.is_done else None,
            )
            for call in self._held.values()
        ]
        has_waiting = piece is not None or bool(self._backlog)
        return FrozenCalls(frozen, self._backlog.rest(number, piece), has_waiting)

    @property
    def _prefix(self) -> str:
        context = self._operator.context
        return f"{context.operator_id}-{context.attempt_id}-"

    def _results_of(self, call: Call) -> Any:
        if call.results is None:
            call.results = call.out.all_taken()
        return call.results

    def _add_restored(self, each: CallInFlight) -> None:
        call = self._new(each.key, each.record, each.time_ms, each.watermark_ms, each.input_index, 0, 0.0)
        call.kind, call.tries, call.began_wall_ms = each.kind, each.tries, each.began_wall_ms
        call.identity = each.identity or None
        if each.results is None:
            self._enqueue(call)
        else:
            call.results = each.results
            self._order.finish(call)

    # -- the way of a call

    def _fill(self) -> None:
        """Make calls of what waits, as far as there is room; or begin a run."""
        if self._run is not None or self._begin_run():
            return
        for each in self._backlog.taken(lambda: self._is_crowded):
            if type(each) is Watermark:
                self._order.close(each.timestamp_ms)
            else:
                call = self._new(*cast("NewCall", each))
                call.kind = self._backlog.kind
                self._enqueue(call)

    def _begin_run(self) -> bool:
        """Where nothing is in flight, take the next batch in a run."""
        if self._held or not self._is_open or self._permits is not None or self._order.reached_ms is not None:
            return False
        if self._next_number < self._records_to_run or self._runner is None or self._order.has_epochs:
            return False
        piece = self._backlog.take_piece()
        if piece is None:
            return False
        operator: Any = self._operator
        process = operator.process_2 if piece.input_index else operator.process
        if self._next_number == 0:
            self._plain = PlainStates.of(operator)
        self._run = Run(
            piece,
            self._next_number,
            self._backend,
            process,
            self._prefix,
            self._plain,
            self._host.tasks_made,
        )
        self._run_began_ms = self._wall_ms()
        self._runner.submit([self._run])
        return True

    def _end_run(self, run: Run) -> None:
        """A run is over: what it has emitted leaves next, and the call that ended it is in flight."""
        self._run = None
        began, self._next_number = self._next_number, run.number
        self._results.take_over(run.results)
        call = run.stopped
        self._backlog.put_back(run.piece)
        if call is None:
            self._patience = 1
            return
        taken = run.number - began
        self._patience = 1 if taken > _SHORT_RUN else min(self._patience * 2, _MOST_PATIENCE)
        self._records_to_run = run.number + self._patience * _SHORT_RUN
        call.tries, call.began_wall_ms = 1, self._run_began_ms
        if self._keyed is None:
            call.key = call.number
        self._held[call.number] = call
        self._held_bytes += call.size
        self._order.add(call, self._order.last)
        if self._keyed is not None:
            self._last[call.key] = call
        if call.error is not None:
            self._failed(call)
        else:
            self._running += 1
            # its end comes by itself

    def _new(
        self,
        key: Any,
        record: Any,
        time_ms: int | None,
        watermark_ms: int,
        input_index: int,
        position: int,
        size: float,
    ) -> Call:
        number = self._next_number
        self._next_number = number + 1
        call = Call(number, key if self._keyed is not None else number, record, watermark_ms)
        if time_ms is not None:
            call.time_ms = time_ms
        call.position, call.size, call.input_index = position, size, input_index
        self._held[number] = call
        self._held_bytes += size
        self._order.add(call, self._order.last)
        return call

    def _enqueue(self, call: Call) -> None:
        """Its turn comes when the one before it of its key is settled."""
        if self._has_timers and call.epoch is not self._order.first:
            call.epoch.held.append(call)
            return
        if self._keyed is not None:
            try:
                before = self._last.get(call.key)
            except TypeError:
                java_hash(call.key)  # raises what is wrong with it
                raise
            self._last[call.key] = call
            if before is not None:
                before.following = call
                return
        self._ready.append(call)

    def _submit(self) -> None:
        """Begin as many as may run."""
        ready, runner = self._ready, self._runner
        count = min(len(ready), self._settings.max_in_flight - self._running)
        if count <= 0 or not self._is_open or runner is None:
            return
        if self._permits is not None:
            count = self._permits.take(count)
        calls = [ready.popleft() for _ in range(count)]
        settings, collectors = self._settings, self._collectors
        now_ms, prefix = self._wall_ms(), self._prefix
        for call in calls:
            call.tries += 1
            if not call.began_wall_ms:
                call.began_wall_ms = now_ms
            call.out = collectors.pop() if collectors else Collector()
            call.out.time_ms = None if call.kind == "batch" else call.time_ms
            call.limit_ms = _limit_ms(settings, call, now_ms)
            if call.identity is None:
                call.prefix = prefix
                if settings.idempotency_key is not None:
                    call.identity = self._own_identity(call)
        self._running += count
        if calls:
            runner.submit(calls)

    def _begin(self, call: Call) -> Any:
        """On the event loop's thread, with the call as the current unit of work."""
        operator: Any = self._operator
        match call.kind:
            case "record":
                return (operator.process_2 if call.input_index else operator.process)(call.record, call.out)
            case "timer":
                return operator.on_timer(call.record, call.out)
            case _:
                batch = call.record
                return operator.process_batch(batch.records if isinstance(batch, TimedBatch) else batch, call.out)

    def _own_identity(self, call: Call) -> str | None:
        """The one that the record gives. Raises UserCodeError."""
        wanted = self._settings.idempotency_key
        if call.kind != "record":
            return None
        try:
            if callable(wanted):
                return str(wanted(call.record))
            return str(field_values([call.record], str(wanted), "the idempotency key")[0])
        except Exception as error:
            raise UserCodeError(self._operator.context.name, call.position) from error

    def _commit(self, call: Call) -> None:
        self._backend.commit(call)
        self._order.finish(call)
        if self._keyed is not None:
            following = call.following
            if following is None:
                del self._last[call.key]
            else:
                call.following = None
                self._ready.append(following)

    def _failed(self, call: Call) -> None:
        """Its try has failed: try again, or do what is wanted then."""
        error, settings = call.error, self._settings
        assert error is not None
        self._backend.roll_back(call)
        call.begin_again()
        call.error, call.is_expired = None, False
        call.out = Collector()
        wall_ms = self._wall_ms()
        after_ms = retry_after_ms(error, wall_ms)
        if self._permits is not None and is_throttled(error):
            self._permits.throttled(after_ms)
        retry = settings.retry
        if retry is not None and call.tries < retry.attempts and retry.is_for(error):
            delay_ms = max(retry.delay_ms(call.tries, self._chance), after_ms or 0.0)
            left_ms = (
                None
                if settings.total_timeout_ms is None
                else settings.total_timeout_ms - (wall_ms - call.began_wall_ms)
            )
            if left_ms is None or delay_ms < left_ms:
                heappush(self._later, (wall_ms + int(delay_ms), call.number, call))
                return
        if settings.default is not None:
            call.out.time_ms = call.time_ms if call.kind != "batch" else None
            call.out.collect(settings.default)
        elif settings.on_error == "errors":
            call.out.time_ms = call.time_ms if call.kind != "batch" else None
            shown = f"{type(error).__name__}: {error}"
            key = call.key if self._keyed is not None else None
            batch = call.record if call.kind == "batch" else [call.record]
            records, times = (batch.records, batch.times) if isinstance(batch, TimedBatch) else (batch, None)
            call.out.emit_to(ERRORS, [FailedRecord(each, shown, call.tries, key) for each in records], times)
        else:
            raise UserCodeError(self._operator.context.name, call.position) from error
        self._commit(call)

    def _let_out(self, out: Collector) -> None:
        """Emit what may leave, and the watermarks behind it; their timers come before them."""
        order, held = self._order, self._held
        if self._results:
            self._results.move_to(out)
        while True:
            for call in order.leaving():
                del held[call.number]
                self._held_bytes -= call.size
                if call.results is None:
                    out.take_over(call.out)
                    if len(self._collectors) < _POOLED:
                        self._collectors.append(call.out)
                else:
                    for tag, batch in call.results:
                        out.put(tag, batch)
            reached_ms = order.reached_ms
            if reached_ms is None or (self._has_timers and self._fire("event", reached_ms)):
                return
            self._pass(reached_ms, out)

    def _pass(self, watermark_ms: int, out: Collector) -> None:
        """All before this watermark has left, and its timers have fired."""
        operator = self._operator
        for call in self._order.pass_watermark().take_held():
            self._enqueue(call)
        if watermark_ms == END_OF_TIME:
            self.is_draining, self._is_drained = False, True
            return
        if self._keyed is not None:
            self._keyed._reached_ms = max(self._keyed._reached_ms, watermark_ms)
        arrived_ms, operator.watermark = operator.watermark, watermark_ms
        operator.on_watermark(watermark_ms, out)
        operator.watermark = arrived_ms
        out.emit_element(Watermark(watermark_ms))

    def _fire(self, domain: Domain, until_ms: int) -> bool:
        """Make calls of the timers that are due, of many of them at most; whether there were any."""
        assert self._keyed is not None
        queues = self._keyed.timers.queues
        queue = queues.event if domain == "event" else queues.processing
        is_event = domain == "event"
        with self._backend.lock:
            due = list(islice(queue.due(until_ms), FIRED_AT_ONCE))
        for time_ms, key, namespace in due:
            timer = KeyedTimer(time_ms, domain, namespace)
            number = self._next_number
            self._next_number = number + 1
            watermark_ms = until_ms if is_event else self._keyed.watermark
            call = Call(number, key, timer, watermark_ms)
            call.kind, call.time_ms = "timer", time_ms if is_event else None
            self._held[number] = call
            self._order.add(call, self._order.first if is_event else self._order.last)
            self._enqueue(call)
        return bool(due)

    def _wall_ms(self) -> int:
        return self._operator.context.clock.wall_ms()


def _limit_ms(settings: AsyncSettings, call: Call, now_ms: int) -> float | None:
    """How long its try may take."""
    if settings.total_timeout_ms is None:
        return settings.timeout_ms
    left_ms = max(settings.total_timeout_ms - (now_ms - call.began_wall_ms), 1)
    return left_ms if settings.timeout_ms is None else min(left_ms, settings.timeout_ms)


def async_calls(operator: Operator, backend: SharedBackend, host: CallLoop, chance: Random) -> AsyncCalls:
    """What runs the coroutines of an operator that has been placed."""
    settings = operator.async_settings or AsyncSettings()
    permits = None
    if settings.rate_per_second is not None:
        where, tell = operator.context, operator._tell_job
        permits = Permits(
            lambda count: tell(RequestPermits(where.job_id, where.attempt_id, where.operator_id, count)),
            lambda ms: tell(ReportThrottled(where.job_id, where.attempt_id, where.operator_id, ms)),
        )
    return AsyncCalls(operator, settings, backend, host, chance, permits)
