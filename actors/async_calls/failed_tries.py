"""FailedTries: what becomes of a call whose try has failed: another try later, or something else in its place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from ...messages import shown
from ..errors import CallTimedOut, UserCodeError
from ..flow.elements import TimedBatch
from .call import Call
from .failed_record import ERRORS, FailedRecord
from .permits import Permits
from .retry import Retry
from .retry_after import is_throttled, retry_after_ms
from .settings import AsyncSettings


class FailedTries:
    """Of one operator; on the task's thread. `now_ms` is of a clock that nobody sets, `wall_ms` the time of day."""

    def __init__(
        self,
        settings: AsyncSettings,
        name: str,
        *,
        keyed: bool,
        permits: Permits | None,
        delay_ms: Callable[[Retry, int], float],
    ) -> None:
        self._settings = settings
        self._name = name
        self._is_keyed = keyed
        self._permits = permits
        self._delay_ms = delay_ms
        self._later: list[tuple[float, int, Call]] = []
        """A heap of those that are tried again: by time, and number."""

    @property
    def due_ms(self) -> float | None:
        """When the next one is to be tried again."""
        return self._later[0][0] if self._later else None

    def take_due(self, now_ms: float, ready: deque[Call]) -> None:
        """Those whose time has come go where calls wait to begin, before those that were never tried: they may take
        no longer than `total_timeout_ms`.
        """
        due = list[Call]()
        while self._later and self._later[0][0] <= now_ms:
            due.append(heappop(self._later)[2])
        ready.extendleft(reversed(due))

    def take_overdue(self, ready: deque[Call], wall_ms: int) -> list[Call]:
        """Those that were to be tried again, and whose time was over before their turn came. They wait no more."""
        total_ms = self._settings.total_timeout_ms
        if total_ms is None:
            return []
        overdue = [each for each in ready if each.began_wall_ms and wall_ms - each.began_wall_ms >= total_ms]
        for each in overdue:
            ready.remove(each)
        return overdue

    def give_up_overdue(self, call: Call, what: str, *, others_ended: bool) -> None:
        """As `give_up`. `what`: the method, for a user."""
        settings, rate = self._settings, self._settings.rate_per_second
        setting = f"max_in_flight={settings.max_in_flight}" if rate is None else f"rate_per_second={rate:g}"
        error = CallTimedOut(what, settings.total_timeout_ms or 0, call.tries + 1, setting)
        self.give_up(call, error, others_ended=others_ended)

    def is_tried_again(self, call: Call, error: BaseException, now_ms: float, wall_ms: int) -> bool:
        """Whether there will be another try, for which it is ready now; it is due later."""
        after_ms = retry_after_ms(error, wall_ms)
        if self._permits is not None and is_throttled(error):
            self._permits.throttled(after_ms)
        settings, retry = self._settings, self._settings.retry
        if retry is None or call.tries >= retry.attempts or not retry.is_for(error):
            return False
        delay_ms = max(self._delay_ms(retry, call.tries), after_ms or 0.0)
        total_ms = settings.total_timeout_ms
        if total_ms is not None and delay_ms >= total_ms - max(wall_ms - call.began_wall_ms, 0):
            return False
        self._wait(call, delay_ms, now_ms, wall_ms)
        return True

    def waits_again(self, call: Call, again_wall_ms: int, now_ms: float, wall_ms: int) -> bool:
        """Whether a restored one, whose turn it is, is not due yet; not for longer than it waits after any try, as the
        time of day is another one on another machine.
        """
        retry = self._settings.retry
        left_ms = min(again_wall_ms - wall_ms, 0 if retry is None else retry.max_delay_ms)
        if left_ms > 0:
            self._wait(call, left_ms, now_ms, wall_ms)
        return left_ms > 0

    def _wait(self, call: Call, delay_ms: float, now_ms: float, wall_ms: int) -> None:
        call.again_wall_ms = wall_ms + int(delay_ms)
        heappush(self._later, (now_ms + delay_ms, call.number, call))

    def give_up(self, call: Call, error: BaseException, *, others_ended: bool) -> None:
        """Put into its output what is wanted in place of its results. Raises UserCodeError where nothing is."""
        settings = self._settings
        if not isinstance(error, Exception):  # sys.exit() says nothing about a record
            raise UserCodeError(self._name, call.position) from error
        call.out.time_ms = call.time_ms if call.kind != "batch" else None
        if settings.default is not None:
            call.out.collect(settings.default)
        elif settings.on_error == "errors":
            shown = f"{type(error).__name__}: {error}"
            key = call.key if self._is_keyed else None
            batch = call.record if call.kind == "batch" else [call.record]
            records, times = (batch.records, batch.times) if isinstance(batch, TimedBatch) else (batch, None)
            call.out.emit_to(ERRORS, [FailedRecord(each, shown, call.tries, key) for each in records], times)
        else:
            failure = UserCodeError(self._name, call.position)
            failure.what = f"{failure.what}: {self._told(call)}"
            failure.record_key, failure.others_ended = call.idempotency_key, others_ended
            raise failure from error

    def _told(self, call: Call) -> str:
        """For a user: which record it was, and how to go on without it, or to try it again."""
        what = {"timer": "the timer", "batch": "the batch"}.get(call.kind, "the record")
        of_key = f" of key {shown(call.key)}" if self._is_keyed else ""
        again = ", to try them again retry=Retry(...)" if self._settings.retry is None else ""
        return (
            f"{what} {shown(call.record, 160)}{of_key}; to go on without such records set "
            f'on_error="errors"{again} (AsyncSettings)'
        )
