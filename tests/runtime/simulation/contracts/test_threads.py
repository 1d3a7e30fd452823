"""SourceContract stops the threads of a source: a right one passes, and each mistake is found."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from understudy import Source
from understudy.testing import SourceContract

from . import kept_log
from . import threaded_sources as sources

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


@pytest.mark.drawn
class TestASourceWithAThread(ThreadedContract):
    most_points = 40


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
            "is there 2 times, wanted 1",
        ),
        (sources.NeverEnds, "test_it_reads_what_is_there", "still run 5 s after `close`"),
    ],
    ids=lambda it: getattr(it, "__name__", None),
)
def test_a_mistake_is_found(kind: Any, test: str, wrong: str) -> None:
    with pytest.raises(AssertionError) as caught:
        getattr(contract_of(kind), test)()
    print(caught.value)
    assert wrong in str(caught.value)
