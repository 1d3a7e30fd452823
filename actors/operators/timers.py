"""The timers of a KeyedOperator, as its methods see them. Flink: TimerService, KeyedProcessFunction.onTimer.

What is registered lies in the operator's keyed state (state/backends/timer_queue.py). When timers fire is decided by
whoever advances event time and looks at the clock; see `KeyedOperator`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Hashable
from datetime import datetime
from math import isfinite
from typing import Any, Final, Literal, NamedTuple

from ...messages.counted import counted
from ...state.backends.backend import NO_KEY, NO_NAMESPACE, KeyedStateBackend
from ...state.backends.heap_state import HeapScope
from ...state.backends.timer_queue import WITH_NAMESPACE, TimerEntry, place_of
from ...state.errors import NoCurrentKey, ReadOnlyState
from ...state.kinds.durations import may_be_seconds
from ..errors import NoTimerMethod
from ..flow.dates import is_of_this_century, other_unit
from .line_of_caller import line_of_caller
from .overdue_timers import OverdueTimers

log = logging.getLogger(__name__)

Domain = Literal["event", "processing"]

_DAY_MS = 86_400_000
"""A timer of processing time that is farther in the past was hardly set by the clock."""

_LONGEST_SPAN_MS = 366 * _DAY_MS
"""A year: a smaller number is hardly a time since 1970 where the others are of this century."""

_SPANS = 3
"""This many timers of different times that are equally far behind their records: a number was added to a time."""

_EARLIEST, _LATEST = -(2**63), 2**63 - 1

FIRED_AT_ONCE: Final = 1000
"""Timers that fire in one step of a task, at most: then a barrier may pass, or a cancellation."""


class KeyedTimer(NamedTuple):
    """A timer of one key: `on_timer` gets it when it is due, and `timers.delete` takes it."""

    time_ms: int
    domain: Domain = "event"
    """"event": due when the watermark reaches its time; "processing": when the clock does."""
    namespace: Any = NO_NAMESPACE


new_timer = tuple.__new__
"""Makes a KeyedTimer three times as fast as calling its class."""


class Timers:
    """`self.timers` of a KeyedOperator: registers and deletes timers of the current key.

    There is one timer for each key, domain, namespace and time: registering it again changes nothing. Times are ms
    since the epoch. All methods raise NoCurrentKey where there is no key, and ValueError for what cannot be a time.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        refusal: str = "",
        clock_ms: Callable[[], int] | None = None,
        event_ms: Callable[[], int] | None = None,
        overdue: OverdueTimers | None = None,
    ) -> None:
        """`refusal`: why no timer may be registered: then that raises NoTimerMethod with this text. `clock_ms`
        and `event_ms`: the operator's processing time and event time, which the first timers of each are held against;
        None: the times of timers are not the user's. `overdue`: looks at those of event time that are deleted.
        """
        self.overdue = overdue
        self._backend, self._refusal = backend, refusal
        self._clock_ms, self._event_ms = clock_ms, event_ms
        """None once enough timers have been looked at."""
        self._spans: dict[int, int] = {}
        """By the time of one of the first event-time timers: how far that is behind its record."""
        self.queues = backend.timers()
        self._last = KeyedTimer(0)
        """The event-time timer that was registered last, by any key; and its time and namespace, and all places of its
        time.
        """
        self._last_ms, self._last_namespace = self._last.time_ms, self._last.namespace
        self._last_places: Container[Any] = ()
        self.is_read_only = False
        """While a question is answered: registering and deleting raise ReadOnlyState, as changes of state do."""

    def at_event_time(self, time_ms: int, namespace: Hashable = NO_NAMESPACE) -> KeyedTimer:
        """Call `on_timer` when the watermark has reached this time; at or below the current watermark: with its next
        advance.
        """
        if type(time_ms) is int and time_ms == self._last_ms and namespace is self._last_namespace:
            key = self._backend.current_key
            try:
                if (key if namespace is NO_NAMESPACE else (WITH_NAMESPACE, key, namespace)) in self._last_places:
                    return self._last  # most records register a timer that is there, of the same time as the one before
            except TypeError:  # there is no key, or what cannot be a namespace
                pass
        return self._register(time_ms, namespace)

    def at_processing_time(self, time_ms: int, namespace: Hashable = NO_NAMESPACE) -> KeyedTimer:
        """Call `on_timer` when the clock has reached this time: `self.processing_time()` plus what it is to wait."""
        time_ms = self._registered(time_ms)
        if self._clock_ms is not None:
            now_ms, self._clock_ms = self._clock_ms(), None
            self._look_at_processing_time(time_ms, now_ms)
        self.queues.processing.add((time_ms, self._backend.current_key, namespace))
        return new_timer(KeyedTimer, (time_ms, "processing", namespace))

    def delete(self, timer: KeyedTimer) -> bool:
        """Whether it was there. One that has fired is not."""
        if not isinstance(timer, KeyedTimer):
            raise TypeError(
                f"timers.delete: wanted a KeyedTimer, as at_event_time returns it, found {timer!r:.60}; "
                f"{_NONE if timer is None else _BY_TIME}"
            )
        if timer.domain == "event":
            return self.delete_event_time(timer.time_ms, timer.namespace)
        return self.delete_processing_time(timer.time_ms, timer.namespace)

    def delete_event_time(self, time_ms: int, namespace: Hashable = NO_NAMESPACE) -> bool:
        """Delete the event-time timer of this time; whether it was there."""
        entry = self._entry(time_ms, namespace)
        if not self.queues.event.remove(entry):
            return False
        if self.overdue is not None and not self.overdue.is_seen:
            self.overdue.look_at(entry[0])
        return True

    def delete_processing_time(self, time_ms: int, namespace: Hashable = NO_NAMESPACE) -> bool:
        """Delete the processing-time timer of this time; whether it was there."""
        return self.queues.processing.remove(self._entry(time_ms, namespace))

    def _register(self, time_ms: int, namespace: Hashable) -> KeyedTimer:
        queue, key = self.queues.event, self._backend.current_key
        try:
            is_pending = type(time_ms) is int and place_of(key, namespace) in queue.places_at(time_ms)
        except TypeError:  # there is no key, or what cannot be a namespace
            is_pending = False
        if not is_pending:
            time_ms = self._registered(time_ms)
            if self._event_ms is not None:
                self._look_at_event_time(time_ms, self._event_ms())
            queue.add((time_ms, key, namespace))
        if time_ms != self._last_ms or namespace != self._last_namespace:
            self._last = new_timer(KeyedTimer, (time_ms, "event", namespace))
            self._last_ms, self._last_namespace = time_ms, namespace
        self._last_places = queue.places_at(time_ms)
        return self._last

    def _look_at(self, time_ms: int, now_ms: int, what_is: str, now: str, gives: str) -> None:
        """Warn of a first time in another unit, or of a span of time: such a timer fires at once, or never."""
        if not is_of_this_century(now_ms):
            return
        if (other := other_unit(time_ms)) is not None:
            log.warning(
                "operator %r: a timer at %d counts as milliseconds since 1970, and %s %d. If its time is in %s, %s it "
                "%s: %s",
                self._backend.operator_name,
                time_ms,
                what_is,
                now_ms,
                *other,
                gives,
            )
        elif 0 < time_ms <= _LONGEST_SPAN_MS:
            log.warning(
                "operator %r: a timer at %d counts as milliseconds since 1970, and %s %d, so it fires at once. If it "
                "is to fire that long after now, write %s + %d",
                self._backend.operator_name,
                time_ms,
                what_is,
                now_ms,
                now,
                time_ms,
            )

    def _look_at_processing_time(self, time_ms: int, now_ms: int) -> None:
        """Warn of the first as above; and of one that is long past, as those of old records are at their own times."""
        self._look_at(
            time_ms,
            now_ms,
            "now is",
            "self.processing_time()",
            "self.processing_time() gives milliseconds, and time.time() seconds",
        )
        if is_of_this_century(now_ms) and _LONGEST_SPAN_MS < time_ms < now_ms - _DAY_MS:
            log.warning(
                "operator %r sets a timer of processing time at %d (%s), %s before now, which is %d, so it fires at "
                "once. Is event time meant? Then write self.timers.at_event_time(...). If it is to wait from now on, "
                "write self.timers.at_processing_time(self.processing_time() + ms)",
                self._backend.operator_name,
                time_ms,
                line_of_caller(),
                counted((now_ms - time_ms) // _DAY_MS, "day"),
                now_ms,
            )

    def _look_at_event_time(self, time_ms: int, event_ms: int) -> None:
        """Warn of the first as above; and where the first ones all lie the same few ms behind their records, which come
        farther apart than that: of many records in a second ms are meant.
        """
        if not self._spans:
            self._look_at(time_ms, event_ms, "event time is", "self.timestamp", "self.timestamp gives milliseconds")
        self._spans[time_ms] = span_ms = time_ms - event_ms
        is_one = len(set(self._spans.values())) == 1
        if not (is_one and span_ms > 1 and may_be_seconds(span_ms) and is_of_this_century(event_ms)):
            self._event_ms = None
        elif len(self._spans) == _SPANS:
            self._event_ms = None
            if max(self._spans) - min(self._spans) < _SPANS * span_ms:
                return
            log.warning(
                "operator %r: its timers are %d ms behind their records: if seconds are meant, write "
                "self.timestamp + %d",
                self._backend.operator_name,
                span_ms,
                span_ms * 1000,
            )

    def _entry(self, time_ms: int, namespace: Hashable) -> TimerEntry:
        return self._checked(time_ms), self._backend.current_key, namespace

    def _registered(self, time_ms: Any) -> int:
        """The time of a new timer as an int. Raises NoTimerMethod too."""
        if self._refusal:
            raise NoTimerMethod(self._refusal)
        return self._checked(time_ms)

    def _checked(self, time_ms: Any) -> int:
        """A time as an int. Raises NoCurrentKey, ValueError and ReadOnlyState."""
        if self._backend.current_key is NO_KEY:
            if isinstance(self._backend, HeapScope) and self._backend.owner is not None:
                self._backend.owner.check("self.timers", self._backend.operator_name)
            raise NoCurrentKey("self.timers", self._backend.operator_name)
        if self.is_read_only:
            raise ReadOnlyState("timers")
        whole = time_ms if type(time_ms) is int else _whole(time_ms)
        if not _EARLIEST <= whole <= _LATEST:
            raise ValueError(f"a timer: wanted ms since the epoch in 64 bits, found {whole}")
        return whole


_NONE = (
    "a state that holds nothing yet gives None: ask `if due is not None` first, or declare a default, as in "
    "ValueState(int, default=0)"
)

_BY_TIME = "for a time in ms use delete_event_time or delete_processing_time"


def _whole(time_ms: Any) -> int:
    """A number of another type as an int, if it is whole. Raises ValueError."""
    if not isinstance(time_ms, bool) and hasattr(time_ms, "__index__"):
        return int(time_ms)
    if time_ms is None:
        raise ValueError(f"a timer: wanted a whole number of ms since the epoch, found None; {_NONE}")
    better = "int(...) of it"
    if isinstance(time_ms, datetime):
        aware = "" if time_ms.tzinfo else ".replace(tzinfo=UTC)"
        better = f"int(moment{aware}.timestamp() * 1000), or self.timestamp plus milliseconds"
    found = f"{type(time_ms).__name__} {time_ms!r:.60}"
    if isinstance(time_ms, float) and isfinite(time_ms) and (other := other_unit(int(time_ms))) is not None:
        found += f", which is a time in {other[0]}"
        better = "self.processing_time(), which gives milliseconds, or int(...) of it in milliseconds"
    raise ValueError(f"a timer: wanted a whole number of ms since the epoch, found {found}: use {better}")
