"""What the user does in a history: savepoints, stops, restarts, disposals; drawn, done, told and judged."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from understudy.runtime.simulation.histories.actions import (
    ACTIONS,
    CancelWithSavepoint,
    DisposeSavepoint,
    RestartFromCheckpoint,
    RestartFromDrained,
    RestartFromSavepoint,
    StopWithSavepoint,
    TakeCheckpoint,
    TakeSavepoint,
    random_actions,
)
from understudy.runtime.simulation.histories.history import Outcome, run_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.story import tell, told_fault
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.world.faults import KillProcess, RottenFile

SMALL = Workload(records=20, parallelism=2, checkpoint_interval_ms=2_000)


def outcome_of(*actions: Any, faults: tuple[Any, ...] = (), topology: str = "keyed") -> Outcome:
    outcome = run_history(Scenario(3, topology, SMALL, 2, 2, faults, actions=actions))
    assert not outcome.violations
    return outcome


def told(outcome: Outcome) -> list[str]:
    return [line[14:] for line in tell(outcome.trace)]


def submitted(outcome: Outcome) -> int:
    return sum("is running" in line for line in told(outcome))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_job_that_was_stopped_goes_on(parallelism: int) -> None:
    outcome = outcome_of(StopWithSavepoint(5_000), RestartFromSavepoint(5_000, parallelism))
    assert outcome.status == "finished"
    assert submitted(outcome) == 2
    assert outcome.actions == Counter({"StopWithSavepoint": 1, "RestartFromSavepoint": 1})


def test_a_job_that_was_cancelled_goes_on() -> None:
    outcome = outcome_of(CancelWithSavepoint(5_000), RestartFromSavepoint(6_000, 1))
    assert (outcome.status, submitted(outcome)) == ("finished", 2)


@pytest.mark.parametrize("topology", ["keyed", "two-inputs", "columnar"])
def test_a_job_goes_on_from_the_checkpoint_that_it_leaves(topology: str) -> None:
    workload = replace(SMALL, retain_checkpoints="on_cancellation")
    outcome = run_history(Scenario(3, topology, workload, 2, 2, actions=(RestartFromCheckpoint(6_000),)))
    assert (outcome.status, outcome.violations, submitted(outcome)) == ("finished", (), 2)


def test_a_job_that_leaves_nothing_is_left_alone() -> None:
    outcome = outcome_of(RestartFromCheckpoint(6_000))
    assert (outcome.status, submitted(outcome)) == ("finished", 1)


def test_a_job_goes_on_where_an_older_savepoint_was_taken() -> None:
    """What it had committed since then does not count."""
    outcome = outcome_of(TakeSavepoint(3_000), RestartFromSavepoint(8_000, 3))
    assert (outcome.status, submitted(outcome)) == ("finished", 2)


def test_nothing_takes_the_place_of_a_job_that_has_no_savepoint() -> None:
    outcome = outcome_of(RestartFromSavepoint(5_000, 1), DisposeSavepoint(6_000, 0))
    assert (outcome.status, submitted(outcome)) == ("finished", 1)
    assert not outcome.actions


@pytest.mark.parametrize("topology", ["keyed", "columnar"])
def test_a_job_that_is_drained_tells_what_it_has_seen(topology: str) -> None:
    outcome = outcome_of(StopWithSavepoint(5_000, drain=True), topology=topology)
    assert outcome.status == "finished"
    assert outcome.virtual_ms < 60_000 + SMALL.duration_ms


def test_a_savepoint_of_a_job_that_has_ended_is_refused() -> None:
    outcome = outcome_of(TakeSavepoint(60_000))
    assert any("gets the answer to take savepoint" in line for line in told(outcome))


def test_a_savepoint_may_be_disposed_of_while_the_job_that_was_restored_from_it_needs_it() -> None:
    actions = [StopWithSavepoint(5_000), RestartFromSavepoint(5_000, 1), DisposeSavepoint(6_000, 0)]
    outcome = outcome_of(*actions, faults=(KillProcess(7_000.0, 0), KillProcess(7_000.0, 1)))
    assert outcome.status == "finished"


def test_the_story_tells_what_the_user_does_and_hears() -> None:
    outcome = outcome_of(TakeSavepoint(3_000), StopWithSavepoint(6_000), RestartFromSavepoint(7_000, 1))
    rest = iter(told(outcome))
    for wanted in (
        "the user     asks: take savepoint",
        "the user     gets the answer to take savepoint: savepoint-",
        "the user     asks: stop with savepoint",
        "the user     gets the answer to stop with savepoint: savepoint-",
        "is finished",
        "the user     asks: restart from savepoint (parallelism 1) of savepoint-",
        "is running",
        "is finished",
    ):
        assert any(wanted in line for line in rest), wanted


def test_every_kind_of_action_is_drawn_and_told_without_its_class_and_moment() -> None:
    seen = set()
    for seed in range(100):
        actions = random_actions(random.Random(seed), 10_000)
        assert list(actions) == sorted(actions, key=lambda action: action.at_ms)
        for action in actions:
            seen.add(type(action))
            assert type(action).__name__ not in told_fault(action)
            assert "at_ms" not in told_fault(action)
    assert seen == set(ACTIONS) - {RestartFromDrained, TakeCheckpoint}, "a theme draws the one, a scenario the other"


def test_checkpoints_that_somebody_asks_for_are_drawn_apart() -> None:
    scenarios = [Scenario.of(seed, "keyed") for seed in range(100)]
    asked = [[each for each in one.actions if isinstance(each, TakeCheckpoint)] for one in scenarios]
    assert 15 < sum(map(bool, asked)) < 45
    assert any(each.full for one in asked for each in one)
    assert any(len({each.at_ms for each in one}) < len(one) for one in asked), "several at once"


def test_a_checkpoint_is_taken_when_the_user_asks() -> None:
    """Three at once: while one is under way the others wait for it, and get one together."""
    outcome = outcome_of(*(TakeCheckpoint(3_100.0, full) for full in (False, True, False)))
    assert outcome.status == "finished"
    answers = [line.rpartition("chk-")[2].split()[0] for line in told(outcome) if "answer to take checkpoint" in line]
    assert len(answers) == 3
    assert len(set(answers)) == 2
    assert any("asks: take checkpoint (full)" in line for line in told(outcome))


@pytest.mark.parametrize("seed", range(20))
def test_a_scenario_as_python_is_the_same_scenario(seed: int) -> None:
    scenario = Scenario.of(seed)
    names: dict[str, Any] = {}
    program = scenario.as_python().replace("outcome = run_history(", "found = (").rpartition("print")[0]
    exec(program, names)
    assert names["found"] == scenario


def test_the_cluster_has_room_for_every_job() -> None:
    for seed in range(300):
        scenario = Scenario.of(seed)
        assert scenario.task_managers * scenario.slots >= scenario.job_parallelism


def leaving(seed: int) -> Scenario:
    """Any topology, and any faults but rot: what jobs leave is gone on from twice, with a savepoint at some time."""
    standard = Scenario.of(seed)
    duration_ms = standard.workload.duration_ms
    scenario = replace(
        standard,
        workload=replace(standard.workload, retain_checkpoints="on_cancellation"),
        actions=(
            RestartFromCheckpoint(0.4 * duration_ms),
            TakeSavepoint((0.4 + 0.03 * seed) * duration_ms),
            RestartFromCheckpoint(0.8 * duration_ms),
        ),
        faults=tuple(fault for fault in standard.faults if not isinstance(fault, RottenFile)),
    )
    return replace(scenario, slots=-(-scenario.job_parallelism // scenario.task_managers))


def test_jobs_go_on_from_what_others_have_left_whatever_goes_wrong() -> None:
    """A job that has no checkpoint yet is left alone."""
    outcomes = [run_history(leaving(seed)) for seed in range(10)]
    assert [outcome.violations for outcome in outcomes if outcome.violations] == []
    assert sum(outcome.actions["RestartFromCheckpoint"] for outcome in outcomes) >= 5
