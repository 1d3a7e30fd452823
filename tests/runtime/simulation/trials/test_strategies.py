"""Generated faults: valid, in order, and shrinking to few, simple, early ones."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from understudy import Operator, StreamEnvironment
from understudy.runtime.simulation.histories.topologies import TOPOLOGIES, Workload
from understudy.runtime.simulation.trials.strategies import ALL_KINDS, faults, topologies, workloads
from understudy.testing import (
    FAULTS,
    JOB_MANAGER,
    Fault,
    FullDisk,
    KillProcess,
    PowerFailure,
    Scenario,
    SimulatedCluster,
    TransactionalLog,
    fault_schedules,
    run_history,
    scenarios,
)

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def test_all_kinds_are_known() -> None:
    assert set(ALL_KINDS) == set(FAULTS)


@quick
@given(fault_schedules(task_managers=3, within_ms=5_000, max_faults=4))
def test_a_schedule_is_in_order_within_its_time_and_spares_the_job_manager(schedule: tuple[Fault, ...]) -> None:
    assert len(schedule) <= 4
    assert [fault.at_ms for fault in schedule] == sorted(fault.at_ms for fault in schedule)
    assert all(0 <= fault.at_ms <= 5_000 for fault in schedule)
    assert not any(isinstance(fault, KillProcess) and fault.who == JOB_MANAGER for fault in schedule)
    assert all(-1 <= getattr(fault, name, 0) < 3 for fault in schedule for name in ("who", "one", "other"))
    assert all(getattr(fault, "one", 0) != getattr(fault, "other", 1) for fault in schedule)


@quick
@given(fault_schedules(kinds=[PowerFailure, FullDisk]))
def test_only_the_kinds_that_are_asked_for(schedule: tuple[Fault, ...]) -> None:
    assert {type(fault) for fault in schedule} <= {PowerFailure, FullDisk}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_is_drawn(kind: type[Fault]) -> None:
    enough = settings(quick, max_examples=10_000, phases=[Phase.generate])  # one in a hundred is of the rarest kind
    assert type(find(faults(), lambda fault: type(fault) is kind, settings=enough)) is kind


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kinds: wanted some of"):
        fault_schedules(kinds=[int])  # type: ignore[list-item]


@quick
@given(workloads(), topologies())
def test_workloads_and_topologies_fit_the_simulator(workload: Workload, topology: str) -> None:
    assert workload.records >= 1
    assert topology in TOPOLOGIES


@settings(quick, max_examples=8)
@given(scenarios())
def test_generated_histories_run(scenario: Scenario) -> None:
    assert not run_history(scenario).violations


class Hasty(Operator):
    """A sink that shows everything at once, and so shows again what is replayed."""

    def process_batch(self, batch: Any, out: Any) -> None:
        TransactionalLog("out").write(batch)


def _written(schedule: tuple[Fault, ...]) -> list[int]:
    env = StreamEnvironment(checkpoint_interval_ms=1_000)
    env.from_collection(range(12), records_per_second=4, parallelism=1).sink_to(Hasty, parallelism=1)
    with SimulatedCluster(seed=0, faults=schedule) as cluster:
        job = cluster.submit(env)
        cluster.run_until(lambda: job.status.is_terminal)
        return sorted(TransactionalLog("out").committed())


def test_what_fails_shrinks_to_a_simple_early_fault() -> None:
    failing = find(
        fault_schedules(task_managers=1, within_ms=4_000),
        lambda schedule: _written(schedule) != list(range(12)),
        settings=settings(quick, max_examples=100, derandomize=True),
    )
    assert len(failing) == 1
    assert failing[0].at_ms < 2_000


def test_without_hypothesis_the_package_works_and_the_strategies_say_what_is_missing() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from understudy.testing import *\n"
        "assert_exactly_once, SimulatedCluster\n"
        "print('imported')\n"
        "fault_schedules()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "imported\n")
    assert "need Hypothesis: pip install 'understudy[testing]'" in done.stderr
