"""Behind a slow TaskManager: checkpoints that overtake barriers complete sooner, and are as exact."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.actors.barriers.input_gate import InputGate
from understudy.runtime.simulation.histories.history import Outcome, run_history
from understudy.runtime.simulation.histories.scenario import Scenario
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.world.faults import SlowProcess

from ..mutants.unaligned_mutants import held_up


def test_results_are_exact_when_what_was_in_flight_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    restored: list[int] = []
    restore = InputGate.restore

    def watched(self: InputGate, in_flight: Any) -> None:
        restored.append(sum(map(len, in_flight.values())))
        restore(self, in_flight)

    monkeypatch.setattr(InputGate, "restore", watched)
    for seed in range(12):
        outcome = run_history(held_up(seed))
        assert outcome.violations == (), seed
    assert any(restored), "nothing was in flight: these histories prove nothing"


def run(alignment_timeout_ms: int | None) -> Outcome:
    workload = Workload(
        records=140, records_per_second=7.1, checkpoint_interval_ms=500, alignment_timeout_ms=alignment_timeout_ms
    )
    return run_history(Scenario(1, "fan-in", workload, faults=(SlowProcess(2_000.0, 60_000.0, 0, extra_ms=900.0),)))


def test_more_checkpoints_complete_while_a_task_manager_is_slow() -> None:
    aligned, unaligned = run(None), run(0)
    assert aligned.violations == unaligned.violations == ()
    assert unaligned.checkpoints > 2 * aligned.checkpoints
