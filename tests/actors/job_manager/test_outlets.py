"""Outlets: readers whose file is gone while a newer attempt opens the outlet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pykka
import pytest

from understudy.actors.job_manager.outlets import ListOutlet, OutletListed, Outlets, ReadOverdue, SegmentsRead
from understudy.messages import (
    ExecutionAttemptId,
    JobId,
    OperatorId,
    OutletAnswer,
    OutletBranch,
    OutletCommitted,
    OutletOpened,
    OutletPart,
    ReadOutlet,
)
from understudy.state.errors import MissingState
from understudy.state.outlets.segments import Segment

JOB = JobId("job")
BRANCHES = (OutletBranch("0b", 1, "a7", 0),)
SEGMENTS = [Segment(0, 3, 30, 0, OutletBranch("0b", 1, "a7", 0))]


class Context:
    """What storage was asked for stays open; `answers` has the ways to say how each ended."""

    def __init__(self) -> None:
        self.answers: list[tuple[Callable[[Any], Any], Callable[[BaseException], Any]]] = []
        self.timers: list[tuple[float, Any]] = []
        self.asked: list[Any] = []

    def promise(self) -> pykka.Future[Any]:
        return pykka.ThreadingFuture()

    def run_blocking(self, work: Any, *_: Any) -> None:
        self.asked.append(work)

    def pipe_to_self(self, _: None, success: Any, failure: Any) -> None:
        self.answers.append((success, failure))

    def schedule(self, delay_ms: float, event: Any) -> None:
        self.timers.append((delay_ms, event.event))


@pytest.fixture
def context() -> Context:
    return Context()


@pytest.fixture
def outlets(context: Context) -> Outlets:
    storage: Any = None
    own: Any = context
    return Outlets(JOB, storage, own, lambda _: True, lambda: False, lambda name: name)


def opened(attempt: str) -> OutletOpened:
    return OutletOpened(JOB, ExecutionAttemptId(attempt), OperatorId("alerts"), "alerts", "folder", BRANCHES, 0, 3)


def test_a_reader_whose_file_is_gone_waits_until_the_newer_attempt_is_listed(
    outlets: Outlets, context: Context
) -> None:
    outlets.on(first := opened("first"))
    outlets.on(OutletListed(first, SEGMENTS))
    answer = outlets.read(ReadOutlet(JOB, "alerts", "", False, 1_000, 500))
    _, failed = context.answers[-1]
    outlets.on(second := opened("second"))

    overdue = failed(MissingState("folder/a")).event
    assert isinstance(overdue, SegmentsRead)
    outlets.on(overdue)
    ((wait_ms, event),) = context.timers
    assert (wait_ms, type(event)) == (500, ReadOverdue)

    outlets.on(OutletListed(second, SEGMENTS))
    succeeded, _ = context.answers[-1]
    outlets.on(succeeded((OutletPart(b"data", 3, "cursor"),)).event)
    assert answer.get(timeout=0) == OutletAnswer((OutletPart(b"data", 3, "cursor"),), "cursor", is_over=False)


def test_it_is_refused_where_the_outlet_is_listed(outlets: Outlets, context: Context) -> None:
    outlets.on(first := opened("first"))
    outlets.on(OutletListed(first, SEGMENTS))
    answer = outlets.read(ReadOutlet(JOB, "alerts", "", False, 1_000, 500))
    _, failed = context.answers[-1]
    outlets.on(failed(MissingState("folder/a")).event)
    refusal = answer.get(timeout=0).refusal
    assert refusal is not None
    assert "somebody has deleted it" in refusal.text


def committed(attempt: str, *spans: tuple[int, int]) -> OutletCommitted:
    branch = BRANCHES[0]
    names = [Segment(first, end, 30, 0, replace(branch, first=first)).name for first, end in spans]
    return OutletCommitted(JOB, ExecutionAttemptId(attempt), OperatorId("alerts"), tuple(names), 0)


def read_of(context: Context) -> list[tuple[int, int]]:
    """The segments that are read now."""
    return [(each.first, each.end) for each in context.asked[-1].args[3]]


def test_what_is_committed_before_the_outlet_is_listed_is_read_too(outlets: Outlets, context: Context) -> None:
    outlets.on(first := opened("first"))
    outlets.read(ReadOutlet(JOB, "alerts", "", False, 1_000, 500))
    outlets.on(committed("first", (3, 5)))
    outlets.on(OutletListed(first, SEGMENTS))
    assert read_of(context) == [(0, 3), (3, 5)]


def test_readers_do_not_jump_over_a_gap(outlets: Outlets, context: Context) -> None:
    outlets.on(first := opened("first"))
    outlets.on(OutletListed(first, SEGMENTS))
    outlets.on(committed("first", (4, 6), (6, 7)))
    outlets.read(ReadOutlet(JOB, "alerts", "", False, 1_000, 500))
    assert read_of(context) == [(0, 3)]


def test_an_outlet_that_could_not_be_listed_is_listed_again(outlets: Outlets, context: Context) -> None:
    """Storage was away just then."""
    outlets.on(first := opened("first"))
    outlets.read(ReadOutlet(JOB, "alerts", "", False, 1_000, 500))
    outlets.on(OutletListed(first, None, OSError("away")))
    (again,) = [event for _, event in context.timers if isinstance(event, ListOutlet)]
    outlets.on(again)
    succeeded, _ = context.answers[-1]
    outlets.on(succeeded(SEGMENTS).event)
    assert read_of(context) == [(0, 3)]
