"""Shrinking: the same symptom, in a smaller scenario, in a bounded number of histories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.runtime.connectors.collection_source import CollectionSource
from understudy.runtime.oracles import Violation
from understudy.runtime.simulation.histories.actions import (
    DisposeSavepoint,
    RestartFromSavepoint,
    StopWithSavepoint,
    TakeSavepoint,
)
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.shrinking import OTHER_SEEDS, SIMPLIFICATIONS, shrink
from understudy.runtime.simulation.histories.topologies import TOPOLOGIES, Workload
from understudy.runtime.simulation.histories.verdict import Verdict, crashed, judge
from understudy.runtime.simulation.world.faults import FreezeProcess, KillProcess, SkewClock

LARGE = Scenario(
    77,
    "diamond",
    Workload(records=50, keys=6, parallelism=2, checkpoint_interval_ms=1_000, max_concurrent_checkpoints=2),
    3,
    1,
    (
        SkewClock(1_000, 0, 2_000),
        KillProcess(3_456.7, 1),
        FreezeProcess(5_000, 3_210.5, 0),
        KillProcess(7_000, 2),
        SkewClock(8_000, 1, 2_000),
    ),
)


def failing(scenario: Scenario, oracle: str = "exactly-once") -> Verdict:
    return Verdict(scenario, "finished", (Violation(oracle, "one record lost"),))


def needs_a_freeze_and_three_records(scenario: Scenario) -> Verdict:
    froze = any(isinstance(fault, FreezeProcess) and fault.for_ms >= 2_000 for fault in scenario.faults)
    fails = froze and scenario.workload.records >= 3 and scenario.topology != "chain"
    return failing(scenario) if fails else Verdict(scenario, "finished")


def test_what_is_not_needed_goes() -> None:
    shrunk = shrink(failing(LARGE), judge=needs_a_freeze_and_three_records)
    workload = Workload(records=3, keys=1, parallelism=1)
    assert shrunk.scenario == Scenario(77, "keyed", workload, 1, 1, (FreezeProcess(5_000, 2_000, 0),))
    assert shrunk.verdict == failing(shrunk.scenario)


def test_the_same_failure_shrinks_to_the_same_scenario() -> None:
    assert shrink(failing(LARGE), judge=needs_a_freeze_and_three_records) == shrink(
        failing(LARGE), judge=needs_a_freeze_and_three_records
    )


def needs_a_restart_and_a_savepoint_before_it(scenario: Scenario) -> Verdict:
    kinds = [type(action) for action in scenario.actions]
    fails = RestartFromSavepoint in kinds and kinds.index(RestartFromSavepoint) > 0
    return failing(scenario) if fails else Verdict(scenario, "finished")


def test_what_the_user_need_not_do_goes() -> None:
    actions = (
        TakeSavepoint(1_234.5),
        StopWithSavepoint(2_345.6, drain=True),
        DisposeSavepoint(3_000.0, 1),
        RestartFromSavepoint(4_000.0, 3),
        TakeSavepoint(5_000.0),
    )
    scenario = replace(LARGE, actions=actions, slots=1)
    shrunk = shrink(failing(scenario), judge=needs_a_restart_and_a_savepoint_before_it).scenario
    assert [type(action) for action in shrunk.actions] in (
        [TakeSavepoint, RestartFromSavepoint],
        [StopWithSavepoint, RestartFromSavepoint],
        [DisposeSavepoint, RestartFromSavepoint],
    )
    assert all(action.at_ms % 1_000 == 0 for action in shrunk.actions)
    assert shrunk.actions[1] == RestartFromSavepoint(4_000.0, shrunk.workload.parallelism)
    assert not shrunk.faults


@pytest.mark.parametrize("runs", [0, 1, 7])
def test_it_takes_no_more_histories_than_it_may(runs: int) -> None:
    tried = []

    def judged(scenario: Scenario) -> Verdict:
        tried.append(scenario)
        return failing(scenario)

    shrunk = shrink(failing(LARGE), runs=runs, judge=judged)
    assert len(tried) == shrunk.runs == runs


def test_what_never_fails_again_stays_as_it_is() -> None:
    shrunk = shrink(failing(LARGE), judge=lambda scenario: Verdict(scenario, "finished"))
    assert shrunk.scenario == LARGE


def test_another_oracle_is_another_failure() -> None:
    shrunk = shrink(failing(LARGE), judge=lambda scenario: failing(scenario, "liveness"))
    assert shrunk.scenario == LARGE


def test_a_crash_of_another_kind_is_another_failure() -> None:
    first = crashed(LARGE, KeyError("a"))
    assert shrink(first, judge=lambda scenario: crashed(scenario, ValueError("a"))).scenario == LARGE
    assert shrink(first, judge=lambda scenario: crashed(scenario, KeyError("b"))).scenario.faults == ()


def test_a_failure_that_needs_luck_is_looked_for_with_other_seeds() -> None:
    lucky = OTHER_SEEDS[-1]
    shrunk = shrink(
        failing(LARGE),
        judge=lambda scenario: failing(scenario) if scenario.seed == lucky else Verdict(scenario, "finished"),
    )
    assert shrunk.scenario.seed == lucky
    assert not shrunk.scenario.faults


@pytest.mark.parametrize("seed", range(30))
def test_every_simplification_gives_other_scenarios_that_make_sense(seed: int) -> None:
    scenario = Scenario.of(seed)
    for simplify in SIMPLIFICATIONS:
        for smaller in simplify(scenario):
            assert smaller != scenario
            assert smaller.topology in TOPOLOGIES
            assert smaller.workload.records >= 1
            assert smaller.task_managers * smaller.slots >= smaller.job_parallelism


@pytest.mark.drawn
def test_a_real_bug_shrinks_to_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that begins from the start after every restore: each recovery shows it."""
    monkeypatch.setattr(CollectionSource, "seek", lambda self, offset: None)
    scenario = Scenario(
        5,
        "pipeline",
        Workload(records=20),
        2,
        1,
        (SkewClock(2_000, 0, 2_000), KillProcess(6_000, 0), KillProcess(9_000, 1)),
    )
    failed = judge(scenario)
    shrunk = shrink(failed, runs=60)
    assert shrunk.verdict.symptom == failed.symptom in ("exactly-once", "nothing-extra")
    assert [type(fault) for fault in shrunk.scenario.faults] == [KillProcess]
    assert shrunk.scenario.topology == "chain"
    assert judge(shrunk.scenario) == shrunk.verdict
