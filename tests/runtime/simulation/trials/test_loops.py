"""Loops are exact under failures and rescales: in a stream, in rounds, and of a solution that improves. A mistake in
what a checkpoint holds of them is found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    StreamEnvironment,
)
from understudy.actors.operators import loops
from understudy.actors.operators.loops import LoopHead, LoopTail, RoundsHead
from understudy.actors.tasks.task_rounds import TaskRounds
from understudy.testing import SimulatedCluster, assert_exactly_once

from .loop_jobs import JOBS, in_a_stream, in_rounds, of_a_solution

pytestmark = pytest.mark.every_run


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_each_record_goes_round_exactly_once(job: Callable[[], StreamEnvironment]) -> None:
    assert_exactly_once(job, histories=5)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
@pytest.mark.slow
def test_in_many_histories(job: Callable[[], StreamEnvironment]) -> None:
    assert_exactly_once(job, histories=500)


def test_the_solution_is_that_of_one_process() -> None:
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(of_a_solution())
        job.wait()
        assert sorted(job.results("out")) == [(vertex, 1 if vertex < 7 else 7) for vertex in range(1, 13)]


def test_much_that_is_on_its_way_back_at_checkpoints_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It waits in memory beyond any limit of buffers."""

    def said() -> list[str]:
        return [each for each in caplog.messages if "are on their way back" in each]

    with SimulatedCluster(task_managers=2) as cluster:
        cluster.submit(in_a_stream()).wait()
    assert said() == []
    monkeypatch.setattr(loops, "MUCH_IN_LOOP_BYTES", 1)
    with SimulatedCluster(task_managers=2) as cluster:
        job = cluster.submit(in_a_stream(4_000))
        job.wait()
        assert job.details().completed_checkpoints > 1
    heads = sorted(text.partition(",")[0] for text in said())
    assert heads
    assert heads == sorted(set(heads)), "once for each subtask"
    assert all(each.startswith("loop ") for each in heads)


def _forgets_what_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LoopHead, "take_in_loop", lambda self: [])


def _forgets_what_it_has_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RoundsHead, "on_checkpoint", lambda self, checkpoint_id: self._round.update([self.number]))


def _forgets_its_round(patch: pytest.MonkeyPatch) -> None:
    right = RoundsHead.on_checkpoint

    def wrong(self: Any, checkpoint_id: Any) -> None:
        right(self, checkpoint_id)
        self._round.update([1])

    patch.setattr(RoundsHead, "on_checkpoint", wrong)


def _forgets_its_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LoopTail, "on_checkpoint", lambda self, checkpoint_id: None)


def _goes_by_the_first_mark(patch: pytest.MonkeyPatch) -> None:
    """A round is over when one tail says so."""

    def wrong(self: Any) -> Any:
        number = max(self._come.values())
        if not self._passed < number < 2**62:
            return None
        self._passed = number
        return self._sums[number]

    patch.setattr(TaskRounds, "_look", wrong)


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("mistake", "job"),
    [
        (_forgets_what_is_under_way, in_a_stream),
        (_forgets_what_it_has_kept, in_rounds),
        (_forgets_its_round, in_rounds),
        (_forgets_its_count, in_rounds),
        (_goes_by_the_first_mark, in_rounds),
    ],
    ids=lambda each: each.__name__.strip("_"),
)
def test_a_mistake_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None],
    job: Callable[[], StreamEnvironment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistake(monkeypatch)
    with pytest.raises(AssertionError):
        assert_exactly_once(job, histories=300)
