"""SourceContract: what a source must do, proved against its real system. Derive a test class of pytest from it.

    class TestOrders(SourceContract):
        outside = ("redis",)

        def clear(self): ...          # a stream with the records of `wanted`
        def make_source(self): return OrderSource(...)
        def wanted(self): return [...]

Records come out once, whatever happens: an attempt is killed, fails or freezes before and after each of its calls, and
the next one is restored from the newest checkpoint, with what the source recorded. Then it is rescaled.

Where the source has threads of its own, these are stopped at each line of its code and at each of their calls to the
outside, and there the attempt is killed, takes a checkpoint and is killed, is cancelled or frozen. They go on by turns,
as `seed` says, in between the steps of the task and in the middle of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, ClassVar, NoReturn
from unittest import SkipTest

from ....actors.operators.source import END, Source, can_rescale
from ..harness.harness import OperatorHarness
from ..harness.harness_snapshot import HarnessSnapshot
from .contract import Contract, differences
from .life import Life, job_of, quick_collections
from .moments import Act, ThreadFault, chosen
from .outside_calls import Fault
from .source_life import SourceLife
from .thread_calls import AttemptCalls, own_packages
from .watched_threads import WatchedThreads

_PAUSE_S = 0.002
_NO_THREADS = "it has no threads of its own"


def next_batch(harness: OperatorHarness, left: int, timeout: float) -> bool:
    """Poll until there is a batch; whether the source has ended, or given the `left` that are wanted, and no more."""
    deadline = time.monotonic() + (timeout if left > 0 else 0)
    while (polled := harness.poll(wait=True)) is None and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)  # real time: it waits for a real system
    return polled is END or polled is None


class SourceContract(Contract):
    """Each method that is not a test may be overridden; `make_source`, `wanted` and `clear` must be."""

    timeout: ClassVar[float] = 20
    """How many seconds a record may take to come."""
    parallelisms: ClassVar[Sequence[int]] = (2, 1, 3)
    """Of a source that can be rescaled. Without `rescale` that test is skipped; it fails where this names several."""
    seed: ClassVar[int] = 0
    """Of the schedule by which the source's own threads have their turns."""

    hooks = ("open", "close", "poll", "read", "offset", "seek", "on_checkpoint_complete")

    # -- what a subclass supplies

    def make_source(self) -> Source:
        """A new source of what `clear` has put there."""
        raise NotImplementedError(f"{type(self).__name__}.make_source is not defined")  # abstract

    def wanted(self) -> Iterable[Any]:
        """The records that come out, in any order: some twenty in several polls make a good test."""
        raise NotImplementedError(f"{type(self).__name__}.wanted is not defined")  # abstract

    def compared(self, record: Any) -> Any:
        """The part of a record that is in `wanted`: all of it, unless overridden to leave out what always differs."""
        return record

    # -- the tests

    def test_it_reads_what_is_there(self) -> None:
        life = self._undisturbed()
        self._print(f"{len(life.calls[0].names)} calls are recorded")

    def test_its_threads_have_their_turns_in_other_orders(self) -> None:
        """Nothing goes wrong but, perhaps, what they do at the same time as the task."""
        threads = self._undisturbed_source().threads[0]
        lives = self.most_points if len(threads) else 0
        with quick_collections():
            for number in range(lives):
                self._run(self._life(salt=f", order {number}"), f"in order {number} of its threads' turns")
        self._print(f"{lives} orders of its threads' turns" if lives else _NO_THREADS)

    def test_a_kill_at_each_moment_of_its_threads(self) -> None:
        self._at_each_moment("kill", "it was killed")

    def test_a_checkpoint_at_each_moment_of_its_threads(self) -> None:
        """It is taken while the thread stands there; then the attempt is killed."""
        self._at_each_moment("checkpoint", "a checkpoint was taken")

    def test_a_cancel_at_each_moment_of_its_threads(self) -> None:
        """It is closed, as when another task has failed, and its successor begins from a checkpoint before that."""
        self._at_each_moment("cancel", "it was cancelled")

    def test_a_zombie_at_each_moment_of_its_threads(self) -> None:
        """It stands still, and goes on in the middle of its successor's life."""
        self._at_each_moment("freeze", "it was frozen")

    def test_a_call_of_its_threads_that_fails_and_one_whose_answer_is_lost(self) -> None:
        self._at_each_moment("fail", "a call of a thread failed")

    def test_a_rescale(self) -> None:
        """In each parallelism subtask i gives i + 1 batches, so that they come unequally far; of the last one all give
        all that is left.
        """
        self.clear()
        source = self.make_source()
        if not can_rescale(source):
            self._cannot_rescale(type(source).__name__)
        wanted, found = list(self.wanted()), list[Any]()
        job, snapshots = job_of(source), list[HarnessSnapshot]()
        for generation, parallelism in enumerate(self.parallelisms, 1):
            attempts = [OperatorHarness._attempt_of(job, snapshots, parallelism, index) for index in range(parallelism)]
            is_last = generation == len(self.parallelisms)
            for index, each in enumerate(attempts):
                batches = 1
                while not next_batch(each, len(wanted) - len(found) if is_last else 0, self.timeout):
                    found += each.take_output()
                    if not is_last and batches > index:
                        break
                    batches += 1
                found += each.take_output()
            snapshots = [each.snapshot(generation) for each in attempts]
            for each in attempts:
                each.close()
        problems = differences(wanted, map(self.compared, found))
        assert not problems, self._story("it gave other records", [f"subtasks: {self.parallelisms}"], problems)

    # -- details

    def _cannot_rescale(self, kind: str) -> NoReturn:
        """Skips the test; fails it where the contract says that the source can."""
        what = f"{kind} has no `rescale`, so a job goes on with as many subtasks of it as before"
        own = type(self).parallelisms
        assert own is SourceContract.parallelisms or len(set(own)) == 1, (
            f"{what}; but {type(self).__name__} sets `parallelisms` to {tuple(own)}: define {kind}.rescale, or "
            "leave that out"
        )
        raise SkipTest(f"{what}: there is nothing to try")

    def _made(self) -> Source:
        return self.make_source()

    def _life(
        self, faults: Sequence[Fault | None] = (), *, thread_faults: Sequence[ThreadFault] = (), salt: str = ""
    ) -> SourceLife:
        self.clear()
        source, wanted = self.make_source(), len(list(self.wanted()))
        seed = f"seed {self.seed}{salt}"
        return SourceLife(source, wanted, self.timeout, self._watch_threads, faults, thread_faults, seed)

    def _watch_threads(self, fault: Fault | None, freeze: Callable[[], None], threads: WatchedThreads) -> AttemptCalls:
        own = own_packages(type(self._made()))
        return AttemptCalls(self._plan(fault, freeze), own=own, threads=threads)

    def _called_outside(self, life: Life) -> bool:
        assert isinstance(life, SourceLife)
        return super()._called_outside(life) or life.threads[0].calls_outside > 0

    def _undisturbed_source(self, salt: str = "") -> SourceLife:
        life = self._undisturbed(salt)
        assert isinstance(life, SourceLife)
        return life

    def _at_each_moment(self, act: Act, done: str) -> None:
        """One life for each moment that is tried, with the same turns as in the one that is undisturbed."""
        salt = f", {act}"
        first = self._undisturbed_source(salt).threads[0]
        seen = {place: visits for place, visits in first.seen.items() if place.call or act != "fail"}
        moments, came = chosen(seen, self.most_points, Random(self.seed)), 0
        if not moments:
            return self._print("its threads make no calls to the outside" if len(first) else _NO_THREADS)
        with quick_collections():
            for moment in moments:
                life = self._life(thread_faults=[ThreadFault(moment, act)], salt=salt)
                self._run(life, f"{done} {moment}")
                came += bool(life.threads[0].happened)
        of_all = f"of {sum(seen.values())} at {len(seen)} places"
        missed = f"; {len(moments) - came} did not come again" if came < len(moments) else ""
        self._print(f"{len(moments)} moments of its threads at which {done}, {of_all}{missed}")
        assert came, "none of the moments came again: what the threads do is not the same from run to run"
        return None

    def _check(self, life: Life) -> None:
        assert isinstance(life, SourceLife)
        problems = differences(self.wanted(), map(self.compared, life.out))
        if problems:
            raise AssertionError(self._story("it gave other records", life.story, problems, life))
