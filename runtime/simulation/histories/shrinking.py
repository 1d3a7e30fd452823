"""Shrinking: from a scenario that fails to a smaller one that fails in the same way.

One simplification after the other is tried, the boldest first, and kept when the same oracle still breaks; a crash
must be of the same exception. A smaller scenario is another history altogether, in which chance falls differently, so
each is tried with a few seeds. Deterministic: what bounds it is a number of runs, and not time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..world.faults import Fault, LastingFault, Who
from .actions import ClientAction, RestartFromSavepoint, StopWithSavepoint
from .scenario import Scenario
from .topologies import Workload
from .verdict import Verdict, judge

Judge = Callable[[Scenario], Verdict]

RUNS = 200
"""How many histories shrinking may take, by default."""

OTHER_SEEDS = (0, 1)
"""Tried besides a scenario's own."""

_SIMPLER = ("chain", "keyed", "pipeline")
"""Topologies that are easier to think about, the easiest first."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left, the verdict on it, and how many histories it took."""

    scenario: Scenario
    verdict: Verdict
    runs: int


def shrink(failed: Verdict, *, runs: int = RUNS, judge: Judge = judge) -> Shrunk:
    """The smallest scenario found with the symptom of `failed`; at worst the one that it has."""
    search = _Search(failed, runs, judge)
    search.run()
    return Shrunk(search.best.scenario, search.best, search.runs)


class _Search:
    def __init__(self, failed: Verdict, limit: int, judge: Judge) -> None:
        self.best = failed
        self.runs = 0
        self._limit = limit
        self._judge = judge
        self._tried: set[Scenario] = set()

    def run(self) -> None:
        """Go through all simplifications, over and over, until none of them helps."""
        helped = True
        while helped and self.runs < self._limit:
            helped = False
            for simplify in SIMPLIFICATIONS:
                helped |= self._improve(simplify)

    def _improve(self, simplify: Callable[[Scenario], Iterable[Scenario]]) -> bool:
        """Apply one kind of simplification as often as it helps."""
        helped = False
        while self._first_that_fails(simplify(self.best.scenario)):
            helped = True
        return helped

    def _first_that_fails(self, candidates: Iterable[Scenario]) -> bool:
        return any(self._fails(replace(each, seed=seed)) for each in candidates for seed in self._seeds())

    def _seeds(self) -> Iterator[int]:
        own = self.best.scenario.seed
        yield own
        yield from (seed for seed in OTHER_SEEDS if seed != own)

    def _fails(self, scenario: Scenario) -> bool:
        if self.runs >= self._limit or scenario in self._tried:
            return False
        self._tried.add(scenario)
        self.runs += 1
        verdict = self._judge(scenario)
        if verdict.symptom != self.best.symptom:
            return False
        self.best = verdict
        return True


# ---- simplifications: each gives candidates that are smaller in one respect, the boldest first


def fewer_faults(scenario: Scenario) -> Iterator[Scenario]:
    """None, either half, and all but one."""
    faults = scenario.faults
    half = len(faults) // 2
    if faults:
        yield replace(scenario, faults=())
    if half:
        yield replace(scenario, faults=faults[:half])
        yield replace(scenario, faults=faults[half:])
    if len(faults) > 2:
        yield from (scenario.without(position) for position in range(len(faults)))


def fewer_actions(scenario: Scenario) -> Iterator[Scenario]:
    """None, and all but one."""
    actions = scenario.actions
    if len(actions) > 1:
        yield replace(scenario, actions=())
    for position in range(len(actions)):
        yield replace(scenario, actions=actions[:position] + actions[position + 1 :])


def plainer_actions(scenario: Scenario) -> Iterator[Scenario]:
    """Without draining, and without another parallelism."""
    for position, action in enumerate(scenario.actions):
        if isinstance(action, StopWithSavepoint) and action.drain:
            yield _with_action(scenario, position, replace(action, drain=False))
        if isinstance(action, RestartFromSavepoint) and action.parallelism != scenario.workload.parallelism:
            yield _with_action(scenario, position, replace(action, parallelism=scenario.workload.parallelism))


def simpler_topology(scenario: Scenario) -> Iterator[Scenario]:
    rank = _SIMPLER.index(scenario.topology) if scenario.topology in _SIMPLER else len(_SIMPLER)
    for name in _SIMPLER[:rank]:
        yield replace(scenario, topology=name)


