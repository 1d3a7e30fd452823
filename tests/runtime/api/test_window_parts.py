"""Assigners, triggers, evictors, aggregates and watermark generators of a program's own are looked at where it gives
them: what nothing would call is refused, with what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    AggregateFunction,
    Evictor,
    InvalidOperator,
    KeyedStream,
    StreamEnvironment,
    Trigger,
    TriggerResult,
    WatermarkGenerator,
    WindowAssigner,
    any_of,
    event_time,
    tumbling,
)
from understudy.actors.windows.evictors import LastRecords
from understudy.actors.windows.triggers import CountTrigger


def nothing(*_: Any) -> None: ...


def one(*_: Any) -> int:
    return 1


def generates(self: Any, *_: Any) -> Any:
    yield 1


def of_two(self: Any, first: Any, second: Any) -> Any: ...


def swapped(self: Any, value: Any, accumulator: Any) -> Any: ...


def made(base: type, **methods: Callable[..., Any]) -> Any:
    return type("Own", (base,), methods)()


def keyed() -> KeyedStream:
    return StreamEnvironment().from_collection([{"k": 1, "at": 5}]).key_by("k")


def use(part: Any) -> None:
    windows = keyed().window(part if isinstance(part, WindowAssigner) else tumbling(minutes=1))
    if isinstance(part, Trigger):
        windows.trigger(any_of(event_time(), part))
    elif isinstance(part, Evictor):
        windows.evictor(part)
    elif isinstance(part, AggregateFunction):
        windows.aggregate(part)
    elif not isinstance(part, WindowAssigner):
        keyed().assign_timestamps("at", type("Strategy", (), {"generator": lambda self: part})())


@pytest.mark.parametrize(
    ("base", "methods", "said"),
    [
        (
            Evictor,
            {"evict_before": one},
            "Own.evict_before is called by nothing: write `def before(self, records, window)`",
        ),
        (Evictor, {"before": one, "evictAfter": one}, "write `def after(self, records, window)`"),
        (Evictor, {}, "does not define `def before(self, records, window)` and `def after(self, records, window)`"),
        (Trigger, {"onElement": one}, "write `def on_record(self, record, timestamp_ms, window, context)`"),
        (
            Trigger,
            {"on_record": one, "onEventTime": one},
            "Own.onEventTime is called by nothing: write `def on_event_time(self, time_ms, window, context)`",
        ),
        (Trigger, {}, "does not define `def on_record(self, record, timestamp_ms, window, context)`"),
        (Trigger, {"on_record": of_two}, "Own.on_record cannot be called with (record, timestamp_ms, window, context)"),
        (Trigger, {"on_record": generates}, "is a generator"),
        (
            AggregateFunction,
            {"create_accumulator": one, "add": one, "getResult": one},
            "Own.getResult is called by nothing: write `def get_result(self, accumulator)`",
        ),
        (
            AggregateFunction,
            {"create_accumulator": one, "add": swapped},
            "Own.add is called with (accumulator, record), and takes (value, accumulator): the other way round",
        ),
        (AggregateFunction, {"create_accumulator": one}, "does not define `def add(self, accumulator, record)`"),
        (WindowAssigner, {"assign_windows": one}, "write `def assign(self, record, time_ms)`"),
        (WatermarkGenerator, {"on_event": one}, "write `def on_batch(self, times, records)`"),
        (object, {"on_batch": one}, "does not define `def restore(self, watermark_ms)`"),
    ],
)
def test_what_nothing_would_call_is_refused(base: type, methods: dict[str, Callable[..., Any]], said: str) -> None:
    with pytest.raises(InvalidOperator, match=re.escape(said)):
        use(made(base, **methods))


@pytest.mark.parametrize(
    ("base", "methods"),
    [
        (Evictor, {"after": one}),
        (Trigger, {"on_record": one, "clear": nothing}),
        (AggregateFunction, {"create_accumulator": one, "add": one}),
        (WindowAssigner, {"assign": one}),
        (WatermarkGenerator, {"on_batch": one, "restore": nothing}),
        (object, {"on_batch": one, "restore": nothing}),
    ],
)
def test_what_is_called_may_be_all_there_is(base: type, methods: dict[str, Callable[..., Any]]) -> None:
    use(made(base, **methods))


def test_a_method_of_its_own_may_have_the_name_of_anothers_hook() -> None:
    class Early(Trigger):
        def on_record(self, record: Any, timestamp_ms: Any, window: Any, context: Any) -> TriggerResult:
            return self.on_timer()

        def on_timer(self) -> TriggerResult:
            return TriggerResult.FIRE

    use(Early())


def test_what_one_of_ours_defines_is_there() -> None:
    class Counted(CountTrigger):
        def clear(self, window: Any, context: Any) -> None:
            super().clear(window, context)

    class Newest(LastRecords):
        """It counts as it does."""

    use(Counted(3))
    use(Newest(2))
