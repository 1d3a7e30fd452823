"""Themes of coroutines lead where they should: jobs go back with records in flight of all kinds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from understudy.actors.async_calls import frozen_calls, restored_calls
from understudy.actors.async_calls.frozen_calls import CallInFlight
from understudy.actors.flow.elements import NO_WATERMARK
from understudy.runtime.simulation.histories import async_themes, mix
from understudy.runtime.simulation.histories.actions import StopWithSavepoint
from understudy.runtime.simulation.histories.async_topologies import ASYNC
from understudy.runtime.simulation.histories.history import run_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.histories.verdict import judge

CASES = [
    (async_themes.asked_again, "answered", 3),
    (async_themes.asked_again, "bursts", 2),
    (async_themes.asked_again, "reminded", 4),
    (async_themes.asked_elsewhere, "asked", 1),
    (async_themes.asked_in_flight, "refused", 2),
]


def kind_of(call: CallInFlight) -> str:
    if call.results is not None:
        return "done"
    if call.behind_ms != NO_WATERMARK:
        return "behind a watermark"
    if call.tries:
        return "failed before"
    return "running" if call.identity else "waiting"


def test_jobs_go_back_with_records_in_flight_of_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    restored: Counter[str] = Counter()
    calls_of = frozen_calls.calls_of

    def counted(stored: object) -> list[CallInFlight]:
        calls = list(calls_of(stored))  # type: ignore[arg-type]
        restored.update(map(kind_of, calls))
        return calls

    monkeypatch.setattr(restored_calls, "calls_of", counted)
    for theme, topology, seed in CASES:
        assert not judge(replace(mix.themed(theme, seed), topology=topology)).violations

    assert min(restored[kind] for kind in ("done", "behind a watermark", "failed before", "running", "waiting")) > 0


@pytest.mark.parametrize("topology", sorted(ASYNC))
def test_nothing_is_wrong_with_a_job_to_which_nothing_happens(topology: str) -> None:
    verdict = judge(Scenario(1, topology))

    assert (verdict.status, verdict.violations) == ("finished", ())


@pytest.mark.parametrize("topology", sorted(ASYNC))
@pytest.mark.parametrize("drain", [False, True])
def test_a_job_that_is_stopped_may_leave_what_is_in_flight_to_its_savepoint_and_drained_it_leaves_nothing(
    topology: str, drain: bool
) -> None:
    workload = Workload(records=18, keys=3, parallelism=1, records_per_second=2.7)
    stop = StopWithSavepoint(at_ms=8_000.0, drain=drain)
    outcome = run_history(Scenario(seed=1, topology=topology, workload=workload, task_managers=1, actions=(stop,)))
    assert outcome.violations == ()
