"""What depends on the hash seed of a process is found, although all simulated processes share one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ClassVar

import pytest

from understudy import Operator, Source, StreamEnvironment
from understudy.actors.operators.source import END
from understudy.runtime.simulation.trials import hash_seeds
from understudy.runtime.simulation.trials.hash_seeds import HashSeeds
from understudy.runtime.simulation.trials.other_interpreter import CalmAnswer, CalmRun, OtherInterpreter
from understudy.testing import assert_exactly_once

WORDS = ["ann", "bob", "cyd", "dan", "eve", "fay"]


def _job(function: Callable[[str], Any]) -> Callable[[], StreamEnvironment]:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        env.from_collection(WORDS).map(function).collect(name="out")
        return env

    return build


@pytest.mark.processes
@pytest.mark.parametrize(
    "function",
    [hash, lambda word: list({f"{word} {number}" for number in range(8)})],
    ids=["hash of a text", "order of a set"],
)
def test_an_output_that_depends_on_the_hash_seed_is_found(function: Callable[[str], Any]) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_job(function), histories=2)
    told = str(caught.value)
    assert told.startswith("hash-seed: the output depends on the hash seed: sink 'out' has committed ")
    assert "Use zlib.crc32(text.encode()) instead of hash(text)" in told
    assert "    assert_exactly_once(build)" in told


@pytest.mark.processes
def test_what_does_not_depend_on_it_is_compared_and_survives() -> None:
    survived = assert_exactly_once(_job(lambda word: (len({word, "x"}), hash(len(word)))), histories=2)
    assert survived.not_compared == ""


@pytest.mark.processes
def test_an_output_that_depends_on_the_process_is_not_called_one_of_hashes() -> None:
    with pytest.raises(AssertionError, match=r"^unrepeatable: two processes gave two different outputs: sink 'out'"):
        assert_exactly_once(_job(lambda word: (word, os.getpid())), histories=2)


class Shared(Source):
    """Reads from a list that only the test's own process has filled."""

    records: ClassVar[list[str]] = []

    def open(self) -> None:
        self.next = 0

    def poll(self) -> Any:
        self.next += 1
        return [Shared.records[self.next - 1]] if self.next <= len(Shared.records) else END

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        self.next = offset


@pytest.mark.processes
def test_what_only_the_test_s_own_process_holds_is_no_mistake() -> None:
    def build() -> StreamEnvironment:
        Shared.records = list(WORDS)
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        env.from_source(Shared).collect(name="out")
        return env

    survived = assert_exactly_once(build, histories=2)
    assert survived.not_compared == "in another process the job commits something else, whatever the hash seed"
    assert str(survived).endswith(f" time zone (.not_compared): {survived.not_compared}")


class Unknown(Operator):
    """Cannot be unpickled in another process."""

    def __setstate__(self, state: Any) -> None:
        if os.getpid() != state["pid"]:
            raise RuntimeError("not here")

    def __getstate__(self) -> Any:
        return {"pid": os.getpid()}

    def process_batch(self, batch: Any, out: Any) -> None:
        out.emit(batch)


@pytest.mark.processes
def test_a_job_that_another_process_cannot_run_is_not_compared_and_that_is_said() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        env.from_collection(WORDS).process(Unknown()).collect(name="out")
        return env

    survived = assert_exactly_once(build, histories=2)
    assert "not here" in survived.not_compared


@pytest.mark.processes
def test_an_interpreter_that_has_ended_answers_that_it_has() -> None:
    interpreter = OtherInterpreter(1)
    interpreter.close()
    answer = interpreter.ask(CalmRun((), b"", 1, 1, {}, 0.0)).result(60)
    assert answer.problem
    assert not interpreter.is_alive
    assert interpreter._process.stdin is not None
    assert interpreter._process.stdout is not None
    assert interpreter._process.stdin.closed, "the pipe is left to the garbage collector"
    assert interpreter._process.stdout.closed


class Unlike:
    """An interpreter that always commits the same, and something else than this one."""

    def __init__(self, seed: int, *, is_elsewhere: bool = True) -> None:
        self.made.append(seed)

    made: ClassVar[list[int]] = []

    def ask(self, run: object) -> Future[CalmAnswer]:
        answer: Future[CalmAnswer] = Future()
        answer.set_result(CalmAnswer({"out": Counter(["there"])}, ""))
        return answer

    def close(self) -> None:
        pass


def test_other_processes_are_asked_once_however_often_their_answer_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_seeds, "kept_interpreter", Unlike)
    monkeypatch.setattr(hash_seeds, "OtherInterpreter", Unlike)
    seeds = HashSeeds(CalmRun.__new__(CalmRun), {"out": Counter(["here"])}, ["out"])
    assert seeds.problem is None
    made = len(Unlike.made)
    assert made > 3, "where they differ, more are asked"
    assert seeds.problem is None
    assert len(Unlike.made) == made
