"""Scenario: all that decides a history, as data. The same scenario is the same history, to the byte."""

from __future__ import annotations

import random
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any

from ....messages import CheckpointRetention
from ..world.faults import (
    FAULTS,
    JOB_MANAGER,
    CutConnections,
    FailingOperator,
    FailingStorage,
    Fault,
    FreezeProcess,
    FullDisk,
    KillAtCheckpoint,
    KillAtOperation,
    KillProcess,
    Partition,
    PowerFailure,
    RottenFile,
    SkewClock,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SlowStorage,
    UserCall,
    Who,
)
from .actions import (
    ClientAction,
    RestartFromCheckpoint,
    RestartFromDrained,
    RestartFromSavepoint,
    random_actions,
    random_checkpoints,
)
from .topologies import TOPOLOGIES, Workload

JOB_MANAGER_DEATHS = 0.03
"""Share of histories in which the JobManager dies: without high availability, that is the end of the job."""

WITH_SAVEPOINTS = 0.5
"""Share of histories in which the user takes savepoints, stops the job with one, goes on from one, …"""

WITH_CHECKPOINTS = 0.3
"""Share of histories in which the user asks for checkpoints beside those at the interval."""

WITH_ALIGNMENT_TIMEOUT = 0.4
"""Share of histories in which barriers may overtake what is in flight."""

SLOW_PROCESSES = 0.7
"""Share of those histories in which a TaskManager is slow, so that there is something in flight."""

WITH_SMALL_BATCHES = 0.3
"""Share of histories in which a source emits its records one by one, and tasks may keep them for long."""

_CALLS: tuple[UserCall, ...] = ("open", "process_batch", "on_checkpoint", "commit")

_DRAWN = tuple(kind for kind in FAULTS if kind not in (SlowProcess, SlowFiles, KillAtCheckpoint))

_RATES = (1.3, 2.7, 7.1)
"""Records a second. No interval of checkpoints is a multiple of theirs: barriers and records meet in every way."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`seed` decides what the other fields leave open: latencies, delays, who goes first."""

    seed: int
    topology: str = "keyed"
    workload: Workload = field(default_factory=Workload)
    task_managers: int = 2
    slots: int = 1
    faults: tuple[Fault, ...] = ()
    max_latency_ms: float = 3.0
    """Of the network, undisturbed."""
    storage_ms: float = 0.0
    """What reading or writing a file takes besides its few milliseconds, as with an object store."""
    actions: tuple[ClientAction, ...] = ()
    """What the user of the job does meanwhile."""

    @property
    def job_parallelism(self) -> int:
        """Of the widest job that there is in this history: the cluster must have that number of slots."""
        rescaling = (RestartFromSavepoint, RestartFromDrained)
        restarts = (each.parallelism for each in self.actions if isinstance(each, rescaling))
        return max(self.workload.parallelism, *restarts, 1)

    @property
    def quiet_ms(self) -> float:
        """From when on nothing is wrong any more."""
        return max((fault.until_ms for fault in self.faults), default=0.0)

    def without(self, position: int) -> Scenario:
        """The same with one fault less."""
        return replace(self, faults=self.faults[:position] + self.faults[position + 1 :])

    def as_python(self) -> str:
        """A program that runs it, to be pasted. Default values are left out."""
        names = {"run_history"}
        text = _as_python(self, names)
        imports = f"from understudy.testing import {', '.join(sorted(names))}"
        return "\n".join([imports, "", f"outcome = run_history({text})", "print(*outcome.violations)"])

    @staticmethod
    def of(seed: int, topology: str | None = None) -> Scenario:
        """The standard scenario of this seed: any topology unless one is named, any faults."""
        chance = random.Random(f"scenario {seed}")
        name = topology or chance.choice(sorted(TOPOLOGIES))
        parallelism = 1 if name == "chain" else chance.choice((1, 2, 2))
        workload = Workload(
            records=chance.randint(10, 50),
            keys=chance.randint(1, 6),
            parallelism=parallelism,
            records_per_second=chance.choice(_RATES),
            checkpoint_interval_ms=chance.choice((1_000, 2_000, 4_000)),
            retained_checkpoints=chance.choice((1, 2, 3)),
            max_concurrent_checkpoints=chance.choice((1, 1, 2)),
        )
        task_managers = chance.choice((1, 2)) if parallelism == 1 else chance.choice((1, 2, 2, 3))
        slots = -(-parallelism // task_managers)
        faults = tuple(map(_perhaps_midway, random_faults(chance, task_managers, workload.duration_ms)))
        max_latency_ms = chance.choice((3.0, 3.0, 300.0))
        storage_ms = chance.choice((0.0, 0.0, 700.0))
        standard = Scenario(seed, name, workload, task_managers, slots, faults, max_latency_ms, storage_ms)
        return _with_retention(_with_actions(_with_small_batches(_with_alignment_timeout(standard))))


def _with_actions(scenario: Scenario) -> Scenario:
    """Perhaps. Drawn apart from the rest, so that the rest is what it would be without."""
    chance = random.Random(f"actions {scenario.seed}")
    actions: tuple[ClientAction, ...] = ()
    if chance.random() < WITH_SAVEPOINTS:
        actions = random_actions(chance, scenario.workload.duration_ms)
    apart = random.Random(f"checkpoints {scenario.seed}")
    if apart.random() < WITH_CHECKPOINTS:
        actions += random_checkpoints(apart, scenario.workload.duration_ms)
    if not actions:
        return scenario
    with_them = replace(scenario, actions=tuple(sorted(actions, key=lambda action: action.at_ms)))
    return replace(with_them, slots=-(-with_them.job_parallelism // scenario.task_managers))


def _with_alignment_timeout(scenario: Scenario) -> Scenario:
    """Perhaps."""
    chance = random.Random(f"alignment {scenario.seed}")
    if chance.random() >= WITH_ALIGNMENT_TIMEOUT or scenario.topology == "at-least-once":
        return scenario
    workload = replace(scenario.workload, alignment_timeout_ms=chance.choice((0, 0, 200, 1_500)))
    faults = [*scenario.faults]
    if chance.random() < SLOW_PROCESSES:
        faults.append(random_slow_process(chance, scenario.task_managers, workload.duration_ms))
    return replace(scenario, workload=workload, faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)))


def _with_retention(scenario: Scenario) -> Scenario:
    """What jobs leave of their checkpoints when they end: what the user wants to go on from, or any setting."""
    chance = random.Random(f"retention {scenario.seed}")
    retention = chance.choice(sorted(each.value for each in CheckpointRetention))
    if any(isinstance(action, RestartFromCheckpoint) for action in scenario.actions):
        retention = CheckpointRetention.ON_CANCELLATION.value
    return replace(scenario, workload=replace(scenario.workload, retain_checkpoints=retention))


def _with_small_batches(scenario: Scenario) -> Scenario:
    """Perhaps. A task keeps something only where one that is slow has more to take than it can."""
    chance = random.Random(f"batches {scenario.seed}")
    if chance.random() >= WITH_SMALL_BATCHES:
        return scenario
    timeout_ms = chance.choice((0, 50, 3_000))
    return replace(scenario, workload=replace(scenario.workload, batch_rows=1, buffer_timeout_ms=timeout_ms))


def _perhaps_midway(fault: Fault) -> Fault:
    """Some freezes come in the middle of what a process does."""
    if not isinstance(fault, FreezeProcess):
        return fault
    return replace(fault, operations=random.Random(f"freeze at {fault.at_ms}").choice((0, 0, 3, 12)))


def _as_python(value: object, names: set[str]) -> str:
    """An expression for it; `names` gets the names to import."""
    if isinstance(value, tuple):
        return f"({', '.join(_as_python(each, names) for each in value)}{',' if len(value) == 1 else ''})"
    if not is_dataclass(value):
        return repr(value)
    kind = type(value)
    names.add(kind.__name__)
    told = [
        f"{each.name}={_as_python(getattr(value, each.name), names)}" for each in fields(value) if _differs(value, each)
    ]
    return f"{kind.__name__}({', '.join(told)})"


def _differs(value: object, its: Field[Any]) -> bool:
    """From what it is when nothing is said."""
    usual = its.default if its.default_factory is MISSING else its.default_factory()
    return bool(getattr(value, its.name) != usual)


def random_faults(chance: random.Random, task_managers: int, within_ms: float) -> tuple[Fault, ...]:
    """Up to six faults of any kinds, the JobManager's death seldom among them; in the order of their times."""
    faults = [random_fault(chance, task_managers, within_ms) for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 6)))]
    if chance.random() < JOB_MANAGER_DEATHS:
        faults.append(KillProcess(chance.uniform(0, within_ms), JOB_MANAGER))
    return tuple(sorted(faults, key=lambda fault: fault.at_ms))


