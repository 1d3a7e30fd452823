"""Settings of coroutines that nothing would read are refused where the stream is built."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import AsyncSettings, Collector, InvalidOperator, KeyedOperator, Operator, StreamEnvironment


class Asking(Operator):
    async def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


class Slow(Asking):
    rate_per_second = 6.0


class SlowAndFew(Asking):
    max_in_flight = 8
    timeout_ms = 100


def build(operator: Any) -> None:
    StreamEnvironment().from_collection([1]).process(operator)


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        (
            Slow,
            r"Slow.rate_per_second: .*: write `async_settings = AsyncSettings\(rate_per_second=6.0\)`",
        ),
        (SlowAndFew, r"SlowAndFew.max_in_flight, timeout_ms: .*AsyncSettings\(max_in_flight=8, timeout_ms=100\)`"),
    ],
)
def test_a_setting_that_is_an_attribute_is_refused(operator: Any, says: str) -> None:
    with pytest.raises(InvalidOperator, match=says):
        build(operator)


def test_a_setting_beside_the_others_is_refused_with_all_of_them() -> None:
    class Both(Asking):
        async_settings = AsyncSettings(ordered=False)
        rate_per_second = 6.0

    with pytest.raises(InvalidOperator, match=r"add rate_per_second=6.0 to `async_settings`"):
        build(Both)


class Own(Asking):
    """These are the operator's own: one is not a setting's kind of value, one is set from outside."""

    def __init__(self, default: str) -> None:
        self.default = default

    def retry(self) -> None: ...


class ReadInside(Asking):
    max_in_flight = 8

    async def process(self, record: Any, out: Collector) -> None:
        out.collect(max(range(10), key=lambda number: number % self.max_in_flight))


class Plain(KeyedOperator):
    max_in_flight = 8

    def process(self, record: Any, out: Collector) -> None:
        out.collect(record)


def test_what_is_the_operators_own_stays() -> None:
    build(Own("x"))
    build(ReadInside)
    StreamEnvironment().from_collection([1]).key_by(lambda n: n).process(Plain)
