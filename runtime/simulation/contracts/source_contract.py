"""SourceContract: what a source must do, proved against its real system. Derive a test class of pytest from it.

    class TestOrders(SourceContract):
        outside = ("redis",)

        def clear(self): ...          # a stream with the records of `wanted`
        def make_source(self): return OrderSource(...)
        def wanted(self): return [...]

Records come out once, whatever happens: an attempt is killed, fails or freezes before and after each of its calls, and
the next one is restored from the newest checkpoint, with what the source recorded. Then it is rescaled. Calls that
threads of the source's own make are not seen: for such a source the points are the calls of its methods.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any, ClassVar

from ....actors.operators.source import END, Source, can_rescale
from ..harness.harness import OperatorHarness
from ..harness.harness_snapshot import HarnessSnapshot
from .contract import Contract, differences
from .life import Life, Step, Watch, job_of
from .outside_calls import Fault

_PAUSE_S = 0.002
_POLLS_BETWEEN = (2, 1, 3, 1)
"""How many polls there are from one barrier to the next: with an even rhythm each could fall on the end of a page, and
what was read ahead of it would never be missed.
"""


class SourceLife(Life):
    """It is polled, with a checkpoint after some polls, until it has ended or given all that is wanted."""

    def __init__(
        self, source: Source, wanted: int, timeout: float, watch: Watch, faults: Sequence[Fault | None] = ()
    ) -> None:
        super().__init__(source, watch, faults)
        self.out: list[Any] = []
        """What checkpoints cover."""
        self._behind: list[Any] = []
        """What came since the newest one."""
        self._wanted, self._timeout = wanted, timeout

    def _begins(self) -> None:
        self._behind = []

    def _steps(self, harness: OperatorHarness) -> Iterator[Step]:
        rhythm = cycle(_POLLS_BETWEEN)
        left = next(rhythm)
        while True:
            found: list[bool] = []
            yield "polled", partial(self._poll, harness, found)
            left -= 1
            if found[0] or left == 0:
                left = next(rhythm)
                yield f"at the barrier of checkpoint {self.covered + 1}", harness.snapshot
                self.out += self._behind
                self._behind = []
                yield f"informed that checkpoint {self.covered} is complete", partial(self._complete, harness)
            if found[0]:
                break
        yield "closed", harness.close

    def _poll(self, harness: OperatorHarness, found: list[bool]) -> None:
        """The next batch; `found` gets whether it was the last."""
        is_over = next_batch(harness, self._wanted - len(self.out) - len(self._behind), self._timeout)
        self._behind += harness.take_output()
        found.append(is_over)

    def _complete(self, harness: OperatorHarness) -> None:
        if self.newest is not None:
            harness.complete(self.newest)


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
    """Of a source that can be rescaled."""

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

    def test_a_kill_before_and_after_each_call(self) -> None:
        self._at_each_call("kill", "it was killed")

    def test_two_kills(self) -> None:
        self._two_at_a_time()

    def test_a_call_that_fails_and_one_whose_answer_is_lost(self) -> None:
        self._at_each_call("fail", "a call failed")

    def test_a_zombie_that_wakes_up_after_its_successor(self) -> None:
        self._at_each_call("freeze", "it was frozen")

    def test_a_rescale(self) -> None:
        """In each parallelism subtask i gives i + 1 batches, so that they come unequally far; of the last one all give
        all that is left.
        """
        self.clear()
        source = self.make_source()
        if not can_rescale(source):
            return
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

    def _made(self) -> Source:
        return self.make_source()

    def _life(self, faults: Sequence[Fault | None] = ()) -> SourceLife:
        self.clear()
        return SourceLife(self.make_source(), len(list(self.wanted())), self.timeout, self._watch, faults)

    def _check(self, life: Life) -> None:
        assert isinstance(life, SourceLife)
        problems = differences(self.wanted(), map(self.compared, life.out))
        if problems:
            raise AssertionError(self._story("it gave other records", life.story, problems, life))
