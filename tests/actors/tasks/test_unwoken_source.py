"""A source that returns None, says no time and wakes nobody is not left asleep, and the log says what it lacks."""

from __future__ import annotations

import logging
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from understudy import END, LocalCluster, OperatorContext, Source, StreamEnvironment
from understudy.actors.tasks.unwoken_source import LOOK_MS, UnwokenSource
from understudy.testing import SimulatedCluster


class Queued(Source):
    """Every other poll finds nothing."""

    def open(self) -> None:
        self.polls, self.next = 0, 0

    def poll(self) -> Any:
        self.polls += 1
        if self.polls % 2:
            return None
        self.next += 1
        return END if self.next > 5 else [self.next]

    def offset(self) -> Any:
        return self.next

    def seek(self, offset: Any) -> None:
        self.next = offset


class Waking(Queued):
    def poll(self) -> Any:
        self.context.wake()
        return super().poll()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "understudy.source"]


def run(kind: type[Source], cluster: Any) -> list[Any]:
    env = StreamEnvironment(parallelism=1)
    env.from_source(kind, name="queued").collect(name="numbers")
    with cluster:
        job = cluster.submit(env)
        job.wait(timeout=60)
        return list(job.results("numbers"))


def test_the_job_ends_and_the_log_says_why_it_was_slow(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert run(Queued, SimulatedCluster(1, seed=1)) == [1, 2, 3, 4, 5]
    (text,) = said(caplog)
    assert text.startswith("source 'queued': poll returned None, and had records when it was called next")
    assert "Queued calls no self.context.wake() and defines no poll_delay_ms()" in text


def test_one_that_wakes_its_task_is_trusted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert run(Waking, LocalCluster(debug=True)) == [1, 2, 3, 4, 5]
    assert said(caplog) == []


def test_from_its_first_wake_on_it_is_left_asleep() -> None:
    source, woken = Queued(), deque[None]()
    source.context = _context(lambda: woken.append(None))
    watched = UnwokenSource(source)
    assert watched.delay_ms() == LOOK_MS
    source.context.wake()
    assert len(woken) == 1
    assert watched.delay_ms() is None


def _context(wake: Any) -> OperatorContext:
    fields = dict.fromkeys(OperatorContext.__dataclass_fields__)
    return OperatorContext(**{**fields, "wake": wake, "clock": SimpleNamespace()})  # type: ignore[arg-type]
