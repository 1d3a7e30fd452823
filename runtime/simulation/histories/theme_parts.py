"""Parts that themes are made of: changes of a scenario, drawn by chance."""

from __future__ import annotations

import random
from dataclasses import replace

from ..world.faults import Fault, KillProcess
from .actions import CancelWithSavepoint, ClientAction, RestartFromSavepoint, StopWithSavepoint
from .scenario import Scenario
from .topologies import MAX_PARALLELISM

ALL_KEYS = MAX_PARALLELISM
"""This many keys, and in the demanding topologies each key group has one."""

Chance = random.Random

_RATES = (2.7, 7.1)


def on_one_of(scenario: Scenario, chance: Chance, *topologies: str) -> Scenario:
    """One of these jobs on two TaskManagers or more, and nothing that happens to it."""
    workload = replace(scenario.workload, parallelism=2)
    task_managers = max(2, scenario.task_managers)
    drawn = replace(scenario, topology=chance.choice(topologies), workload=workload, faults=(), actions=())
    return replace(drawn, task_managers=task_managers, slots=1, max_latency_ms=3.0)


def paced(chance: Chance, scenario: Scenario, **changes: object) -> Scenario:
    """Many checkpoints, and keys in all key groups now and then."""
    usual = {
        "records": chance.randint(25, 50),
        "records_per_second": chance.choice(_RATES),
        "checkpoint_interval_ms": chance.choice((500, 1_000)),
        "keys": chance.choice((scenario.workload.keys, ALL_KEYS)),
        "alignment_timeout_ms": None,
        "buffer_timeout_ms": 0,
    }
    return replace(scenario, workload=replace(scenario.workload, **(usual | changes)))  # type: ignore[arg-type]


def kills(chance: Chance, scenario: Scenario, since: float, until: float, times: int = 1) -> list[Fault]:
    return [KillProcess(moment(chance, scenario, since, until), chance.randrange(2)) for _ in range(times)]


def replacement(chance: Chance, at_ms: float, parallelism: int) -> list[ClientAction]:
    """The job is ended with a savepoint, and goes on in this parallelism."""
    end = chance.choice((StopWithSavepoint, CancelWithSavepoint))
    return [end(at_ms), RestartFromSavepoint(round(at_ms + chance.uniform(0, 300), 1), parallelism)]


def moment(chance: Chance, scenario: Scenario, since: float, until: float) -> float:
    """A time between these shares of the run."""
    return round(chance.uniform(since, until) * scenario.workload.duration_ms, 1)


def with_faults(scenario: Scenario, *faults: Fault) -> Scenario:
    return replace(scenario, faults=tuple(sorted((*scenario.faults, *faults), key=lambda fault: fault.at_ms)))
