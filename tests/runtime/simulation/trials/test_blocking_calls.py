"""A coroutine that blocks is named: in a real job all others wait meanwhile, and here no time passes."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import time
from time import sleep
from typing import Any

import pytest

from understudy import KeyedOperator, Operator, StreamEnvironment, ValueState
from understudy.testing import assert_exactly_once


def _helper() -> None:
    sleep(0)


class Sleeping(KeyedOperator):
    async def process(self, record: Any, out: Any) -> None:
        _helper()
        out.collect(record)


class Connected(KeyedOperator):
    """Its database belongs to the thread of its loop."""

    async def open(self) -> None:
        self.db = sqlite3.connect(":memory:")

    async def process(self, record: Any, out: Any) -> None:
        out.collect(self.db.execute("SELECT ?", [record]).fetchone())


class Running(KeyedOperator):
    async def process(self, record: Any, out: Any) -> None:
        subprocess.run(["true"], check=True)  # noqa: ASYNC221 - that is the mistake
        out.collect(record)


class Waiting(KeyedOperator):
    """As it should be."""

    count = ValueState(int, default=0)

    async def process(self, record: Any, out: Any) -> None:
        await asyncio.sleep(0.01)
        await asyncio.to_thread(time.sleep, 0)
        await asyncio.to_thread(_helper)
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))


def _job(operator: type[Operator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(6)).key_by(lambda n: n % 2).process(operator, name="asks").collect(name="answers")
    return env


@pytest.mark.parametrize(
    ("operator", "method", "call"),
    [
        (Sleeping, "process", "time.sleep"),
        (Connected, "open", "sqlite3.connect"),
        (Connected, "process", "sqlite3's execute"),
        (Running, "process", "subprocess"),
    ],
)
def test_a_call_that_blocks_is_named_with_its_line(operator: type[Operator], method: str, call: str) -> None:
    with pytest.warns(RuntimeWarning, match="a coroutine blocks") as warned:
        survived = assert_exactly_once(lambda: _job(operator), histories=1)
    named = f"operator 'asks' in {method} calls {call}, which holds the event loop: {__file__}:"
    assert any(each.startswith(named) for each in survived.blocking), survived.blocking
    assert f"; a coroutine blocks (.blocking): {survived.blocking[0]}" in str(survived)
    assert named in str(warned[0].message)
    assert "asyncio.to_thread" in str(warned[0].message)
    assert warned[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_one_that_waits_or_asks_a_thread_is_not() -> None:
    assert assert_exactly_once(lambda: _job(Waiting), histories=1).blocking == []