def random_slow_process(chance: random.Random, task_managers: int, within_ms: float) -> SlowProcess:
    """By itself it does no harm; but barriers wait behind what has piled up."""
    at_ms = round(chance.uniform(0, 0.8 * within_ms), 1)
    for_ms = round(chance.uniform(0.1, 0.6) * within_ms, 1)
    return SlowProcess(at_ms, for_ms, chance.randrange(task_managers), extra_ms=round(chance.uniform(50, 1_500), 1))


def random_fault(chance: random.Random, task_managers: int, within_ms: float) -> Fault:
    """Any fault but the JobManager's death and what slows a single process down, that begins within this time."""
    kind = chance.choice(_DRAWN)
    at_ms = round(chance.uniform(0, within_ms), 1)
    for_ms = round(chance.choice((200.0, 3_000.0, 12_000.0)) * chance.uniform(0.5, 1.5), 1)
    victim: Who = chance.randrange(task_managers)
    anybody: Who = chance.randrange(-1, task_managers)
    other: Who = chance.choice([who for who in range(-1, task_managers) if who != anybody])
    match kind:
        case _ if kind is KillProcess:
            return KillProcess(at_ms, victim)
        case _ if kind is KillAtOperation:
            return KillAtOperation(at_ms, victim, chance.randint(1, 40))
        case _ if kind is FreezeProcess:
            return FreezeProcess(at_ms, for_ms, anybody)
        case _ if kind is CutConnections:
            return CutConnections(at_ms, anybody, other)
        case _ if kind is Partition:
            return Partition(at_ms, for_ms, anybody, other, one_way=chance.random() < 0.4)
        case _ if kind is SlowLink:
            return SlowLink(at_ms, for_ms, anybody, other, extra_latency_ms=round(chance.uniform(5, 1_500), 1))
        case _ if kind is FailingStorage:
            return FailingStorage(at_ms, for_ms, probability=chance.choice((0.05, 0.3, 1.0)))
        case _ if kind is SlowStorage:
            return SlowStorage(at_ms, for_ms, extra_ms=round(chance.uniform(10, 5_000), 1))
        case _ if kind is FullDisk:
            return FullDisk(at_ms, for_ms)
        case _ if kind is RottenFile:
            return RottenFile(at_ms)
        case _ if kind is PowerFailure:
            return PowerFailure(at_ms)
        case _ if kind is SkewClock:
            return SkewClock(at_ms, anybody, by_ms=chance.choice((-3_600_000, -2_000, 2_000, 3_600_000)))
        case _:
            return FailingOperator(at_ms, chance.choice(_CALLS))
