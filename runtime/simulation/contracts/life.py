"""Life: one job's life with one connector: attempt after attempt, until all its records are through.

The job is a subtask of an operator in an OperatorHarness, in virtual time; the outside system is real. An attempt that
dies is followed by one that is restored from the newest checkpoint that is complete, or from none. `SinkLife` and
`SourceLife` have the steps of an attempt.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from ....actors.operators.operator import Operator
from ....messages import JobId
from ..harness.harness import OperatorHarness
from ..harness.harness_snapshot import HarnessSnapshot
from ..harness.hosted_attempt import HostedJob
from ..harness.hosted_chain import hosted_chain
from .attempt_thread import AttemptThread, Done, Failed, Frozen, Outcome
from .outside_calls import Fault, Killed, OutsideCalls

MOST_ATTEMPTS = 8
CANCELLED = object()
"""What a step returns that has closed the attempt before its end."""

Watch: TypeAlias = Callable[[Fault | None, Callable[[], None]], OutsideCalls]
"""Makes what sees the calls of an attempt, given its fault and how it is frozen."""

Step: TypeAlias = tuple[str, Callable[[], Any]]
"""In words, after "while it was"; and the thing to do. One that returns False has given up."""


class Unsettled(AssertionError):
    """The job does not come to its end."""


def job_of(operator: Operator) -> HostedJob:
    return HostedJob(JobId("contract"), hosted_chain(operator, (None, None), ()), 128, "memory", {})


@contextmanager
def _silent_deaths() -> Iterator[None]:
    """What a killed thread leaves behind, as generators, is closed when it is collected, and may do nothing outside
    then: nothing to be reported.
    """
    reported = sys.unraisablehook

    def report(found: Any) -> None:
        if not _is_of_a_death(found.exc_value):
            reported(found)

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = reported


def _is_of_a_death(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, Killed):
        error = error.__cause__ or error.__context__
    return error is not None


@contextmanager
def quick_collections() -> Iterator[None]:
    """Connections of dead attempts go with the garbage; older objects need not be looked through each time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Life:
    """`faults`: of the first attempts, in order; the later ones have none."""

    def __init__(self, operator: Operator, watch: Watch, faults: Sequence[Fault | None] = ()) -> None:
        self.story: list[str] = []
        self.calls: list[OutsideCalls] = []
        """Of each attempt."""
        self.covered = 0
        """How many checkpoints are complete."""
        self.newest: HarnessSnapshot | None = None
        self._job = job_of(operator)
        self._watch, self._faults = watch, list(faults)
        self._zombies: list[tuple[int, AttemptThread]] = []

    def live(self) -> None:
        """Raises Unsettled."""
        with _silent_deaths():
            try:
                while not self._attempt(len(self.calls) + 1):
                    gc.collect()  # the connections of a dead attempt go with its process
                    if len(self.calls) == MOST_ATTEMPTS:
                        raise Unsettled(f"it was not over after {MOST_ATTEMPTS} attempts")
            finally:
                self._wake_zombies()
                gc.collect()

    # -- what a subclass supplies

    def _steps(self, harness: OperatorHarness) -> Iterator[Step]:
        """What this attempt has to do, from the newest checkpoint on. A snapshot that a step returns is complete."""
        raise NotImplementedError

    def _calls_of(self, fault: Fault | None, freeze: Callable[[], None]) -> OutsideCalls:
        """Of a new attempt."""
        return self._watch(fault, freeze)

    def _begins(self) -> None:
        """An attempt does."""

    def _is_over(self, number: int) -> str:
        """An attempt has been closed in order; what is wrong then, if anything."""
        return ""

    def _wakes(self, number: int) -> None:
        """An attempt that was frozen is about to."""

    def _ends(self, number: int) -> None:
        """An attempt has ended, in whichever way."""

    def _happened(self, number: int) -> str:
        """Where the fault of an attempt was, in words; empty if there was none."""
        return self.calls[number - 1].happened

    def _meanwhile(self, seconds: float) -> None:
        """The newest attempt has been in the middle of a step for so long, and waits or takes long."""

    # -- details

    def _attempt(self, number: int) -> bool:
        """Whether the job is over."""
        fault = self._faults[number - 1] if number <= len(self._faults) else None
        thread = AttemptThread(partial(self._calls_of, fault))
        self.calls.append(thread.calls)
        snapshots = [] if self.newest is None else [self.newest]
        self._begins()
        self._say(number, f"is restored from checkpoint {self.covered}" if snapshots else "starts without state")
        make = partial(OperatorHarness._attempt_of, self._job, snapshots, 1, 0)
        made = thread.do(make, self._meanwhile)
        if not isinstance(made, Done):
            return self._over(number, thread, "opened", made, None)
        harness: OperatorHarness = made.value
        for what, step in self._steps(harness):
            outcome = thread.do(step, self._meanwhile)
            if isinstance(outcome, Done) and outcome.value is CANCELLED:
                self._say(number, f"is cancelled {what}")
                return self._left(number, thread)
            if isinstance(outcome, Done) and isinstance(outcome.value, HarnessSnapshot):
                self.newest, self.covered = outcome.value, self.covered + 1
            if not isinstance(outcome, Done) or outcome.value is False:
                return self._over(number, thread, what, outcome, harness)
        where = self._happened(number)
        survived = f", though a call failed {where}" if where else ""
        self._say(number, f"has done all, and was closed{survived}")
        self._left(number, thread)
        return True

    def _left(self, number: int, thread: AttemptThread) -> bool:
        """The attempt was closed in order. Always False."""
        thread.end()
        problem = self._is_over(number)
        self._ends(number)
        if problem:
            raise Unsettled(problem)
        return False

    def _over(
        self, number: int, thread: AttemptThread, what: str, outcome: Outcome, harness: OperatorHarness | None
    ) -> bool:
        """The attempt did not come to its end. Whether the job is over: always False."""
        where = self._happened(number)
        if isinstance(outcome, Frozen):
            self._say(number, f"freezes {where}, while it was {what}; it is taken for dead")
            self._zombies.append((number, thread))
            return False
        if isinstance(outcome, Failed):
            self._failed(number, where, what, outcome.error)
        elif isinstance(outcome, Done):
            self._say(number, f"was {what}, and did not come to an end")
        else:
            self._say(number, f"is killed {where}, while it was {what}")
        if harness is not None:
            harness.crash()
        thread.end()
        self._ends(number)
        self._wake_zombies()  # whatever it failed for: it may have waited for one
        return False

    def _failed(self, number: int, where: str, what: str, raised: BaseException) -> None:
        """Raises Unsettled where nothing was done to it, nor to an earlier one."""
        error = raised.__cause__ or raised
        because = f", after a fault {where}" if where else ""
        self._say(number, f"fails while it was {what}{because}: {type(error).__name__}: {error}")
        if not any(map(self._happened, range(1, len(self.calls) + 1))):
            raise Unsettled(f"it fails although nothing was done to it: {type(error).__name__}: {error}") from error

    def _wake_zombies(self) -> None:
        while self._zombies:
            number, thread = self._zombies.pop(0)
            self._wakes(number)
            outcome = thread.wake()
            ended = f"fails: {outcome.error.__cause__ or outcome.error!r}" if isinstance(outcome, Failed) else "goes on"
            self._say(number, f"wakes up, and {ended}")
            thread.end()
            self._ends(number)

    def _say(self, number: int, what: str) -> None:
        self.story.append(f"attempt {number} {what}")
