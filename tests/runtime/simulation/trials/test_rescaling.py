"""Trials go on from savepoints with another parallelism: mistakes in it are found, what cannot be rescaled is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from understudy import CannotRescale, KeyedOperator, Operator, OperatorListState, Source, StreamEnvironment, ValueState
from understudy.actors.operators.source import END
from understudy.runtime.simulation.trials.job_trial import JobTrial
from understudy.runtime.simulation.trials.parallelisms import candidates
from understudy.runtime.simulation.trials.tried import try_once
from understudy.testing import (
    KillAtOperation,
    KillProcess,
    Rescale,
    SimulatedCluster,
    SlowStorage,
    Unfit,
    assert_exactly_once,
)

pytestmark = pytest.mark.every_run

NUMBERS = range(37)


class Careful(Source):
    """Each subtask holds the numbers that it has still to emit."""

    def open(self) -> None:
        self.left = list(NUMBERS)[self.context.subtask_index :: self.context.parallelism]

    def poll(self) -> Any:
        return [self.left.pop(0)] if self.left else END

    def offset(self) -> list[int]:
        return self.left

    def seek(self, offset: list[int]) -> None:
        self.left = list(offset)

    def rescale(self, offsets: Sequence[list[int]]) -> None:
        left = sorted(number for offset in offsets for number in offset)
        self.left = left[self.context.subtask_index :: self.context.parallelism]


class Rounding(Careful):
    """Deals out equal shares, and forgets what is left over."""

    def rescale(self, offsets: Sequence[list[int]]) -> None:
        left = sorted(number for offset in offsets for number in offset)
        share = len(left) // self.context.parallelism
        self.left = left[self.context.subtask_index * share :][:share]


class Holding(Operator):
    """Keeps all until the end of its data: in state, one list for each subtask."""

    held = OperatorListState(list[int])

    def open(self) -> None:
        self.kept = [number for part in self.held.get() for number in part]

    def process_batch(self, batch: Any, out: Any) -> None:
        self.kept += batch

    def on_checkpoint(self, checkpoint_id: int) -> None:
        self.held.update([self.kept])

    def on_end(self, out: Any) -> None:
        for number in self.kept:
            out.collect(number)
        self.kept = []


class HoldingOne(Holding):
    """Takes it that there is one list, as there was for each subtask before."""

    def open(self) -> None:
        self.kept = (self.held.get() or [[]])[0]


class Counting(KeyedOperator):
    """How many there were of a key, with each."""

    count = ValueState(int, default=0)

    def process(self, record: int, out: Any) -> None:
        self.count.update(self.count.value() + 1)
        out.collect((self.key, self.count.value()))


class Forgetful(KeyedOperator):
    """The same, in an attribute."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def process(self, record: int, out: Any) -> None:
        self.counts[self.key] = self.counts.get(self.key, 0) + 1
        out.collect((self.key, self.counts[self.key]))


