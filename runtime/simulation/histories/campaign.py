"""Campaign: very many histories, and the figures of all of them together.

Each seed is one history. They may run in several processes; what comes out does not depend on how many there are, since
verdicts are counted in the order of their seeds, and no further than the one after which the campaign stops.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .mix import standard_history
from .scenario import Scenario
from .situations import SITUATIONS
from .verdict import Verdict, judge, judge_and_cover
from .watchdog import Watchdog

_CHUNK = 5
"""How many seeds a process is given at once: few, so that all processes end at about the same time."""

_PRELOADED = [__name__, "pandas"]
"""Imported once, before the processes are forked. Arrow looks for pandas when it makes its first array."""

_AHEAD = 6
"""How many chunks per process are under way or wait for their turn to be counted."""

_OBJECTS_PER_COLLECTION = 500_000

_ENDLESS = 10**12
"""More histories than anybody has time for."""

_MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Which histories. With several `topologies` they take turns; with none, the seed chooses among all."""

    first_seed: int
    seeds: int | None
    """None: as many as fit into `minutes`, and at least one."""
    topologies: tuple[str, ...] = ()
    processes: int = 1
    stop_after: int | None = 1
    """The number of failed histories after which the campaign ends; None: never."""
    covers: bool = False
    """Whether the situations that histories reach are counted; that takes a few percent more time."""
    minutes: float | None = None
    """Of real time, after which the campaign ends."""

    @property
    def all_seeds(self) -> range:
        """Those that may be run."""
        return range(self.first_seed, self.first_seed + (_ENDLESS if self.seeds is None else self.seeds))

    def scenario(self, seed: int) -> Scenario:
        names = self.topologies
        return standard_history(seed, names[seed % len(names)] if names else None)


@dataclass
class Figures:
    """What a campaign has found so far."""

    histories: int = 0
    violations: int = 0
    """Histories with at least one."""
    virtual_ms: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    recoveries: int = 0
    checkpoints: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    by_topology: Counter[str] = field(default_factory=Counter)
    situations: Counter[str] = field(default_factory=Counter)
    """How many histories have reached each, if that is counted."""
    seconds: float = 0.0
    """Of real time."""
    failed: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.histories += 1
        self.virtual_ms += verdict.virtual_ms
        self.faults.update(dict(verdict.faults))
        self.actions.update(dict(verdict.actions))
        self.recoveries += verdict.recoveries
        self.checkpoints += verdict.checkpoints
        self.situations.update(verdict.situations)
        self.by_status[verdict.status] += 1
        self.by_topology[verdict.scenario.topology] += 1
        if verdict.broken is not None:
            self.violations += 1
            self.failed.append(verdict)

    def as_json(self) -> dict[str, Any]:
        """The figures; faults and actions are counted by kind, and only those that found something to happen to."""
        seconds = max(self.seconds, 1e-9)
        return {
            "histories": self.histories,
            "violations": self.violations,
            "virtual_hours": round(self.virtual_ms / _MS_PER_HOUR, 3),
            "faults": dict(sorted(self.faults.items())),
            "actions": dict(sorted(self.actions.items())),
            "recoveries": self.recoveries,
            "checkpoints": self.checkpoints,
            "by_status": dict(sorted(self.by_status.items())),
            "by_topology": dict(sorted(self.by_topology.items())),
            **({"situations": dict(self.situations)} if self.situations else {}),
            "seconds": round(self.seconds, 3),
            "histories_per_s": round(self.histories / seconds, 1),
            "speedup": round(self.virtual_ms / 1000 / seconds),
        }


def run_campaign(plan: Plan, *, told: Callable[[Figures], object] = lambda _: None) -> Figures:
    """Run it; `told` is called after each history. Raises BrokenProcessPool when a watchdog has ended a process."""
    figures = Figures()
    if plan.covers:
        figures.situations.update(dict.fromkeys(SITUATIONS, 0))
    started = time.perf_counter()
    with _verdicts(plan) as verdicts:
        for verdict in verdicts:
            figures.add(verdict)
            figures.seconds = time.perf_counter() - started
            told(figures)
            if plan.stop_after is not None and figures.violations >= plan.stop_after:
                break
            if plan.minutes is not None and figures.seconds >= 60 * plan.minutes:
                break
    return figures


@contextmanager
def quiet() -> Iterator[None]:
    """What the product logs about failures that we made ourselves is of no interest."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


# ---- inside


@contextmanager
def _verdicts(plan: Plan) -> Iterator[Iterator[Verdict]]:
    """In the order of their seeds."""
    if plan.processes == 1:
        with quiet(), _seldom_collecting(), Watchdog() as watchdog:
            yield (_judge(plan, seed, watchdog) for seed in plan.all_seeds)
        return
    pool = ProcessPoolExecutor(plan.processes, _context(), initializer=_prepare)
    try:
        yield _from_pool(plan, pool)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _context() -> multiprocessing.context.BaseContext:
    """Processes are forked from one that has imported everything and done nothing yet, where there is such a thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


def _from_pool(plan: Plan, pool: ProcessPoolExecutor) -> Iterator[Verdict]:
    chunks = (plan.all_seeds[start : start + _CHUNK] for start in range(0, len(plan.all_seeds), _CHUNK))
    pending: deque[Future[list[Verdict]]] = deque()
    while True:
        while len(pending) < _AHEAD * plan.processes and (chunk := next(chunks, None)) is not None:
            pending.append(pool.submit(_judge_chunk, plan, chunk))
        if not pending:
            return
        yield from pending.popleft().result()


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """A history leaves many cycles at its end, and few before: it is cheaper to look for them seldom."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _prepare() -> None:
    """In a process of the pool: nothing else will ever run here."""
    logging.disable(logging.CRITICAL)
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_COLLECTION)


def _judge_chunk(plan: Plan, seeds: range) -> list[Verdict]:
    with Watchdog() as watchdog:
        return [_judge(plan, seed, watchdog) for seed in seeds]


def _judge(plan: Plan, seed: int, watchdog: Watchdog) -> Verdict:
    with watchdog.watching(f"seed {seed}"):
        scenario = plan.scenario(seed)
        return judge_and_cover(scenario) if plan.covers else judge(scenario)
