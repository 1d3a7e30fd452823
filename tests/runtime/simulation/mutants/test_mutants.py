"""A simulator that finds nothing proves nothing: it must find each mutant, and nothing in what is not broken."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest

from understudy.runtime.simulation.histories import history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.verdict import Verdict, judge

from .found_by import FOUND_BY
from .mutants import MUTANTS, Mutant

RECOVERY_MS = 90_000.0
"""Enough for what is not broken; a mutant that hangs does so for no longer."""


@pytest.fixture(autouse=True)
def _short_histories() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "RECOVERY_MS", RECOVERY_MS)
        yield


@pytest.mark.drawn
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulator_finds(mutant: Mutant) -> None:
    """In one of its first histories; the one that found it before is tried first, as histories are repeatable."""
    for seed in sorted(range(mutant.within), key=lambda seed: (seed != FOUND_BY.get(mutant.name), seed)):
        scenario = mutant.scenarios(seed)
        verdict = _judge_mutant(mutant, scenario)
        if verdict.violations:
            assert not _judge_as_it_is(scenario).violations
            assert {violation.oracle for violation in verdict.violations} & set(mutant.by), verdict.violations
            print(f"{mutant.name} is found by {seed}")
            return
    pytest.fail(f"no oracle breaks in {mutant.within} histories")


def test_the_seeds_that_found_mutants_are_those_of_mutants_that_there_are() -> None:
    within = {mutant.name: mutant.within for mutant in MUTANTS}
    assert {name: seed for name, seed in FOUND_BY.items() if seed not in range(within.get(name, 0))} == {}


def _judge_mutant(mutant: Mutant, scenario: Scenario) -> Verdict:
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)
        return judge(scenario)


@lru_cache(maxsize=1_000)
def _judge_as_it_is(scenario: Scenario) -> Verdict:
    return judge(scenario)