def _source(source: type[Source]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    env.from_source(source, name="numbers").collect(name="out")
    return env


def _operator(operator: type[Operator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    env.from_source(Careful, name="numbers").rebalance().process(operator).collect(name="out")
    return env


def _keyed(operator: type[KeyedOperator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    env.from_source(Careful, name="numbers").key_by(lambda number: number % 5).process(operator).collect(name="out")
    return env


BUGS = [(_source, Rounding), (_operator, HoldingOne), (_keyed, Forgetful)]
MENDED = [(_source, Careful), (_operator, Holding), (_keyed, Counting)]
IDS = ["source", "list", "attribute"]


@pytest.mark.drawn
@pytest.mark.parametrize(("build", "buggy"), BUGS, ids=IDS)
def test_what_is_lost_in_a_rescale_is_found_without_any_fault(build: Any, buggy: Any) -> None:
    actions = [Rescale(at_ms=2_500, parallelism=1), Rescale(at_ms=4_500, parallelism=3)]
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(lambda: build(buggy), faults=[], actions=actions, histories=10)
    told = str(caught.value)
    assert told.startswith("exactly-once: sink 'out' has committed ")
    assert "The job was ended with a savepoint, and went on from there." in told
    assert "Rescale(at_ms=" in told
    assert ", faults=faults, actions=actions)" in told
    assert "asks: rescale (" in told


@pytest.mark.drawn
@pytest.mark.parametrize(("build", "buggy"), BUGS, ids=IDS)
def test_it_is_found_by_the_histories_that_are_drawn(build: Any, buggy: Any) -> None:
    with pytest.raises(AssertionError, match=r"^exactly-once: sink 'out' has committed "):
        assert_exactly_once(lambda: build(buggy), histories=100)


@pytest.mark.drawn
@pytest.mark.parametrize(("build", "mended"), MENDED, ids=IDS)
def test_a_job_that_can_be_rescaled_survives_it(build: Any, mended: Any) -> None:
    survived = assert_exactly_once(lambda: build(mended), histories=20)
    assert survived.rescales >= 3
    assert survived.kept == []
    assert f" {survived.rescales} rescales, " in str(survived)


class Fixed(Careful):
    """Says nothing about rescaling."""

    rescale = Source.rescale


class Unwilling(Careful):
    """Finds out when it is asked."""

    def rescale(self, offsets: Sequence[list[int]]) -> None:
        raise CannotRescale("these numbers belong together")


def test_a_source_without_rescale_keeps_its_parallelism_and_the_operators_behind_it_do_not() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
        numbers = env.from_source(Fixed, name="numbers")
        numbers.key_by(lambda number: number % 5).process(Counting).collect(name="out")
        return env

    survived = assert_exactly_once(build, faults=[], actions=[Rescale(4_000, 3)], histories=3)
    assert survived.rescales == 3
    assert survived.kept == ["source 'numbers' (Fixed) does not define rescale"]


def test_a_source_that_refuses_gets_the_parallelism_that_it_had() -> None:
    survived = assert_exactly_once(lambda: _source(Unwilling), faults=[], actions=[Rescale(4_000, 3)], histories=2)
    assert len(survived.kept) == 1
    assert survived.kept[0].startswith("parallelism 3 was refused, so the job kept the one that it had: ")
    assert "these numbers belong together" in survived.kept[0]


class Everything(Careful):
    """Each subtask emits all numbers: right with one, and with no other number of subtasks."""

    def open(self) -> None:
        self.left = list(NUMBERS)


def test_a_job_that_commits_something_else_in_another_parallelism_is_not_rescaled_to_it() -> None:
    survived = assert_exactly_once(lambda: _source(Everything), faults=[], actions=[Rescale(4_000, 3)], histories=1)
    assert len(survived.kept) == 1
    assert survived.kept[0].startswith(
        "parallelism 3, in which it goes wrong without faults and savepoints: exactly-on"
    )


@pytest.mark.parametrize("cancel", [False, True])
def test_what_sinks_had_prepared_is_committed_once_by_both_jobs_together(cancel: bool) -> None:
    faults, actions = [KillProcess(at_ms=2_000, who=0)], [Rescale(3_100, 1, cancel), Rescale(5_100, 3, cancel)]
    survived = assert_exactly_once(lambda: _source(Careful), faults=faults, actions=actions, histories=5)
    assert survived.rescales == 10


def test_another_action_is_refused() -> None:
    with pytest.raises(Unfit, match=r"actions: wanted Rescale\(at_ms, parallelism\), found KillProcess"):
        assert_exactly_once(lambda: _source(Careful), actions=[KillProcess(1_000, 0)], histories=1)  # type: ignore[list-item]


def test_parallelisms_are_fewer_and_more_within_the_limit() -> None:
    assert candidates(1, 128) == (2, 3)
    assert candidates(2, 128) == (1, 3)
    assert candidates(4, 4) == (1, 3)
    assert candidates(1, 1) == ()


def _few(parallelism: int) -> StreamEnvironment:
    """A job whose subtasks have more or fewer batches in another parallelism."""
    env = StreamEnvironment(parallelism=parallelism, checkpoint_interval_ms=1_000)
    env.generate(lambda index: index, 40).collect(name="out")
    return env


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_lasts_as_long_in_each_parallelism(parallelism: int) -> None:
    trial = JobTrial(_few(2), slots_per_task_manager=2)
    job = trial._paced.job(parallelism, 1)
    with SimulatedCluster(2, 2) as cluster:
        tried = try_once(cluster, lambda *_: job, 60_000.0, lambda *_: ())
    assert tried.virtual_ms == pytest.approx(trial.reference.virtual_ms, rel=0.15)


def test_what_a_dying_process_has_begun_stays_with_its_cancelled_job() -> None:
    """Hidden files where records are collected: each job has a folder of its own there, and nobody follows."""

    def numbers() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=500)
        rows = [{"key": number % 5, "number": number} for number in range(40)]
        env.from_collection(rows).key_by("key").deduplicate("last").collect(name="out")
        return env

    faults = (
        SlowStorage(at_ms=1000.0, for_ms=2800.0, extra_ms=657.0),
        KillAtOperation(at_ms=3820.0, who=1, operations=8),
    )
    actions = (Rescale(at_ms=3029.5, parallelism=3, cancel=True),)
    assert_exactly_once(numbers, first_seed=5065, histories=1, faults=faults, actions=actions)
