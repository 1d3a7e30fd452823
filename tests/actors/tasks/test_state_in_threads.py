"""Keyed state belongs to the thread of its task: what another thread does with it fails the task."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from understudy import KeyedOperator, ValueState
from understudy.actors.errors import UserCodeError
from understudy.state.errors import CallIsOver
from understudy.testing import OperatorHarness


def in_a_thread(function: Callable[[], object]) -> list[BaseException]:
    """What it raises there."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except CallIsOver as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


LENT: list[Counting] = []
"""The operators that were opened, the newest last."""


class Counting(KeyedOperator):
    count = ValueState(int, default=0)

    def open(self) -> None:
        LENT.append(self)

    def process(self, record: Any, out: Any) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))

    def on_timer(self, timer: Any, out: Any) -> None: ...

    def go_through(self) -> None:
        for _ in self.keys():
            self.count.clear()

    def write(self) -> None:
        self.count.update(7)

    def set_a_timer(self) -> None:
        self.timers.at_processing_time(5)


class Waiting(Counting):
    def process(self, record: Any, out: Any) -> None:
        in_a_thread(self.write)
        out.collect((self.key, self.count.value()))


class Telling(KeyedOperator):
    count = ValueState(int, default=0)

    async def process(self, record: Any, out: Any) -> None:
        self.count.update(self.count.value() + 1)

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect((key, self.count.value()))


@pytest.mark.parametrize(
    ("does", "used"),
    [
        (Counting.go_through, "self.keys()"),
        (Counting.write, "keyed state 'count'"),
        (Counting.set_a_timer, "self.timers"),
    ],
)
def test_the_task_fails_with_what_a_thread_has_tried(does: Callable[[Counting], None], used: str) -> None:
    with OperatorHarness(Counting(), key_by="k") as harness:
        harness.process([{"k": "a"}])
        (error,) = in_a_thread(lambda: does(LENT[-1]))
        assert f"{used} was used by another thread than that of its task" in str(error)
        with pytest.raises(UserCodeError) as failed:
            harness.process([{"k": "a"}])
        assert failed.value.__cause__ is error


def test_a_thread_that_process_waits_for_sees_its_state() -> None:
    with OperatorHarness(Waiting(), key_by="k") as harness:
        harness.process([{"k": "a"}])
        assert harness.output() == [("a", 7)]


def test_coroutines_are_not_bound_to_a_thread() -> None:
    with OperatorHarness(Telling(), key_by="k") as harness:
        harness.process([{"k": "a"}, {"k": "b"}])
        harness.end()
        assert sorted(harness.output()) == [("a", 1), ("b", 1)]
