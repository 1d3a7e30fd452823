"""Triggers: when a window fires. The contract, and those that go by records. Flink: Trigger and its subclasses.

A trigger is asked after each record of a window and whenever a timer comes due that was set for this window. It is one
object for all keys and windows, so it remembers nothing itself: what it must know is kept in the `context`, per key and
window, which is state like any other. The default trigger fires at the end of the window, and again with each late
record; any other trigger takes its place, and does not add to it: any_of(event_time(), count(100)) does both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ..errors import UnwantedResult
from .errors import InvalidWindow
from .window import Window


class TriggerResult(Enum):
    """What becomes of the window: (whether it fires, whether its contents are forgotten after that)."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        return self.value[0]

    @property
    def purges(self) -> bool:
        return self.value[1]


CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


def said_by(trigger: Trigger, result: Any) -> TriggerResult:
    """What a trigger has returned. Raises UnwantedResult for anything else than a TriggerResult."""
    if not isinstance(result, TriggerResult):
        raise UnwantedResult(
            f"trigger {type(trigger).__name__} returned {result!r:.80}: wanted a TriggerResult, such as "
            "TriggerResult.CONTINUE; is a `return` missing?"
        )
    return result


class TriggerContext(Protocol):
    """What a trigger has of the key and window at hand."""

    @property
    def watermark(self) -> int:
        """The event time that the operator has reached."""
        ...

    def processing_time(self) -> int:
        """The clock of the task, in ms."""
        ...

    def at_event_time(self, time_ms: int) -> None:
        """Have `on_event_time` called when the watermark has reached this time. Twice is once."""

    def at_processing_time(self, time_ms: int) -> None:
        """Have `on_processing_time` called when the clock has reached this time, in ms since 1970."""
        ...

    def delete_event_time(self, time_ms: int) -> None:
        """Take a timer of `at_event_time` back."""
        ...

    def delete_processing_time(self, time_ms: int) -> None:
        """Take a timer of `at_processing_time` back."""
        ...

    def get(self, name: str, default: Any = None) -> Any:
        """What `put` kept under this name, for this key and window."""

    def put(self, name: str, value: Any) -> None:
        """Keep a value, which is plain data, and not changed afterwards."""

    def remove(self, name: str) -> None:
        """Forget it; an absent one is fine."""

    def of_merged(self, name: str) -> Sequence[Any]:
        """In `on_merge`: what the windows that have become this one kept under the name."""
        ...


class Trigger:
    """Subclass it for a trigger of your own. `window` is the key's window, which merging may have made larger."""

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        """A record is in the window now. Its time is None on a stream without event time."""
        raise NotImplementedError(f"{type(self).__name__}.on_record is not defined")  # abstract

    def on_event_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        """The watermark has reached this time: one that was asked for, or that at which the window is forgotten."""
        return CONTINUE

    def on_processing_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        """The same of the clock."""
        return CONTINUE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        """Several windows have become this one: set its timers, and make its values of `context.of_merged`. Then
        `clear` is called for each of the several, and `on_record` for the record that made them touch.
        """
        raise InvalidWindow(
            f"{type(self).__name__} cannot be used with sessions: it has no on_merge(window, context), which says what "
            "becomes of what it kept for windows that are merged"
        )

    def clear(self, window: Window, context: TriggerContext) -> None:
        """The window is gone: delete timers. The values that were put are forgotten without that."""

    def purges(self) -> bool:
        """Whether a firing may forget the contents; such a one cannot be used with `retracting()`."""
        return False


def can_merge(trigger: Trigger) -> bool:
    """Whether it says what becomes of merged windows."""
    return all(type(each).on_merge is not Trigger.on_merge for each in parts(trigger))


class HasTriggers(Trigger):
    """A trigger made of others."""

    triggers: tuple[Trigger, ...]


def parts(trigger: Trigger) -> Iterator[Trigger]:
    """The trigger, and all that it is made of."""
    yield trigger
    for inner in trigger.triggers if isinstance(trigger, HasTriggers) else ():
        yield from parts(inner)


def check_trigger(what: str, given: Any) -> Trigger:
    """Raises InvalidWindow for what is not a trigger."""
    if isinstance(given, type) or not callable(getattr(given, "on_record", None)):
        name = given.__name__ if isinstance(given, type) else repr(given)
        raise InvalidWindow(f"{what}: wanted a trigger such as event_time() or count(100), found {name:.80}")
    return given  # type: ignore[no-any-return]


@dataclass(frozen=True)
class CountTrigger(Trigger):
    """Fires with each n-th record of a window."""

    n: int

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n <= 0:
            raise InvalidWindow(f"count: wanted a number of records above 0, found {self.n!r:.80}")

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        counted = context.get("count", 0) + 1
        if counted < self.n:
            context.put("count", counted)
            return CONTINUE
        context.remove("count")
        return FIRE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        if counted := sum(context.of_merged("count")):
            context.put("count", counted)


@dataclass(frozen=True)
class NeverTrigger(Trigger):
    """Never fires."""

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        return CONTINUE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        pass


@dataclass(frozen=True)
class PurgingTrigger(HasTriggers):
    """Fires as another trigger does, and then forgets the contents."""

    trigger: Trigger

    @property
    def triggers(self) -> tuple[Trigger, ...]:  # type: ignore[override]
        return (self.trigger,)

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        return _purging(said_by(self.trigger, self.trigger.on_record(record, timestamp_ms, window, context)))

    def on_event_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        return _purging(said_by(self.trigger, self.trigger.on_event_time(time_ms, window, context)))

    def on_processing_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        return _purging(said_by(self.trigger, self.trigger.on_processing_time(time_ms, window, context)))

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        self.trigger.on_merge(window, context)

    def clear(self, window: Window, context: TriggerContext) -> None:
        self.trigger.clear(window, context)

    def purges(self) -> bool:
        return True


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is FIRE else result


def count(n: int) -> Trigger:
    """Fire with each n-th record of a window."""
    return CountTrigger(n)


def never() -> Trigger:
    """Never fire: the trigger of `global_window()`."""
    return NeverTrigger()


def purging(trigger: Trigger) -> Trigger:
    """Fire as this trigger does, and begin with no contents again."""
    return PurgingTrigger(check_trigger("purging", trigger))
