"""Fault shrinking: from a fault schedule under which a user's job fails to a few simple, early faults that do the same.

The companion of shrinking.py for jobs that are not ours: only the faults and the seed can be made simpler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import get_args

from ..histories.actions import ClientAction
from ..histories.scenario import Scenario
from ..histories.shrinking import OTHER_SEEDS, fewer_faults, rounder_times, shorter_faults
from ..world.faults import (
    CheckpointMoment,
    Fault,
    FreezeProcess,
    KillAtCheckpoint,
    KillAtOperation,
    KillProcess,
    PowerFailure,
)
from .tried import Tried

RUNS = 120
"""How many histories shrinking may take."""

Schedule = tuple[Fault, ...]
Run = Callable[[int, Schedule], Tried]
RunWith = Callable[[int, Schedule, tuple[ClientAction, ...]], Tried]


def shrink(failed: Tried, run: RunWith, in_other_orders: Iterable[int] = ()) -> tuple[Tried, int]:
    """The same of a whole history: none of its faults, if it fails without them in the history of one of the seeds
    `in_other_orders`; without its savepoints, if it fails without them too; then its faults.
    """
    runs, actions = 0, failed.actions
    for seed in in_other_orders:
        runs += 1
        tried = run(seed, (), ())
        if tried.violations and tried.violations[0].oracle == failed.violations[0].oracle:
            return tried, runs
    for fewer in (actions[:length] for length in range(len(actions))):
        runs += 1
        tried = run(failed.seed, failed.faults, fewer)
        if tried.violations and tried.violations[0].oracle == failed.violations[0].oracle:
            failed, actions = tried, fewer
            break
    shrunk, more = shrink_faults(failed, lambda seed, faults: run(seed, faults, actions))
    return shrunk, runs + more


def shrink_faults(failed: Tried, run: Run) -> tuple[Tried, int]:
    """The simplest history found in which the same oracle breaks first, and how many it took. Deterministic."""
    search = _Search(failed, run)
    helped = True
    while helped and search.runs < RUNS:
        helped = False
        for simplify in SIMPLIFICATIONS:
            while search.improve(simplify(search.best.faults), is_bold=simplify in BOLD):
                helped = True
    return search.best, search.runs


class _Search:
    def __init__(self, failed: Tried, run: Run) -> None:
        self.best = failed
        self.runs = 0
        self._run = run
        self._known = {(failed.seed, failed.faults)}

    def improve(self, candidates: Iterator[Schedule], *, is_bold: bool) -> bool:
        """Take the first that fails the same way. With bold changes chance falls differently, so they deserve more
        than one try.
        """
        seeds = (self.best.seed, *OTHER_SEEDS) if is_bold else (self.best.seed,)
        return any(self._fails(seed, faults) for faults in candidates for seed in seeds)

    def _fails(self, seed: int, faults: Schedule) -> bool:
        if self.runs >= RUNS or (seed, faults) in self._known:
            return False
        self._known.add((seed, faults))
        self.runs += 1
        tried = self._run(seed, faults)
        if not tried.violations or tried.violations[0].oracle != self.best.violations[0].oracle:
            return False
        self.best = tried
        return True


# ---- simplifications: each gives schedules that are simpler in one respect, the boldest first


def _fewer(faults: Schedule) -> Iterator[Schedule]:
    yield from _faults_of(fewer_faults, faults)


def _one_kill(faults: Schedule) -> Iterator[Schedule]:
    """At a moment of a checkpoint, the first one above all, in place of several that come together to the same."""
    if len(faults) > 1:
        for at_ms in (0.0, faults[0].at_ms):
            yield from ((KillAtCheckpoint(at_ms, moment),) for moment in get_args(CheckpointMoment))


def _simpler(faults: Schedule) -> Iterator[Schedule]:
    """A plain kill instead of anything else, where that will do."""
    for position, fault in enumerate(faults):
        if not isinstance(fault, KillProcess):
            simple = KillProcess(fault.at_ms, max(0, _victim(fault)))
            yield (*faults[:position], simple, *faults[position + 1 :])


def _earlier(faults: Schedule) -> Iterator[Schedule]:
    for position, fault in enumerate(faults):
        if fault.at_ms >= 1:
            earlier = replace(fault, at_ms=fault.at_ms // 2)
            yield tuple(sorted((*faults[:position], earlier, *faults[position + 1 :]), key=lambda each: each.at_ms))


def _shorter(faults: Schedule) -> Iterator[Schedule]:
    yield from _faults_of(shorter_faults, faults)


def _rounder(faults: Schedule) -> Iterator[Schedule]:
    yield from _faults_of(rounder_times, faults)


Simplify = Callable[[Schedule], Iterator[Schedule]]

BOLD: tuple[Simplify, ...] = (_fewer, _one_kill, _simpler)

SIMPLIFICATIONS: tuple[Simplify, ...] = (*BOLD, _earlier, _shorter, _rounder)


def _faults_of(simplify: Callable[[Scenario], Iterator[Scenario]], faults: Schedule) -> Iterator[Schedule]:
    return (scenario.faults for scenario in simplify(Scenario(seed=0, faults=faults)))


def _victim(fault: Fault) -> int:
    match fault:
        case KillAtOperation(who=who) | FreezeProcess(who=who):
            return who
        case PowerFailure():
            return 0
        case _:
            return getattr(fault, "one", 0)
