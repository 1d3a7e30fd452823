"""The story of a history: what a person reads of it, and nothing else."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from understudy.messages import CheckpointCompleted, CheckpointId, FailureCause, JobId
from understudy.runtime.simulation.histories.history import run_history
from understudy.runtime.simulation.histories.scenario import Scenario, random_faults, random_slow_process
from understudy.runtime.simulation.histories.story import tell, told_failure, told_fault
from understudy.runtime.simulation.histories.topologies import Workload
from understudy.runtime.simulation.world.faults import (
    FAULTS,
    JOB_MANAGER,
    FailingStorage,
    FreezeProcess,
    KillAtCheckpoint,
    KillProcess,
    Partition,
    SlowFiles,
)
from understudy.runtime.simulation.world.trace import Trace
from understudy.runtime.simulation.world.world import World

SMALL = Workload(records=20, parallelism=1, checkpoint_interval_ms=2_000)


def story_of(*faults: Any) -> list[str]:
    return list(tell(run_history(Scenario(3, "keyed", SMALL, 1, 1, faults)).trace))


def trace_of(*entries: tuple[float, str, str, Any]) -> Trace:
    world = SimpleNamespace(now_ms=0.0)
    trace = Trace(cast("World", world))
    for now_ms, who, what, details in entries:
        world.now_ms = now_ms
        trace.add(who, what, *details)
    return trace


def completed(number: int) -> tuple[float, str, str, Any]:
    event = CheckpointCompleted(JobId("job-1"), CheckpointId(number), 5, 100, 0, "path")
    return (1000.0 * number, "job", "CheckpointCompleted", (event,))


def test_a_recovery_is_told_from_the_fault_to_the_end() -> None:
    rest = iter(story_of(KillProcess(5_000, 0)))
    expected = [
        "job-manager  starts",
        "tm-0-1 is registered",
        "job          is running",
        "checkpoint 1 is complete",
        "tm-0-1       commits part-out-",
        "the world    FAULT: kill process (tm-0-1)",
        "tm-0-1       ends: SIGKILL",
        "job          tm-0-1 is lost: ",
        "job          is restarting: TaskManagerLost: ",
        "tm-0-2       starts",
        "tm-0-2       restores its tasks from checkpoint 2 (attempt 1)",
        "final checkpoint",
    ]
    for wanted in expected:
        assert any(wanted in line for line in rest), wanted
    left = "\n".join(rest)  # in either order: the process ends while the client hears of the job's end
    assert "job          is finished" in left
    assert "tm-0-2       ends: the job is finished" in left


def test_every_line_is_short_and_says_when() -> None:
    for line in story_of(FailingStorage(4_000, 3_000, 0.5), FreezeProcess(9_000, 4_000, 0)):
        assert len(line) < 200
        assert "job_id=" not in line
        assert "…" in line[:20] or float(line[:10]) >= 0


def test_the_end_of_a_fault_names_whom_its_beginning_named() -> None:
    told = [line for line in story_of(FreezeProcess(5_000, 8_000, 0)) if "freeze process" in line]
    assert [line[27:] for line in told] == [
        "FAULT: freeze process (tm-0-1, for 8 s)",
        "over: freeze process (tm-0-1, for 8 s)",
    ]


def test_faults_are_told_in_words() -> None:
    assert told_fault(KillProcess(7, JOB_MANAGER)) == "kill process (job-manager)"
    assert told_fault(Partition(7, 2_500, 0, JOB_MANAGER, True)) == (
        "partition (TaskManager 0, job-manager, one way, for 2.5 s)"
    )


def test_every_kind_of_fault_is_told_without_its_class_and_moment() -> None:
    seen = set()
    for seed in range(200):
        chance = random.Random(seed)
        slow = (
            random_slow_process(chance, 2, 10_000),
            SlowFiles(1_000.0, 500.0, 1, extra_ms=250.0),
            KillAtCheckpoint(1.0),
        )
        for fault in (*random_faults(chance, 2, 10_000), *slow):
            seen.add(type(fault))
            assert type(fault).__name__ not in told_fault(fault)
            assert "at_ms" not in told_fault(fault)
    assert seen == set(FAULTS)


def test_what_repeats_itself_is_told_at_its_beginning_and_its_end() -> None:
    lines = list(tell(trace_of(*map(completed, range(1, 31)))))
    assert [line.strip() for line in lines] == [
        "1.000 s  job          checkpoint 1 is complete",
        "… 28 more times like this …",
        "30.000 s  job          checkpoint 30 is complete",
    ]


def test_faults_and_violations_are_never_left_out() -> None:
    faults = [(float(n), "the world", "fault", (KillProcess(n, n % 2),)) for n in range(10)]
    violations = [(20.0 + n, "the oracle", "violation", ("liveness", f"problem {n}")) for n in range(10)]
    lines = list(tell(trace_of(*faults, *violations)))
    assert len(lines) == 20


@pytest.mark.parametrize(
    ("what", "told"),
    [("rename", ["commits part-1"]), ("rename refused", ["cannot commit part-1"]), ("write", [])],
)
def test_a_commit_is_a_rename_out_of_a_hidden_folder(what: str, told: list[str]) -> None:
    trace = trace_of((1, "tm-0-1", what, ("/out/.hidden/1.records", "/out/part-1")))
    assert [line[27:] for line in tell(trace)] == told


def test_other_renames_are_not_told() -> None:
    assert not list(tell(trace_of((1, "job-manager", "rename", ("/chk-1/.writing", "/chk-1/_metadata")))))


def test_a_failure_without_a_text_is_told_by_its_type() -> None:
    assert told_failure(FailureCause("AssertionError", "", vertex_name="map")) == "map AssertionError"
