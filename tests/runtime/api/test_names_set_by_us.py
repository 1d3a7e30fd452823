"""What the runtime sets on an operator, a user's class must not define or assign to: it would be lost."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import Collector, InvalidOperator, KeyedOperator, Operator, StreamEnvironment, ValueState


class Keyed(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class SetsKey(Keyed):
    def __init__(self, key: str) -> None:
        self.key = key


class SetsTimers(Keyed):
    def open(self) -> None:
        self.timers = []  # type: ignore[assignment]


class AsyncContext(KeyedOperator):
    def __init__(self) -> None:
        self.context = {}  # type: ignore[assignment]

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class StateOfThatName(Keyed):
    timers = ValueState(int)  # type: ignore[assignment]


class DefinesIt(Keyed):
    watermark = 5


class Unkeyed(Operator):
    """It has no key of ours, no timers, and takes whole batches, so no time of a record."""

    def __init__(self) -> None:
        self.key, self.timers = "id", 3
        self.timestamp = "time_hour"  # type: ignore[assignment]

    def process_batch(self, batch: Any, out: Collector) -> None:
        out.emit(batch)


class EachTime(Operator):
    """Its records are taken one by one, so `timestamp` is each one's."""

    def __init__(self) -> None:
        self.timestamp = "time_hour"  # type: ignore[assignment]

    def process(self, record: Any, out: Collector) -> None:
        out.collect(record[self.timestamp])


class TimeOfItsOwn(Operator):
    timestamp = property(lambda self: 5)  # type: ignore[assignment]

    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class TimeOfACall(Operator):
    def __init__(self) -> None:
        self.timestamp = "time_hour"  # type: ignore[assignment]

    async def process_batch(self, batch: Any, out: Collector) -> None:
        out.emit(batch)


class KeyOfACall(Operator):
    def __init__(self) -> None:
        self.key = "id"

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Waiting(KeyedOperator):
    """What our bases set on its class is not its own."""

    def __init__(self) -> None:
        self.keyed = 1

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Annotated(Keyed):
    key: str


def keyed() -> Any:
    return StreamEnvironment().from_collection([{"k": 1}]).key_by("k")


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        (
            SetsKey("id"),
            r"\.py:\d+: SetsKey.__init__ assigns to 'key', which the runtime sets to the key of its record",
        ),
        (SetsTimers(), r"SetsTimers.open assigns to 'timers', .* Give it another name, such as my_timers$"),
        (AsyncContext(), r"AsyncContext.__init__ assigns to 'context', which the runtime sets to where it runs"),
        (StateOfThatName(), r"^StateOfThatName defines 'timers', which the runtime sets to the timers of its key"),
        (DefinesIt(), r"^DefinesIt defines 'watermark', which the runtime sets to how far event time has come"),
    ],
    ids=lambda it: type(it).__name__,
)
def test_a_name_that_the_runtime_sets_is_refused(operator: Operator, says: str) -> None:
    with pytest.raises(InvalidOperator, match=says):
        keyed().process(operator)


@pytest.mark.parametrize("operator", [Waiting(), Annotated()])
def test_what_is_not_assigned_is_fine(operator: KeyedOperator) -> None:
    assert keyed().process(operator) is not None


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        (
            EachTime(),
            r"EachTime.__init__ assigns to 'timestamp', .* sets to the event time of its record",
        ),
        (TimeOfItsOwn(), r"^TimeOfItsOwn defines 'timestamp', .* Give it another name, such as my_timestamp$"),
        (TimeOfACall(), r"TimeOfACall.__init__ assigns to 'timestamp', which the runtime sets to"),
        (KeyOfACall(), r"KeyOfACall.__init__ assigns to 'key', which the runtime sets to"),
    ],
    ids=lambda it: type(it).__name__,
)
def test_without_a_key_the_time_of_a_record_and_what_a_call_has_are_refused(operator: Operator, says: str) -> None:
    with pytest.raises(InvalidOperator, match=says):
        StreamEnvironment().from_collection([1]).process(operator)


def test_an_operator_without_a_key_may_have_one_of_its_own() -> None:
    assert StreamEnvironment().from_collection([1]).process(Unkeyed()) is not None
