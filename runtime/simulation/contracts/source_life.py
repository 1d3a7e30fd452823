"""SourceLife: a source is polled, with a checkpoint after some polls, until it has ended or given all that is wanted.

Between the steps, and within them, the threads that the source has started have their turns. When one has come to the
moment of a fault it stands there, and what is to happen happens: see `_at_the_moment`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from random import Random
from typing import Any, TypeAlias

from ....actors.operators.source import END, Source
from ..harness.harness import OperatorHarness
from .life import CANCELLED, Life, Step
from .moments import ThreadFault
from .outside_calls import Fault
from .thread_calls import AttemptCalls
from .watched_threads import WatchedThreads

_PAUSE_S = 0.002
_POLLS_BETWEEN = (2, 1, 3, 1)
"""How many polls with records there are from one barrier to the next: with an even rhythm each could fall on the end of
a page, and what was read ahead of it would never be missed.
"""
_PATIENCE_S = 0.5
"""So long an attempt may wait for a thread that stands at the moment of a fault; then that one has to go on."""
_CLOSED_S = 5.0

WatchSource: TypeAlias = Callable[[Fault | None, Callable[[], None], WatchedThreads], AttemptCalls]


class SourceLife(Life):
    """`seed`: of the schedule of the source's threads. `thread_faults`: as `faults`, at moments of these threads."""

    def __init__(
        self,
        source: Source,
        wanted: int,
        timeout: float,
        watch: WatchSource,
        faults: Sequence[Fault | None] = (),
        thread_faults: Sequence[ThreadFault | None] = (),
        seed: str = "",
    ) -> None:
        super().__init__(source, lambda fault, freeze: watch(fault, freeze, self.threads[-1]), faults)
        self.out: list[Any] = []
        """What checkpoints cover."""
        self.threads: list[WatchedThreads] = []
        """Of each attempt."""
        self._behind: list[Any] = []
        """What came since the newest one."""
        self._wanted, self._timeout = wanted, timeout
        self._thread_faults, self._seed = list(thread_faults), seed

    # -- an attempt

    def _calls_of(self, fault: Fault | None, freeze: Callable[[], None]) -> AttemptCalls:
        number = len(self.threads)
        at = self._thread_faults[number] if number < len(self._thread_faults) else None
        self.threads.append(WatchedThreads(at, Random(f"{self._seed}, attempt {number}")))
        made = super()._calls_of(fault, freeze)
        assert isinstance(made, AttemptCalls)
        return made

    def _begins(self) -> None:
        self._behind = []

    def _happened(self, number: int) -> str:
        return super()._happened(number) or self.threads[number - 1].happened

    def _meanwhile(self, seconds: float) -> None:
        threads = self.threads[-1]
        if threads.act is None:
            threads.turn()
        elif seconds > _PATIENCE_S:
            threads.turn((1,), must=True)

    def _is_over(self, number: int) -> str:
        threads = self.threads[number - 1]
        threads.let_go()
        left = threads.ended(_CLOSED_S)
        return (
            f"threads of attempt {number} still run {_CLOSED_S:.0f} s after `close`: {', '.join(left)}" if left else ""
        )

    def _wakes(self, number: int) -> None:
        self.threads[number - 1].let_go()

    def _ends(self, number: int) -> None:
        self.threads[number - 1].kill()

    # -- its steps

    def _steps(self, harness: OperatorHarness) -> Iterator[Step]:
        threads, rhythm = self.threads[-1], cycle(_POLLS_BETWEEN)
        left, is_over = next(rhythm), False
        deadline = self._deadline()
        while not is_over:
            if self._missing <= 0:
                threads.until_all_rest()  # for what is too much
            else:
                threads.turn()
            found: list[Any] = []
            if not threads.has_stopped():
                yield "polled", partial(self._poll, harness, found)
            if threads.has_stopped():
                yield from self._at_the_moment(harness, threads)
                return
            (polled,) = found
            is_over = polled is END or (polled is None and time.monotonic() >= deadline)
            if polled is None and not is_over:
                if len(threads):
                    threads.wait_for_news()
                else:
                    time.sleep(_PAUSE_S)  # real time: it waits for a real system
                continue
            deadline = self._deadline()
            left -= 1
            if is_over or left <= 0:
                left = next(rhythm)
                yield from self._checkpoint(harness, threads)
                if threads.has_stopped():
                    yield from self._at_the_moment(harness, threads)
                    return
                if any(each.happened for each in self.threads):
                    self._wake_zombies()  # whose threads do harm now, if ever
        threads.go_on()
        yield "closed", harness.close

    def _at_the_moment(self, harness: OperatorHarness, threads: WatchedThreads) -> Iterator[Step]:
        """A thread stands where a fault is to be. After it this attempt is over."""
        act, calls, where = threads.act, self._newest_calls, f"while {threads.happened}"
        if act == "freeze":
            yield "between two steps", partial(self._freeze, harness, where)
        elif act == "cancel":
            threads.go_on()
            yield where, partial(self._cancel, harness)
        elif act == "checkpoint":
            for _ in range(threads.chance(0, 0, 1, 2)):
                yield "polled", partial(self._poll, harness, [])
            yield f"at the barrier of checkpoint {self.covered + 1}", harness.snapshot
            self._say(len(self.threads), f"takes checkpoint {self.covered} {where}")
            threads.go_on()
            yield from self._covered(harness, threads)
            where = "when its checkpoint is complete"
        yield "between two steps", partial(calls.die, where)

    def _checkpoint(self, harness: OperatorHarness, threads: WatchedThreads) -> Iterator[Step]:
        yield f"at the barrier of checkpoint {self.covered + 1}", harness.snapshot
        yield from self._covered(harness, threads)

    def _covered(self, harness: OperatorHarness, threads: WatchedThreads) -> Iterator[Step]:
        """A checkpoint is stored."""
        self.out += self._behind
        self._behind = []
        threads.turn()
        yield f"informed that checkpoint {self.covered} is complete", partial(self._complete, harness)

    # -- details

    @property
    def _newest_calls(self) -> AttemptCalls:
        calls = self.calls[-1]
        assert isinstance(calls, AttemptCalls)
        return calls

    @property
    def _missing(self) -> int:
        return self._wanted - len(self.out) - len(self._behind)

    def _deadline(self) -> float:
        return time.monotonic() + (self._timeout if self._missing > 0 else 0)

    def _poll(self, harness: OperatorHarness, found: list[Any]) -> None:
        found.append(harness.poll(wait=True))
        self._behind += harness.take_output()

    def _complete(self, harness: OperatorHarness) -> None:
        if self.newest is not None:
            harness.complete(self.newest)

    def _cancel(self, harness: OperatorHarness) -> object:
        harness.close()
        return CANCELLED

    def _freeze(self, harness: OperatorHarness, where: str) -> None:
        """When it wakes up it does not know that it was taken for dead: it goes on, until it is cancelled."""
        self._newest_calls.stand_still(where)
        for _ in range(_POLLS_BETWEEN[0]):
            harness.poll(wait=True)
        harness.close()
