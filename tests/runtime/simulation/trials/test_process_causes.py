"""What a process keeps beside its operators' attributes: caches, variables of helpers, files, output made in open."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import Collector, FileSink, KeyedOperator, Operator, StreamEnvironment, TwoPhaseCommitSink
from understudy.runtime.simulation.trials.repeated_commits import RepeatedCommits
from understudy.testing import KillProcess, TransactionalLog, assert_exactly_once

KILL = KillProcess(at_ms=3_300, who=0)


@functools.lru_cache
def _box(key: int) -> dict[str, int]:
    return {"count": 0}


@functools.cache
def _square(number: int) -> int:
    return number * number


class CountsInACache(KeyedOperator):
    """As a function of a module, its cache is not a part of the operator."""

    def process(self, record: int, out: Collector) -> None:
        box = _box(self.key)
        box["count"] += 1
        out.collect((record, box["count"]))


class Squares(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        out.collect(_square(record))


seen: set[int] = set()


def _is_new(record: int) -> bool:
    if record // 2 in seen:
        return False
    seen.add(record // 2)
    return True


class OncePerRun(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        if _is_new(record):
            out.collect(record)


class TellsThatItStarts(Operator):
    def open(self) -> None:
        TransactionalLog("starts").write(["started"])

    def process_batch(self, batch: Any, out: Collector) -> None:
        out.emit(batch)


def _counted_in_file(path: Path) -> Callable[[int], tuple[int, int]]:
    def counted(record: int) -> tuple[int, int]:
        try:
            with open(path) as file:
                count = int(file.read()) + 1
        except FileNotFoundError:
            count = 1
        path.write_text(str(count))
        return record, count

    return counted


def _job(kind: type[KeyedOperator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(30)).key_by(lambda number: 0).process(kind).collect(name="out")
    return env


def _told(env: StreamEnvironment) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(env, faults=[KILL], histories=5, task_managers=1)
    return str(caught.value)


def test_a_cache_of_a_function_ends_with_its_process_and_is_named() -> None:
    told = _told(_job(CountsInACache))
    assert told.startswith("exactly-once: sink 'out' has committed ")
    assert "Without faults and savepoints it commits what was wanted, so they matter." in told
    assert "Likely cause: _box remembers what it has returned (functools.lru_cache), in its process and in no" in told


def test_a_cache_of_what_its_arguments_decide_survives() -> None:
    assert_exactly_once(_job(Squares), faults=[KILL], histories=2, task_managers=1)


def test_what_earlier_runs_have_left_is_no_fault_and_a_helper_is_looked_into() -> None:
    told = _told(_job(OncePerRun))
    assert told.startswith("unrepeatable: two runs without faults gave two different outputs: sink 'out' has committed")
    assert "Likely cause: _is_new changes the set 'seen' of your program (" in told
    assert "FAULT" not in told


def test_output_that_is_made_in_open_is_named() -> None:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(30)).process(TellsThatItStarts, name="tell").collect(name="out")
    told = _told(env)
    assert "Likely cause: 'tell' made records of the log 'starts' visible in open, which is called again" in told


def test_a_file_that_a_function_opens_is_named(tmp_path: Path) -> None:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(30)).map(_counted_in_file(tmp_path / "count")).collect(name="out")
    told = _told(env)
    assert told.startswith("unrepeatable: ")
    assert "Likely cause: counted calls open (" in told
    assert "no restore takes back what is in it" in told


class Appends(TwoPhaseCommitSink[list[int]]):
    """Without a look at what is there."""

    def begin_transaction(self) -> list[int]:
        return []

    def write(self, transaction: list[int], batch: Any) -> None:
        transaction += batch

    def pre_commit(self, transaction: list[int]) -> None: ...

    def commit(self, transaction: list[int]) -> None:
        TransactionalLog("appended").write(transaction)

    def abort(self, transaction: list[int]) -> None: ...


class AppendsOnce(Appends):
    def commit(self, transaction: list[int]) -> None:
        there = TransactionalLog("appended").committed()
        TransactionalLog("appended").write([number for number in transaction if number not in there])


def _appending(sink: type[Appends]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
    env.from_collection(range(30)).sink_to(sink)
    return env


def test_a_commit_that_adds_each_time_it_is_called_is_named() -> None:
    told = _told(_appending(Appends))
    assert told.startswith("exactly-once: sink 'appended' has committed ")
    assert "Likely cause: sink 'appends-1' committed [" in told
    assert "twice. This happens whenever a failure falls between a commit and the next completed checkpoint" in told


def test_a_class_of_ours_that_somebody_derives_from_commits_as_before(tmp_path: Path) -> None:
    class Mine(FileSink):
        """Changes nothing."""

    sink = Mine(str(tmp_path))
    RepeatedCommits().look_at(sink)
    assert "commit" not in vars(sink)


def test_a_commit_that_looks_what_is_there_survives() -> None:
    assert_exactly_once(_appending(AppendsOnce), faults=[KILL], histories=2, task_managers=1)
