"""Operators that the tests run both ways. Each reads columns `key`, `n`, `f`, `b` and, if it passes it on, `name`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from understudy import KeyedOperator, ReducingState, ValueState


class Running(KeyedOperator):
    compiled = True
    seen = ValueState(tuple, default=(0, 0, 0))

    def process(self, record: Any, out: Any) -> None:
        value = record.n
        count, last, maximum = self.seen.value()
        count += 1
        if count == 1 or value > maximum:
            maximum = value
        self.seen.update((count, value, maximum))
        out.collect((self.key, count, value - last, maximum))


class Repeats(KeyedOperator):
    """From none to many records for one, and state that is cleared."""

    compiled = True
    left = ValueState(int)
    flips = ValueState(bool, default=False)

    def process(self, record: Any, out: Any) -> None:
        left = self.left.value()
        if left is None:
            left = abs(record.n) % 7
        self.flips.update(not self.flips.value())
        for step in range(left):
            if step == 5:
                break
            if step % 3 == 1:
                continue
            out.collect((step, record.name, self.flips.value() and record.b, self.key))
        if left == 0:
            self.left.clear()
        else:
            self.left.update(left - 1)


class Mean(NamedTuple):
    count: int
    total: float
    is_odd: bool


class Smoothed(KeyedOperator):
    """Floats, constants of the instance and of the class, methods, and a named tuple in state."""

    compiled = True
    FLOOR = -3.5
    mean = ValueState(Mean, default=Mean(0, 0.0, False))

    def __init__(self, weight: float = 0.5) -> None:
        super().__init__()
        self.weight = weight

    def process(self, record: Any, out: Any) -> None:
        held = self.mean.value()
        total = self.blended(held.total, max(record.f, self.FLOOR))
        if not math.isnan(total):
            self.mean.update(Mean(held.count + 1, total, not held.is_odd))
        out.collect(Mean(held.count, total, clipped(record.n) > held.count))

    def blended(self, old: float, new: float) -> float:
        return self.weight * new + (1 - self.weight) * old


def clipped(number: int, most: int = 5) -> int:
    return min(number, most)


class Divisions(KeyedOperator):
    """Floor division and remainder of negative numbers; it raises where `f` or `n` is zero."""

    compiled = True
    last = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        last = self.last.value()
        self.last.update(record.n)
        out.collect((last // record.n, last % record.n, last / record.n, last // record.f, record.f % record.n))


class Distinct(KeyedOperator):
    """The record itself is passed on."""

    compiled = True
    seen = ValueState(bool, default=False)

    def process(self, record: Any, out: Any) -> None:
        if not self.seen.value():
            self.seen.update(True)
            out.collect(record)


class Scalars(KeyedOperator):
    """Bare values are collected."""

    compiled = True
    total = ValueState(float, default=0.0)

    def process(self, record: Any, out: Any) -> None:
        total = self.total.value() + record.f
        self.total.update(total)
        if record.b:
            out.collect(total)
        out.collect(float(record.n))


class Caught(KeyedOperator):
    compiled = True

    def process(self, record: Any, out: Any) -> None:
        try:
            found = 100 // record.n
        except Exception:  # noqa: BLE001 - the widest is the only one that a compiled function has
            found = -1
        out.collect((found, record.n))


class Reduced(KeyedOperator):
    compiled = True
    least = ReducingState(float, min)
    sums = ReducingState(tuple[int, float], lambda held, added: (held[0] + added[0], held[1] - added[1]))

    def process(self, record: Any, out: Any) -> None:
        if record.n == 7:
            self.sums.clear()
        held = self.sums.get()
        before = 0 if held is None else held[0]
        self.sums.add((record.n, record.f))
        self.least.add(float(record.n))
        least = self.least.get()
        if least is not None:
            out.collect((before, least * 1.0))


EVERY = (Reduced, Running, Repeats, Smoothed, Divisions, Distinct, Scalars, Caught)