def fewer_processes(scenario: Scenario) -> Iterator[Scenario]:
    """One subtask of each task, or one TaskManager for all. Faults of whom there is no more are dropped with them."""
    if scenario.workload.parallelism > 1:
        yield _placed(replace(scenario, workload=replace(scenario.workload, parallelism=1)), scenario.task_managers)
    if scenario.task_managers > 1:
        yield _placed(scenario, 1)
    if scenario.task_managers > 2:
        yield _placed(scenario, 2)


def fewer_records(scenario: Scenario) -> Iterator[Scenario]:
    records = scenario.workload.records
    for fewer in (records // 4, records // 2, records * 3 // 4, records - 1):
        if 1 <= fewer < records:
            yield replace(scenario, workload=replace(scenario.workload, records=fewer))


def plainer_workload(scenario: Scenario) -> Iterator[Scenario]:
    """As it is by default, and with one key."""
    plain = Workload()
    for name in (
        "alignment_timeout_ms",
        "buffer_timeout_ms",
        "batch_rows",
        "max_concurrent_checkpoints",
        "checkpoint_interval_ms",
        "records_per_second",
        "retained_checkpoints",
    ):
        if getattr(scenario.workload, name) != getattr(plain, name):
            yield replace(scenario, workload=replace(scenario.workload, **{name: getattr(plain, name)}))
    if scenario.workload.keys > 1:
        yield replace(scenario, workload=replace(scenario.workload, keys=1))


def shorter_faults(scenario: Scenario) -> Iterator[Scenario]:
    """A quarter, half and three quarters as long, each by itself."""
    for position, fault in enumerate(scenario.faults):
        if isinstance(fault, LastingFault):
            for share in (0.25, 0.5, 0.75):
                if fault.for_ms * share >= 1:
                    yield _with_fault(scenario, position, replace(fault, for_ms=round(fault.for_ms * share, 1)))


def rounder_times(scenario: Scenario) -> Iterator[Scenario]:
    """Whole seconds, or else tenths and hundredths of them."""
    for position, fault in enumerate(scenario.faults):
        for at_ms in _rounder(fault.at_ms):
            yield _with_fault(scenario, position, replace(fault, at_ms=at_ms))
        if isinstance(fault, LastingFault):
            for for_ms in _rounder(fault.for_ms):
                yield _with_fault(scenario, position, replace(fault, for_ms=for_ms))
    for position, action in enumerate(scenario.actions):
        for at_ms in _rounder(action.at_ms):
            yield _with_action(scenario, position, replace(action, at_ms=at_ms))


def _rounder(value_ms: float) -> Iterator[float]:
    """Shorter, since it is meant to become less with each step."""
    for unit_ms in (1000.0, 100.0, 10.0):
        rounded = value_ms // unit_ms * unit_ms
        if rounded == value_ms:
            return
        if rounded > 0:
            yield rounded


SIMPLIFICATIONS: tuple[Callable[[Scenario], Iterable[Scenario]], ...] = (
    fewer_faults,
    fewer_actions,
    plainer_actions,
    simpler_topology,
    fewer_processes,
    fewer_records,
    plainer_workload,
    shorter_faults,
    rounder_times,
)


def _with_fault(scenario: Scenario, position: int, fault: Fault) -> Scenario:
    return replace(scenario, faults=(*scenario.faults[:position], fault, *scenario.faults[position + 1 :]))


def _with_action(scenario: Scenario, position: int, action: ClientAction) -> Scenario:
    return replace(scenario, actions=(*scenario.actions[:position], action, *scenario.actions[position + 1 :]))


def _placed(scenario: Scenario, task_managers: int) -> Scenario:
    """On this number of TaskManagers, with as many slots as it takes."""
    slots = -(-scenario.job_parallelism // task_managers)
    faults = tuple(fault for fault in scenario.faults if all(who < task_managers for who in _named(fault)))
    return replace(scenario, task_managers=task_managers, slots=slots, faults=faults)


def _named(fault: Fault) -> Iterator[Who]:
    """Everybody whom a fault names."""
    for name in ("who", "one", "other"):
        if hasattr(fault, name):
            yield getattr(fault, name)
