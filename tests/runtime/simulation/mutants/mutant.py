"""Mutant: our own protocol, broken on purpose in one place, and which oracle of the simulator must notice it.

A mutant is a function that patches product code. Its name says what is broken, its docstring how.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.world.faults import FailingStorage, Fault, SlowStorage

Patch = pytest.MonkeyPatch
Scenarios = Callable[[int], Scenario]

CUT = "consistent-cut"
OUTPUT = "exactly-once, at-least-once, nothing-extra"
EARLY = "commits-after-completion"
UNREADABLE = "readable-output"
LOST = "nothing-retained-is-lost"
KEPT = "nothing-discarded-is-kept"
IDS = "checkpoint-ids"
LIVENESS = "liveness"
CALM = "calm"
LEAKED = "no-leaked-files"
PROCESSES = "no-leaked-processes"
PROMISE = "promise"
DANGLING = "no-dangling-metadata"
TRANSACTIONS = "restored-transactions"


@dataclass(frozen=True)
class Mutant:
    """Must be caught by one of the oracles `by` in so many histories at most; `scenarios` gives one for each seed."""

    name: str
    apply: Callable[[Patch], None]
    by: tuple[str, ...]
    within: int
    scenarios: Scenarios


MUTANTS: list[Mutant] = []


def plain(seed: int) -> Scenario:
    """The standard history, but that the user does nothing and no barrier overtakes."""
    standard = Scenario.of(seed)
    workload = replace(standard.workload, alignment_timeout_ms=None)
    slots = -(-workload.parallelism // standard.task_managers)
    return replace(standard, workload=workload, actions=(), slots=slots)


def mutant(*by: str, within: int, scenarios: Scenarios = plain) -> Callable[[Callable[[Patch], None]], None]:
    """Adds the function to MUTANTS."""

    def add(apply: Callable[[Patch], None]) -> None:
        oracles = tuple(oracle for several in by for oracle in several.split(", "))
        MUTANTS.append(Mutant(apply.__name__, apply, oracles, within, scenarios))

    return add


def also(make: Callable[[float], Fault], since: float = 0.3, until: float = 0.9) -> Scenarios:
    """Plain histories with one more fault, at some time between these shares of the run."""

    def scenario(seed: int) -> Scenario:
        standard = plain(seed)
        at_ms = round(random.Random(seed).uniform(since, until) * standard.workload.duration_ms, 1)
        faults = sorted([*standard.faults, make(at_ms)], key=lambda fault: fault.at_ms)
        return replace(standard, faults=tuple(faults))

    return scenario


def storage_in_trouble(seed: int) -> Scenario:
    """Nothing but storage that is slow and fails now and then: checkpoints are declined, and no task ends."""
    standard = plain(seed)
    workload = replace(standard.workload, records=50, checkpoint_interval_ms=1_000)
    for_ms = 0.4 * workload.duration_ms
    faults = (FailingStorage(1_500.0, for_ms, probability=0.15), SlowStorage(2_000.0, for_ms, extra_ms=800.0))
    return replace(standard, workload=workload, faults=faults)


def nothing(*_args: Any, **_kwargs: Any) -> Any:
    """What is done instead of something."""


def no_effects(*_: Any, **__: Any) -> list[Any]:
    """For a step of a machine that returns its effects."""
    return []
