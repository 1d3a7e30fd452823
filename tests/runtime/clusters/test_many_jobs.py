"""Several jobs on one cluster, and jobs that are too large for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobFailed, LocalCluster, fixed_delay
from understudy.messages import JobId
from understudy.runtime.api.errors import ClusterTooSmall
from understudy.runtime.clusters.local_launcher import LocalLauncher
from understudy.runtime.clusters.template import Forked

from . import slots
from .jobs import (
    WAIT_S,
    Gate,
    Witness,
    all_names,
    counted,
    counting,
    counts_of,
    environment,
    eventually,
    kill,
    read_output,
)

StartCluster = Callable[..., LocalCluster]


def test_jobs_run_one_after_another(shared_cluster: LocalCluster) -> None:
    for count in (100, 0, 300):
        env = environment()
        counting(env, count, None).collect(name="all")
        job = shared_cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert counts_of(job.results("all")) == counted(count)


def test_jobs_run_side_by_side(shared_cluster: LocalCluster) -> None:
    jobs = []
    for count in (1000, 1500, 2000):
        env = environment()
        counting(env, count, 2000).collect(name="all")
        jobs.append((count, shared_cluster.submit(env, name=f"job-{count}")))
    for count, job in jobs:
        job.wait(timeout=WAIT_S)
        assert counts_of(job.results("all")) == counted(count)


@pytest.mark.slow
@pytest.mark.chaos
def test_a_kill_in_one_job_leaves_the_job_beside_it_alone(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster, gate = start_cluster(), Gate(tmp_path)
    jobs = []
    for _ in range(2):
        env = environment()
        counting(env, 2000, 2000, gate=gate).collect(name="all")
        job = cluster.submit(env)
        jobs.append((job, Witness(job)))
    (hurt, witness), (other, _) = jobs
    witness.checkpoints(2)
    witness.kill(witness.pids(2)[0])
    gate.open()
    assert hurt.wait(timeout=WAIT_S).restarts == 1
    assert other.wait(timeout=WAIT_S).restarts == 0
    for job, _ in jobs:
        assert counts_of(job.results("all")) == counted(2000)


@pytest.mark.chaos
def test_one_environment_submitted_twice_gives_two_jobs_that_may_share_a_folder(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    env, out, gate = environment(), tmp_path / "out", Gate(tmp_path)
    counting(env, 2000, 2000, gate=gate).sink_to(FileSink(str(out), "jsonl", shared=True))
    cluster = start_cluster()
    witness = Witness(first := cluster.submit(env, name="first"))
    second = cluster.submit(env, name="second")
    assert first.job_id != second.job_id
    witness.checkpoints(2)
    witness.kill(witness.pids(2)[0])
    gate.open()
    assert first.wait(timeout=WAIT_S).restarts == 1
    assert second.wait(timeout=WAIT_S).restarts == 0
    assert read_output(out, "jsonl") == counted(2000) + counted(2000)
    assert all_names(out) == set()


def test_more_parallelism_than_slots_is_refused_at_submit_with_the_numbers(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 100, None, parallelism=5).collect(name="all", parallelism=1)
    with pytest.raises(
        ClusterTooSmall, match=r"needs 5 slots.* has 2 \(2 TaskManagers with 1 slot each\).* is 5 in 'count'"
    ):
        shared_cluster.submit(env)


def test_operators_of_two_slot_sharing_groups_need_slots_of_both(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 100, None, slot_sharing_group="heavy").collect(name="all")
    with pytest.raises(ClusterTooSmall, match="needs 4 slots"):
        shared_cluster.submit(env)


def warmed(cluster: LocalCluster) -> LocalCluster:
    """It has run a job: its template process has imported everything, and TaskManagers need only be forked."""

    def has_run_a_job() -> bool:
        env = environment()
        counting(env, 10, None).collect(name="all")
        try:
            cluster.submit(env).wait(timeout=WAIT_S)
        except JobFailed:  # for want of slots, while the template still starts
            return False
        return True

    eventually(has_run_a_job, "a first job")
    return cluster


def test_slots_that_do_not_come_fail_the_job_with_the_numbers(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = LocalLauncher.start

    def only_the_first(self: LocalLauncher, job_id: JobId, index: int) -> None:
        if index == 0:
            begin(self, job_id, index)

    cluster = warmed(start_cluster(slot_timeout_ms=slots.LONG_MS))
    monkeypatch.setattr(LocalLauncher, "start", only_the_first)
    env = environment()
    counting(env, 100, None).collect(name="all")
    job = cluster.submit(env)
    slots.registered(cluster, job, 1)
    slots.give_up(cluster, job)
    told = f"NoResourceAvailable: after {slots.LONG_MS} ms: .* needs 2 slots, 1 are offered"
    with pytest.raises(JobFailed, match=told):
        job.wait(timeout=WAIT_S)


@pytest.mark.parametrize(
    ("gives_up", "told"),
    [(True, "needs 2 slots, 0 are offered.*"), (False, "no TaskManager can start.*")],
    ids=["slots are not waited for any longer", "they have ended again and again"],
)
def test_task_managers_that_cannot_start_fail_the_job_with_their_end(
    gives_up: bool,
    told: str,
    start_cluster: StartCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    prepare = LocalLauncher.prepare

    def broken(self: LocalLauncher, launch: Any) -> None:
        prepare(self, replace(launch, program=b"no program"))

    cluster = warmed(start_cluster(slot_timeout_ms=slots.LONG_MS))
    monkeypatch.setattr(LocalLauncher, "prepare", broken)
    env = environment()
    counting(env, 100, None).collect(name="all")
    job = cluster.submit(env)
    if gives_up:
        eventually(lambda: "ended before it registered" in caplog.text, "the end of a TaskManager")
        slots.give_up(cluster, job)
    with pytest.raises(
        JobFailed, match=rf"NoResourceAvailable.*{told}ended before it registered: .*exited with code 1"
    ):
        job.wait(timeout=WAIT_S)


@pytest.mark.slow
@pytest.mark.chaos
def test_a_cluster_that_forgets_old_jobs_serves_the_new_ones(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It remembers the last of them, here only one; jobs end by loss as well as by themselves."""
    monkeypatch.setattr("understudy.actors.job_manager.job_manager.ENDED_JOBS_KEPT", 1)
    cluster = start_cluster()
    for number, restart in enumerate((True, False, True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        gate = Gate(folder)
        env = environment(restart_strategy=fixed_delay(attempts=5 if restart else 0, delay_ms=0))
        counting(env, 1500, 2000, gate=gate).collect(name="all")
        job = cluster.submit(env)
        witness = Witness(job)
        witness.checkpoints(1)
        witness.kill(witness.pids(2)[0])
        gate.open()
        if restart:
            job.wait(timeout=WAIT_S)
            assert counts_of(job.results("all")) == counted(1500)
        else:
            with pytest.raises(JobFailed, match="TaskManagerLost"):
                job.wait(timeout=WAIT_S)


@pytest.mark.slow
@pytest.mark.chaos
def test_task_managers_that_are_killed_before_they_register_are_started_again(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    hear = LocalLauncher._hear

    def hear_and_kill(self: LocalLauncher, message: Any) -> None:
        if isinstance(message, Forked) and len(killed) < 4:
            killed.append(message.pid)
            kill(message.pid)
        hear(self, message)

    monkeypatch.setattr(LocalLauncher, "_hear", hear_and_kill)
    env = environment()
    counting(env, 500, None).collect(name="all")
    job = start_cluster().submit(env)
    job.wait(timeout=WAIT_S)
    assert len(killed) == 4
    assert counts_of(job.results("all")) == counted(500)


def test_user_code_of_many_megabytes_reaches_the_task_managers(shared_cluster: LocalCluster) -> None:
    """Larger than any message may be."""
    env = environment()
    ballast = os.urandom(30_000_000)
    env.generate(lambda index: index, 10).map(lambda index: (index, len(ballast))).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert sorted(job.results("all")) == [(index, 30_000_000) for index in range(10)]


def test_jobs_may_be_submitted_from_several_threads(shared_cluster: LocalCluster) -> None:
    def run(count: int) -> bool:
        env = environment()
        counting(env, count, None).collect(name="all")
        job = shared_cluster.submit(env)
        job.wait(timeout=WAIT_S)
        return counts_of(job.results("all")) == counted(count)

    with ThreadPoolExecutor() as pool:
        assert all(pool.map(run, (100, 200, 300)))
