"""What an assertion is given by mistake is refused, so that no test passes which compares nothing."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import Source, StreamEnvironment
from understudy.testing import KillProcess, Rescale, Unfit, assert_exactly_once


def _job(interval_ms: int = 1_000) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=interval_ms)
    env.from_collection(range(10)).collect(name="numbers")
    return env


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        (42, r"wanted a StreamEnvironment, or a function that returns one; found 42"),
        (
            StreamEnvironment().from_collection([1]).collect(name="out"),
            r"wanted a StreamEnvironment, or a function .*; found <the end of a stream in sink 'out'",
        ),
    ],
)
def test_what_is_no_job_is_refused(job: Any, problem: str) -> None:
    with pytest.raises(Unfit, match=f"assert_exactly_once: {problem}"):
        assert_exactly_once(job)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"histories": 0}, "histories: wanted a number from 1, found 0"),
        ({"histories": -5}, "histories: wanted a number from 1, found -5"),
        ({"histories": "10"}, "histories: wanted a number from 1, found '10'"),
        ({"first_seed": -1}, "first_seed: wanted a number from 0, found -1"),
        ({"histories": None, "minutes": 0}, "minutes: wanted a number above 0, as minutes=0.5, found 0"),
        ({"histories": None, "minutes": "2"}, "minutes: wanted a number above 0, as minutes=0.5, found '2'"),
        ({"minutes": 2}, "histories says how many, and minutes takes as many as fit: leave out one or the other"),
        ({"faults": KillProcess(1.0, 0)}, r"faults: wanted a list of them, as in \[KillProcess\(at_ms=1.0, who=0\)\]"),
        ({"faults": "kill"}, "faults: wanted a list, found 'kill'"),
        ({"faults": ["kill"]}, "faults: wanted objects of understudy.testing, found 'kill'"),
        ({"faults": [KillProcess]}, r"faults: wanted objects of understudy.testing, as KillProcess\(at_ms=...\)"),
        ({"actions": [KillProcess(1.0, 0)]}, r"actions: wanted Rescale\(at_ms, parallelism\), found KillProcess"),
        ({"expected": 5}, "expected: wanted records, a dictionary of records by sink, or a function"),
        ({"expected": "0123456789"}, "expected: wanted records"),
        ({"expected": {"number": []}}, "expected: there is no sink 'number' that can be compared; there is 'numbers'"),
        (
            {"faults": [KillProcess(2_000, 7)]},
            r"faults: none of them has happened, in any history: KillProcess\(.*who=7",
        ),
        ({"faults": [KillProcess(900_000, 0)]}, r"none of them has happened, .*Without faults the job lasts \d+ ms"),
    ],
)
def test_an_option_that_makes_a_test_meaningless_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(Unfit, match=problem):
        assert_exactly_once(_job, **{"histories": 1, **options})


def test_a_rescale_is_no_list_of_rescales() -> None:
    with pytest.raises(Unfit, match=r"actions: wanted a list of them, as in \[Rescale\("):
        assert_exactly_once(_job, actions=Rescale(2_000.0, 2))  # type: ignore[arg-type]


def test_a_sink_to_which_nothing_comes_is_named() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        numbers = env.from_collection(range(10))
        numbers.collect(name="numbers")
        numbers.filter(lambda number: number > 99).collect(name="large")
        return env

    survived = assert_exactly_once(build, histories=1)
    assert survived.empty == ["large"]
    assert "; nothing comes to sink 'large'" in str(survived)


def test_checkpoints_that_are_far_apart_are_taken_more_often() -> None:
    survived = assert_exactly_once(lambda: _job(interval_ms=600_000), histories=2)
    assert survived.checkpoints > 8


class Silent(Source):
    def poll(self) -> None:
        return None

    def offset(self) -> int:
        return 0

    def seek(self, offset: int) -> None:
        pass


def test_a_source_that_never_ends_is_asked_for_its_end() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=60_000)
        env.from_source(Silent).collect(name="numbers")
        return env

    with pytest.raises(AssertionError, match=r"the job has not ended by .*: does a source never return END\?"):
        assert_exactly_once(build, histories=1)


def test_a_reader_of_the_outside_that_raises_is_named() -> None:
    with pytest.raises(AssertionError, match="outside: 'table' cannot be read: ZeroDivisionError: division by zero"):
        assert_exactly_once(_job, histories=1, outside={"table": lambda: [1 / 0]})
