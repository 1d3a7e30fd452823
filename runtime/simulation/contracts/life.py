"""Life: one job's life with one connector: attempt after attempt, until all its records are through.

The job is a subtask of an operator in an OperatorHarness, in virtual time; the outside system is real. An attempt that
dies is followed by one that is restored from the newest checkpoint that is complete, or from none. `SinkLife` and
`SourceLife` have the steps of an attempt.
"""

from __future__ import annotations

import gc
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
from .outside_calls import Fault, OutsideCalls

MOST_ATTEMPTS = 8

Watch: TypeAlias = Callable[[Fault | None, Callable[[], None]], OutsideCalls]
"""Makes what sees the calls of an attempt, given its fault and how it is frozen."""

Step: TypeAlias = tuple[str, Callable[[], Any]]
"""In words, after "while it was"; and the thing to do. One that returns False has given up."""


class Unsettled(AssertionError):
    """The job does not come to its end."""


def job_of(operator: Operator) -> HostedJob:
    return HostedJob(JobId("contract"), hosted_chain(operator, (None, None), ()), 128, "memory", {})


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

    def _begins(self) -> None:
        """An attempt does."""

    # -- details

    def _attempt(self, number: int) -> bool:
        """Whether the job is over."""
        fault = self._faults[number - 1] if number <= len(self._faults) else None
        thread = AttemptThread(partial(self._watch, fault))
        self.calls.append(thread.calls)
        snapshots = [] if self.newest is None else [self.newest]
        self._begins()
        self._say(number, f"is restored from checkpoint {self.covered}" if snapshots else "starts without state")
        made = thread.do(partial(OperatorHarness._attempt_of, self._job, snapshots, 1, 0))
        if not isinstance(made, Done):
            return self._over(number, thread, "opened", made, None)
        harness: OperatorHarness = made.value
        for what, step in self._steps(harness):
            outcome = thread.do(step)
            if isinstance(outcome, Done) and isinstance(outcome.value, HarnessSnapshot):
                self.newest, self.covered = outcome.value, self.covered + 1
            if not isinstance(outcome, Done) or outcome.value is False:
                return self._over(number, thread, what, outcome, harness)
        survived = f", though a call failed {thread.calls.happened}" if thread.calls.happened else ""
        self._say(number, f"has done all, and was closed{survived}")
        thread.end()
        return True

    def _over(
        self, number: int, thread: AttemptThread, what: str, outcome: Outcome, harness: OperatorHarness | None
    ) -> bool:
        """The attempt did not come to its end. Whether the job is over: always False."""
        where = thread.calls.happened
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
        self._wake_zombies()  # whatever it failed for: it may have waited for one
        return False

    def _failed(self, number: int, where: str, what: str, raised: BaseException) -> None:
        """Raises Unsettled where nothing was done to it, nor to an earlier one."""
        error = raised.__cause__ or raised
        because = f", after a fault {where}" if where else ""
        self._say(number, f"fails while it was {what}{because}: {type(error).__name__}: {error}")
        if not any(each.happened for each in self.calls):
            raise Unsettled(f"it fails although nothing was done to it: {type(error).__name__}: {error}") from error

    def _wake_zombies(self) -> None:
        while self._zombies:
            number, thread = self._zombies.pop(0)
            outcome = thread.wake()
            ended = f"fails: {outcome.error.__cause__ or outcome.error!r}" if isinstance(outcome, Failed) else "goes on"
            self._say(number, f"wakes up, and {ended}")
            thread.end()

    def _say(self, number: int, what: str) -> None:
        self.story.append(f"attempt {number} {what}")
