"""Triggers made of several: any_of fires when one of them does, all_of when each has.

Each of them has values and timers of its own: a timer that two have set is one timer of the window, comes to both,
and stays until neither wants it. Beam: AfterFirst, AfterAll. Flink has none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .errors import InvalidWindow
from .triggers import HasTriggers, Trigger, TriggerContext, TriggerResult, check_trigger, said_by
from .window import Window

Domain: TypeAlias = Literal["event", "processing"]
_Timer: TypeAlias = "tuple[Domain, int]"


class _Part(TriggerContext):
    """The context of one of several triggers."""

    def __init__(self, whole: TriggerContext, index: int, number: int) -> None:
        self._whole, self._index, self._number = whole, index, number

    @property
    def watermark(self) -> int:
        return self._whole.watermark

    def processing_time(self) -> int:
        return self._whole.processing_time()

    def get(self, name: str, default: Any = None) -> Any:
        return self._whole.get(f"{self._index}.{name}", default)

    def put(self, name: str, value: Any) -> None:
        self._whole.put(f"{self._index}.{name}", value)

    def remove(self, name: str) -> None:
        self._whole.remove(f"{self._index}.{name}")

    def of_merged(self, name: str) -> Sequence[Any]:
        return self._whole.of_merged(f"{self._index}.{name}")

    def at_event_time(self, time_ms: int) -> None:
        if self._add(("event", time_ms)):
            self._whole.at_event_time(time_ms)

    def at_processing_time(self, time_ms: int) -> None:
        if self._add(("processing", time_ms)):
            self._whole.at_processing_time(time_ms)

    def delete_event_time(self, time_ms: int) -> None:
        if self.drop(("event", time_ms)) and not self._wanted_elsewhere(("event", time_ms)):
            self._whole.delete_event_time(time_ms)

    def delete_processing_time(self, time_ms: int) -> None:
        if self.drop(("processing", time_ms)) and not self._wanted_elsewhere(("processing", time_ms)):
            self._whole.delete_processing_time(time_ms)

    def has_timers(self) -> bool:
        return bool(self._timers(self._index))

    def drop(self, timer: _Timer) -> bool:
        """Whether this part had set it."""
        timers = self._timers(self._index)
        if timer not in timers:
            return False
        self._keep(tuple(each for each in timers if each != timer))
        return True

    def _add(self, timer: _Timer) -> bool:
        timers = self._timers(self._index)
        if timer in timers:
            return False
        self._keep((*timers, timer))
        return True

    def _timers(self, index: int) -> tuple[_Timer, ...]:
        timers: tuple[_Timer, ...] = self._whole.get(f"{index} timers", ())
        return timers

    def _keep(self, timers: tuple[_Timer, ...]) -> None:
        if timers:
            self._whole.put(f"{self._index} timers", timers)
        else:
            self._whole.remove(f"{self._index} timers")

    def _wanted_elsewhere(self, timer: _Timer) -> bool:
        return any(timer in self._timers(index) for index in range(self._number) if index != self._index)


@dataclass(frozen=True)
class _Combined(HasTriggers):
    """What both share: every part sees every record, and the timers that it has set."""

    triggers: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        if len(self.triggers) < 2:
            raise InvalidWindow(f"wanted at least two triggers to combine, found {len(self.triggers)}")
        for trigger in self.triggers:
            check_trigger("a trigger to combine", trigger)

    def on_record(
        self, record: Any, timestamp_ms: int | None, window: Window, context: TriggerContext
    ) -> TriggerResult:
        asked = [
            (index, said_by(trigger, trigger.on_record(record, timestamp_ms, window, part)))
            for index, trigger, part in self._parts(context)
        ]
        return self._result(asked, context)

    def on_event_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        asked = [
            (index, said_by(trigger, trigger.on_event_time(time_ms, window, part)))
            for index, trigger, part in self._parts(context)
            if part.drop(("event", time_ms))
        ]
        return self._result(asked, context)

    def on_processing_time(self, time_ms: int, window: Window, context: TriggerContext) -> TriggerResult:
        asked = [
            (index, said_by(trigger, trigger.on_processing_time(time_ms, window, part)))
            for index, trigger, part in self._parts(context)
            if part.drop(("processing", time_ms))
        ]
        return self._result(asked, context)

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        for _, trigger, part in self._parts(context):
            trigger.on_merge(window, part)

    def clear(self, window: Window, context: TriggerContext) -> None:
        for _, trigger, part in self._parts(context):
            trigger.clear(window, part)

    def purges(self) -> bool:
        return any(trigger.purges() for trigger in self.triggers)

    def _parts(self, context: TriggerContext) -> Iterator[tuple[int, Trigger, _Part]]:
        for index, trigger in enumerate(self.triggers):
            yield index, trigger, _Part(context, index, len(self.triggers))

    def _result(self, asked: Sequence[tuple[int, TriggerResult]], context: TriggerContext) -> TriggerResult:
        """What comes of what the parts said that were asked."""
        raise NotImplementedError  # abstract


@dataclass(frozen=True)
class AnyOf(_Combined):
    """Fires when one of them fires."""

    def _result(self, asked: Sequence[tuple[int, TriggerResult]], context: TriggerContext) -> TriggerResult:
        return TriggerResult((any(said.fires for _, said in asked), any(said.purges for _, said in asked)))


@dataclass(frozen=True)
class AllOf(_Combined):
    """Fires when each of them has fired since the last time that this one did, in whatever order. It purges if the
    last of them does.
    """

    def _result(self, asked: Sequence[tuple[int, TriggerResult]], context: TriggerContext) -> TriggerResult:
        purges = any(said.purges for _, said in asked)
        ready: tuple[int, ...] = context.get("ready", ())
        now = tuple(sorted({*ready, *(index for index, said in asked if said.fires)}))
        if len(now) == len(self.triggers):
            context.remove("ready")
            return TriggerResult((True, purges))
        if now != ready:
            context.put("ready", now)
        return TriggerResult.CONTINUE

    def on_merge(self, window: Window, context: TriggerContext) -> None:
        """One that waits for a time of the merged window has not fired for it yet, whatever came before."""
        super().on_merge(window, context)
        before = {index for ready in context.of_merged("ready") for index in ready}
        ready = tuple(index for index, _, part in self._parts(context) if index in before and not part.has_timers())
        if ready:
            context.put("ready", ready)


def any_of(*triggers: Trigger) -> Trigger:
    """Fire when one of them does: any_of(event_time(), count(100)) fires early, and at the end."""
    return AnyOf(triggers)


def all_of(*triggers: Trigger) -> Trigger:
    """Fire when each of them has: all_of(event_time(), count(3)) leaves windows of fewer records out."""
    return AllOf(triggers)
