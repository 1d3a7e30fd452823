"""SourceContract stops the threads of a source: a right one passes, and each mistake is found."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from understudy import Source
from understudy.runtime.simulation.contracts.moments import Place, chosen
from understudy.testing import SourceContract

from . import kept_log
from . import threaded_sources as sources
from .test_source_contract import FromSqlite
from .test_source_contract import contract_of as contract_of_a_table

pytestmark = pytest.mark.drawn

COUNT = 24


class ThreadedContract(SourceContract):
    outside = (kept_log.__name__,)
    parallelisms = (1,)
    kind: ClassVar[Any] = sources.Threaded

    def clear(self) -> None:
        kept_log.LOGS["log"] = kept_log.Log(COUNT)

    def make_source(self) -> Source:
        made: Source = self.kind("log")
        return made

    def wanted(self) -> list[Any]:
        return list(range(COUNT))


class TestASourceWithAThread(ThreadedContract):
    most_points = 40


def test_a_task_that_waits_for_the_lock_of_a_thread_that_stands_goes_on_by_and_by(
    capsys: pytest.CaptureFixture[str],
) -> None:
    contract = contract_of(sources.UnderALock)
    contract.test_a_checkpoint_at_each_moment_of_its_threads()
    assert "60 moments of its threads at which a checkpoint was taken" in capsys.readouterr().out


def test_a_source_without_threads_has_no_moments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract_of_a_table(FromSqlite, tmp_path).test_a_checkpoint_at_each_moment_of_its_threads()
    assert "it has no threads of its own" in capsys.readouterr().out


@pytest.mark.parametrize("most", [0, 1, 8, 40, 90, 500])
def test_moments_of_each_kind_are_chosen_and_none_twice(most: int) -> None:
    seen = {Place("reader.py", line): 1 + line % 5 for line in range(30)}
    moments = chosen(seen, most, Random(0))
    assert len(set(moments)) == len(moments) == min(most, sum(seen.values()))
    assert all(1 <= visit <= seen[place] for place, visit in moments)
    if most >= 8:
        assert {visit == 1 for _, visit in moments} == {True, False}


def contract_of(kind: Any, seed: int = 0) -> ThreadedContract:
    class Contract(ThreadedContract):
        most_points = 60

    Contract.kind, Contract.seed = kind, seed
    return Contract()


@pytest.mark.parametrize(
    ("kind", "test", "wrong"),
    [
        (sources.OffsetAtFetch, "test_a_checkpoint_at_each_moment_of_its_threads", "is missing"),
        (sources.LosesWhenFull, "test_it_reads_what_is_there", "is missing"),
        (sources.ForgetsTheOldest, "test_it_reads_what_is_there", "is missing"),
        (sources.ClosesAhead, "test_a_cancel_at_each_moment_of_its_threads", "is missing"),
        (sources.AcknowledgesTooMuch, "test_a_checkpoint_at_each_moment_of_its_threads", "is missing"),
        (sources.AcknowledgesAtFetch, "test_a_kill_at_each_moment_of_its_threads", "is missing"),
        (sources.AsksTooLate, "test_its_threads_have_their_turns_in_other_orders", "is missing"),
        (
            sources.TriesFromTheStart,
            "test_a_call_of_its_threads_that_fails_and_one_whose_answer_is_lost",
            r"is there \d+ times, wanted 1",
        ),
        (sources.NeverEnds, "test_it_reads_what_is_there", "still run 5 s after `close`"),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
def test_a_mistake_is_found(kind: Any, test: str, wrong: str) -> None:
    with pytest.raises(AssertionError) as caught:
        getattr(contract_of(kind), test)()
    print(caught.value)
    assert re.search(wrong, str(caught.value))
