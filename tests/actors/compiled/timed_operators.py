"""Operators with timers that the tests run both ways. Each reads columns `key` and `n`, and event times."""

from __future__ import annotations

from typing import Any

from understudy import KeyedOperator, ReducingState, ValueState


class Sessions(KeyedOperator):
    """The timer moves with each record: `delete` what `at_event_time` returned earlier, by its time."""

    compiled = True
    session = ValueState(tuple, default=(0, 0, 0))

    def process(self, record: Any, out: Any) -> None:
        count, total, ends = self.session.value()
        if count:
            self.timers.delete_event_time(ends)
        ends = max(ends, self.timestamp + 5)
        self.timers.at_event_time(ends)
        self.session.update((count + 1, total + record.n, ends))

    def on_timer(self, timer: Any, out: Any) -> None:
        count, total, ends = self.session.value()
        out.collect((self.key, count, total, ends - timer.time_ms, self.timestamp, self.watermark >= timer.time_ms))
        self.session.clear()


class Chains(KeyedOperator):
    """Timers that register and delete others of their key, at once due or later."""

    compiled = True
    left = ValueState(int, default=0)
    sum = ReducingState(int, lambda held, added: held + added)

    def process(self, record: Any, out: Any) -> None:
        self.left.update(abs(record.n) % 5)
        for step in range(abs(record.n) % 4):
            timer = self.timers.at_event_time(self.timestamp + 3 * step)
            if step == 2:
                self.timers.delete(timer)
        out.collect((self.key, record.n, 0.5))

    def on_timer(self, timer: Any, out: Any) -> None:
        left = self.left.value()
        self.sum.add(timer.time_ms)
        if left > 0:
            self.left.update(left - 1)
            self.timers.at_event_time(timer.time_ms + left % 3)
            self.timers.at_event_time(timer.time_ms + 7)
        elif timer.time_ms % 2 == 0:
            self.timers.delete_event_time(timer.time_ms + 3)
            self.timers.delete(timer)
        out.collect((self.key, left, timer.time_ms))


class Ticks(KeyedOperator):
    """One timer per key and 10 ms, which most records find registered; it is set again as long as there are records."""

    compiled = True
    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        self.timers.at_event_time(self.timestamp - self.timestamp % 10 + 9)

    def on_timer(self, timer: Any, out: Any) -> None:
        seen = self.seen.value()
        if seen:
            self.timers.at_event_time(timer.time_ms + 10)
        self.seen.clear()
        out.collect(seen)


EVERY = (Sessions, Chains, Ticks)
