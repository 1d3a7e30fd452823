"""A method of a state, of `out` or of timers that is named without brackets is refused where the stream is built."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import InvalidOperator, KeyedOperator, StreamEnvironment, ValueState


class Clearing(KeyedOperator):
    seen = ValueState(int)

    def process(self, record: Any, out: Any) -> None:
        self.seen.clear  # noqa: B018 - the mistake


class Collecting(KeyedOperator):
    async def process(self, record: Any, out: Any) -> None:
        for _ in range(2):
            out.collect  # noqa: B018 - the mistake


class InsideAFunction(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        def later() -> None:
            self.timers.at_event_time  # noqa: B018 - the mistake

        later()

    def on_timer(self, timer: Any, out: Any) -> None: ...


class Calling(KeyedOperator):
    """A method may be handed over, kept, and named where it is the user's own."""

    seen = ValueState(int)

    def process(self, record: Any, out: Any) -> None:
        collect, record.total = out.collect, self.seen.clear
        collect(record)
        record.total()
        sorted([1], key=out.collect)
        self.seen.value() or out.collect(1)
        self.seen.update(1)
        record.update.total  # noqa: B018 - a property


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Clearing, "seen.clear"), (Collecting, "out.collect"), (InsideAFunction, "timers.at_event_time")],
)
def test_it_is_refused_with_its_line(kind: type[KeyedOperator], name: str) -> None:
    with pytest.raises(InvalidOperator, match=rf"test_uncalled_methods.py:\d+: {kind.__name__}.process names {name}, "):
        StreamEnvironment().from_collection([1]).key_by(0).process(kind)


def test_what_is_called_or_handed_over_is_not() -> None:
    StreamEnvironment().from_collection([1]).key_by(0).process(Calling)
