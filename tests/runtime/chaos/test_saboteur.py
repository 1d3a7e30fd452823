"""The saboteur, fed with events; its victims are real processes that sleep."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from understudy.messages import (
    CheckpointCompleted,
    CheckpointId,
    ExecutionAttemptId,
    FirstBatchProcessed,
    JobId,
    SubtaskIndex,
    TaskManagerChanged,
    TaskManagerId,
    VertexId,
)
from understudy.runtime.chaos.saboteur import Saboteur

WAIT_S = 120
JOB = JobId("job")
Victims = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def victim() -> Iterator[Victims]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def task_manager(pid: int, life: int, registered: bool = True, at_ms: int = 0) -> TaskManagerChanged:
    return TaskManagerChanged(JOB, TaskManagerId(f"tm-0-{life}"), 0, pid, registered, "", at_ms)


def checkpoint(final: bool = False) -> CheckpointCompleted:
    return CheckpointCompleted(JOB, CheckpointId(1), 5, 10, 0, "", final)


def first_batch(attempt: int, at_ms: int = 0) -> FirstBatchProcessed:
    return FirstBatchProcessed(JOB, ExecutionAttemptId("a"), VertexId("v"), SubtaskIndex(0), attempt, at_ms)


def feed(saboteur: Saboteur, *events: Any) -> None:
    for event in events:
        saboteur.on_event(event)


def test_a_recovery_runs_from_the_kill_to_the_first_batch_of_a_newer_attempt(victim: Victims) -> None:
    said: list[str] = []
    saboteur = Saboteur(1, pause_s=(0, 0), say=lambda what, _: said.append(what))
    process = victim()
    feed(saboteur, task_manager(process.pid, 1), first_batch(0), checkpoint())
    assert process.wait(WAIT_S) == -signal.SIGKILL
    feed(saboteur, first_batch(0), task_manager(process.pid, 1, registered=False, at_ms=11))
    assert saboteur.recoveries == []
    feed(saboteur, task_manager(1, 2, at_ms=12), first_batch(1, at_ms=2**42), first_batch(1, at_ms=2**43))
    (recovery,) = saboteur.recoveries
    assert (recovery.lost_ms, recovery.registered_ms, recovery.first_batch_ms) == (11, 12, 2**42)
    assert saboteur.recovery_ms == [2**42 - recovery.killed_ms]
    assert [what.split()[0] for what in said] == ["kill", "recovered:"]


def test_late_batches_of_the_attempt_that_was_killed_are_no_recovery(victim: Victims) -> None:
    saboteur = Saboteur(2, pause_s=(0, 0))
    for life in (1, 2):
        process = victim()
        feed(saboteur, task_manager(process.pid, life), checkpoint())
        assert process.wait(WAIT_S) == -signal.SIGKILL
        feed(saboteur, task_manager(process.pid, life, registered=False), first_batch(life - 1, at_ms=2**42))
        assert len(saboteur.recoveries) == life - 1
        feed(saboteur, first_batch(life, at_ms=2**42))
    assert saboteur.killed == len(saboteur.recoveries) == 2


def test_it_kills_no_more_than_it_was_told_and_not_while_the_job_recovers(victim: Victims) -> None:
    saboteur = Saboteur(2, pause_s=(0, 0))
    first, second = victim(), victim()
    feed(saboteur, task_manager(first.pid, 1), checkpoint())
    assert first.wait(WAIT_S) == -signal.SIGKILL
    feed(
        saboteur, task_manager(first.pid, 1, registered=False), task_manager(second.pid, 2), checkpoint(), checkpoint()
    )
    assert saboteur._timer is None
    feed(saboteur, first_batch(1))
    saboteur.stop()
    feed(saboteur, checkpoint())
    assert saboteur._timer is None
    assert second.poll() is None


def test_a_final_checkpoint_provokes_no_kill() -> None:
    saboteur = Saboteur(1, pause_s=(0, 0))
    feed(saboteur, task_manager(1, 1), checkpoint(final=True))
    assert saboteur._timer is None


def test_a_victim_that_is_gone_already_does_not_count(victim: Victims) -> None:
    process = victim()
    process.kill()
    process.wait()
    saboteur = Saboteur(1, pause_s=(0, 0))
    feed(saboteur, task_manager(process.pid, 1), checkpoint())
    timer = saboteur._timer
    if timer is not None:
        timer.join(WAIT_S)
    assert (saboteur.killed, saboteur.recoveries) == (0, [])
