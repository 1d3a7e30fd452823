"""A window function's methods are looked at where it is given to `process`, as those of an operator are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import InvalidOperator, ListState, ProcessWindowFunction, StreamEnvironment, ValueState, tumbling

Made = Callable[..., Any]


def of_flink(self: Any, key: Any, context: Any, records: Any, out: Any) -> None:
    out.collect((key, len(records)))


def without_window(self: Any, records: Any, out: Any) -> None:
    out.collect(len(records))


async def waits(self: Any, window: Any, records: Any, out: Any) -> None:
    out.collect(len(records))


def yields(self: Any, window: Any, records: Any, out: Any) -> Any:
    yield len(records)


def forgets(self: Any, window: Any, records: Any, out: Any) -> None:
    self.seen.get().append(len(records))


def replaces(self: Any, window: Any, records: Any, out: Any) -> None:
    self.fired = 1


def counts(self: Any, window: Any, records: Any, out: Any) -> None:
    self.fired.update(len(records))
    self.metrics = [each for each in records if each]
    out.collect((self.key, window.start))


async def opens(self: Any) -> None: ...


def function(**methods: Made) -> type[ProcessWindowFunction]:
    states = {"seen": ListState(int), "fired": ValueState(int, default=0)}
    return type("Function", (ProcessWindowFunction,), {"process": counts, **states, **methods})


def process(kind: type[ProcessWindowFunction]) -> None:
    stream = StreamEnvironment().from_collection([1]).key_by(lambda record: record)
    stream.window(tumbling(seconds=1)).process(kind)


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        ({"process": of_flink}, r"cannot be called with \(window, records, out\): .*`def process\(self, window, rec"),
        ({"process": without_window}, r"Function\.process cannot be called with \(window, records, out\)"),
        ({"process": waits}, r"Function\.process is `async def` .*: write a plain function here"),
        ({"process": yields}, r"Function\.process is a generator .*: write out\.collect\(x\) in place of `yield x`"),
        ({"open": opens}, r"Function\.open is `async def`"),
        ({"clear": lambda self: None}, r"Function\.clear cannot be called with \(window\)"),
        ({"process": forgets}, r"calls self\.seen\.get\(\)\.append\(\.\.\.\): .*Write self\.seen\.add\(item\)"),
        ({"process": replaces}, r"assigns to 'fired', which is a ValueState: .*Write self\.fired\.update\(value\)"),
    ],
)
def test_a_mistake_is_refused_where_the_stream_is_built(methods: dict[str, Made], told: str) -> None:
    with pytest.raises(InvalidOperator, match=told):
        process(function(**methods))


def test_a_right_one_is_taken_and_may_name_its_attributes_as_an_operator_may_not() -> None:
    process(function())
