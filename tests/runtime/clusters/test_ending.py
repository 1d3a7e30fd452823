"""How jobs and clusters end, whoever ends them: quickly, and with nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from understudy import FileSink, JobCanceled, JobFailed, JobHandle, JobStatus, LocalCluster, fixed_delay
from understudy.actors.jobs.job_master import JobMaster
from understudy.actors.operators.collector import Collector
from understudy.runtime.clusters.job_errors import JobLost

from .conftest import MARK, processes_of
from .jobs import (
    WAIT_S,
    Counting,
    Mark,
    Witness,
    all_names,
    assert_no_gap,
    counting,
    counts_of,
    environment,
    eventually,
    kill,
)

pytestmark = pytest.mark.every_run

StartCluster = Callable[..., LocalCluster]


def endless(cluster: LocalCluster, **settings: Any) -> tuple[JobHandle, Witness]:
    env = environment(**settings)
    counting(env, None, 2000).collect(name="all")
    job = cluster.submit(env)
    return job, Witness(job)


def forks_at_three(folder: str, *, stays: bool) -> Callable[[int], int]:
    """The child stays in the operator, or it comes back: in a process that has no other thread."""

    def fork(number: int) -> int:
        if number == 3 and os.fork() == 0:
            Path(folder, "child").write_text(str(os.getpid()))
            while stays:
                time.sleep(1)
            return -1
        return number

    return fork


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody inherits orphans")
@pytest.mark.parametrize("stays", [True, False])
def test_what_user_code_forks_changes_no_result_and_ends_with_its_taskmanager(
    shared_cluster: LocalCluster, tmp_path: Path, stays: bool
) -> None:
    env = environment()
    numbers = env.from_collection(range(20), parallelism=1, records_per_second=50)
    numbers.map(forks_at_three(str(tmp_path), stays=stays)).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    assert sorted(job.results("all")) == list(range(20))
    pid = int((tmp_path / "child").read_text())
    eventually(lambda: not psutil.pid_exists(pid), "the end of the forked process")


def returns_a_child(number: int) -> int:
    if number == 3 and os.fork() == 0:
        return -1
    return number


def test_a_forked_child_that_comes_back_to_its_task_is_ended_with_a_text(capfd: pytest.CaptureFixture[str]) -> None:
    """Had it gone on, it would write into the files that the task writes."""
    env = environment()
    env.from_collection(range(6), parallelism=1).map(returns_a_child, name="splits").collect(name="all")
    with LocalCluster(task_managers=1) as cluster:
        job = cluster.submit(env)
        job.wait(timeout=WAIT_S)
        assert sorted(job.results("all")) == list(range(6))
    assert re.search(
        r"user code of .*'splits'.* has forked process \d+, and its child \d+ came back", capfd.readouterr().err
    )


# ---------------------------------------------------------------------------------------------- cancel and stop


def test_a_canceled_job_says_so_and_its_processes_end(shared_cluster: LocalCluster) -> None:
    job, witness = endless(shared_cluster)
    pids = witness.pids(2).values()
    witness.checkpoints(2)
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    assert job.status is JobStatus.CANCELED
    for pid in pids:
        eventually(lambda pid=pid: not psutil.pid_exists(pid), f"the end of {pid}")
    job.cancel().result(timeout=WAIT_S)
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    witness.status(JobStatus.CANCELED)
    assert witness.statuses() == [JobStatus.RUNNING, JobStatus.CANCELLING, JobStatus.CANCELED]


def test_a_canceled_job_keeps_what_it_committed_and_nothing_else(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    """A checkpoint under way would leave what it had pre-committed: so there is none for five seconds after it.

    One that is complete is announced to us before each sink has committed it: so the first file of each is waited for.
    """
    env, out = environment(checkpoint_interval_ms=5_000), tmp_path / "out"
    counting(env, None, 2000).sink_to(FileSink(str(out), "jsonl"))
    job = shared_cluster.submit(env)
    Witness(job).checkpoints(1)
    eventually(lambda: not any(name.endswith("-1.jsonl") for name in all_names(out)), "committed files")
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    assert any(out.iterdir())
    assert all_names(out) == set()


def test_a_job_can_be_canceled_before_it_runs(shared_cluster: LocalCluster) -> None:
    job, _ = endless(shared_cluster)
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


@pytest.mark.chaos
def test_a_job_can_be_canceled_while_it_waits_for_its_restart(start_cluster: StartCluster) -> None:
    job, witness = endless(start_cluster(), restart_strategy=fixed_delay(attempts=5, delay_ms=600_000))
    witness.checkpoints(1)
    witness.kill(witness.pids(2)[0])
    witness.status(JobStatus.RESTARTING)
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


def test_a_job_can_be_canceled_while_it_waits_for_slots(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.runtime.clusters.local_launcher.LocalLauncher.start", lambda *_: None)
    job, _ = endless(start_cluster())
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)


def test_a_stopped_job_takes_its_final_checkpoint_and_its_result_has_no_gap(shared_cluster: LocalCluster) -> None:
    job, witness = endless(shared_cluster)
    witness.checkpoints(3)
    job.stop()
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert_no_gap(counts_of(job.results("all")))


@pytest.mark.chaos
def test_a_job_that_is_killed_while_it_stops_has_no_gap_either(start_cluster: StartCluster) -> None:
    job, witness = endless(start_cluster())
    witness.checkpoints(3)
    pid = witness.pids(2)[0]
    job.stop()
    kill(pid)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert_no_gap(counts_of(job.results("all")))


def test_canceling_a_finished_job_changes_nothing(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 100, None).collect(name="all")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    job.cancel().result(timeout=WAIT_S)
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert sum(counts_of(job.results("all")).values()) == 100


# ------------------------------------------------------------------------------------------------- blocking code


class Blocking(Counting):
    """Blocks its task for a minute, where nothing but the end of the process ends it."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark

    def process(self, record: int, out: Collector) -> None:
        if record == 100 and self.mark.take():
            time.sleep(60)
        super().process(record, out)


def test_blocking_user_code_is_canceled_by_the_end_of_its_process(start_cluster: StartCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "blocks")
    env = environment()
    counting(env, None, 2000, Blocking(mark)).collect(name="all")
    job = start_cluster(cancel_timeout_ms=300).submit(env)
    pid = mark.wait()
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    eventually(lambda: not psutil.pid_exists(pid), "the end of the blocked process")


@pytest.mark.chaos
def test_blocking_user_code_does_not_hold_a_restart_up(start_cluster: StartCluster, tmp_path: Path) -> None:
    """Another TaskManager dies; the task that blocks must make way."""
    mark = Mark(tmp_path, "blocks")
    env = environment()
    counting(env, 2000, 2000, Blocking(mark)).collect(name="all")
    job = start_cluster(cancel_timeout_ms=300).submit(env)
    witness = Witness(job)
    blocked = mark.wait()
    witness.kill(next(pid for pid in witness.pids(2).values() if pid != blocked))
    assert job.wait(timeout=WAIT_S).status is JobStatus.FINISHED


@pytest.mark.slow
def test_a_cluster_closes_over_blocking_user_code(start_cluster: StartCluster, tmp_path: Path) -> None:
    mark = Mark(tmp_path, "blocks")
    env = environment()
    counting(env, None, 2000, Blocking(mark)).collect(name="all")
    cluster = start_cluster()
    cluster.submit(env)
    pid = mark.wait()
    cluster.close()
    assert not psutil.pid_exists(pid)


# ---------------------------------------------------------------------------------------------- the cluster's end


def test_closing_the_cluster_ends_a_running_job_and_whoever_waits_for_it(start_cluster: StartCluster) -> None:
    cluster = start_cluster()
    job, witness = endless(cluster)
    witness.checkpoints(1)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            job.wait()
        except (JobCanceled, JobLost) as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    cluster.close()
    waiting.join(timeout=WAIT_S)
    assert len(raised) == 1
    with pytest.raises((JobCanceled, JobLost)):
        job.wait(timeout=WAIT_S)
    cluster.close()


def test_a_job_is_told_lost_when_its_job_manager_fails(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken invariant ends the JobManager; nobody may wait for ever, and its TaskManagers end by themselves."""
    job, witness = endless(start_cluster())
    pids = witness.pids(2).values()
    witness.checkpoints(1)

    def broken(*_: Any) -> None:
        raise AssertionError("an invariant is broken")

    monkeypatch.setattr(JobMaster, "on", broken)
    with pytest.raises(JobLost, match="an invariant is broken"):
        job.wait(timeout=WAIT_S)
    for pid in pids:
        eventually(lambda pid=pid: not psutil.pid_exists(pid), f"the end of {pid}")


# ----------------------------------------------------------------------------- scripts that are interrupted or killed

SCRIPT = """
import os, sys, time
from understudy import KeyedOperator, LocalCluster, StreamEnvironment, ValueState

class Blocking(KeyedOperator):
    seen = ValueState(int, default=0)
    def __init__(self, kind):
        self.kind = kind
    def process(self, record, out):
        if record == 100 and self.kind == "blocking":
            print("blocks", flush=True)
            time.sleep(600)
        out.collect(record)

env = StreamEnvironment(checkpoint_interval_ms=50)
stream = env.generate(lambda index: index, records_per_second=2000)
stream.key_by(lambda index: index % 8).process(Blocking(sys.argv[1])).collect(name="all")
with LocalCluster(task_managers=2) as cluster:
    job = cluster.submit(env)
    job.on_event(lambda event: print(type(event).__name__, flush=True))
    job.wait()
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run SCRIPT in a process group of its own, as a shell does, until it has said a word. Two of its threads print, so
    one may write between another one's text and the end of its line.
    """
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    running: list[subprocess.Popen[str]] = []

    def run(kind: str, until: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(path), kind],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        assert process.stdout is not None
        assert any(until in line for line in process.stdout), process.communicate()[1]
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def processes() -> list[psutil.Process]:
    return processes_of(os.environ[MARK])


@pytest.mark.parametrize("kind", ["plain", "blocking"])
def test_ctrl_c_ends_everything_whatever_user_code_does_and_with_code_130(
    script: Callable[..., subprocess.Popen[str]], nothing_is_left: Path, kind: str
) -> None:
    process = script(kind, until="blocks" if kind == "blocking" else "CheckpointCompleted")
    assert len(processes()) >= 4, "the script, its template and two TaskManagers"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode in (130, -signal.SIGINT), errors  # a shell shows both as 130
    assert processes() == []
    assert os.listdir(nothing_is_left) == []
    assert errors.count("Traceback") == 1, errors


@pytest.mark.slow
def test_ctrl_c_twice_ends_everything_too(script: Callable[..., subprocess.Popen[str]], nothing_is_left: Path) -> None:
    process = script("blocking", until="blocks")
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=WAIT_S)
    assert process.returncode in (130, -signal.SIGINT)
    eventually(lambda: processes() == [], "the end of all processes")
    assert os.listdir(nothing_is_left) == []


@pytest.mark.chaos
@pytest.mark.parametrize("kind", ["plain", pytest.param("blocking", marks=pytest.mark.slow)])
def test_when_the_driver_is_killed_everything_else_ends_by_itself(
    script: Callable[..., subprocess.Popen[str]], nothing_is_left: Path, kind: str
) -> None:
    process = script(kind, until="blocks" if kind == "blocking" else "CheckpointCompleted")
    process.kill()
    process.communicate()
    eventually(lambda: processes() == [], "the end of all processes")
    eventually(lambda: os.listdir(nothing_is_left) == [], "the end of the temporary files")


@pytest.mark.chaos
def test_a_job_that_fails_for_lost_processes_says_how_they_ended_and_leaves_none(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    env, out = environment(restart_strategy=fixed_delay(attempts=1, delay_ms=0)), tmp_path / "out"
    counting(env, None, 2000).sink_to(FileSink(str(out), "jsonl"))
    job = start_cluster().submit(env)
    witness = Witness(job)
    for _ in range(2):
        witness.checkpoints(2)
        pids = witness.pids(2)
        witness.kill(pids[0])
    with pytest.raises(JobFailed, match="TaskManagerLost"):
        job.wait(timeout=WAIT_S)
    eventually(lambda: "SIGKILL" in job.details().failures[-1].error_message, "how the process ended")
    for pid in pids.values():
        eventually(lambda pid=pid: not psutil.pid_exists(pid), f"the end of {pid}")


def closed_behind(cluster: LocalCluster, folder: Path, order: Callable[[JobHandle], object]) -> JobHandle:
    """A job whose cluster closes at once behind that order."""
    with cluster:
        env = environment(parallelism=1, checkpoint_dir=str(folder / "checkpoints"))
        counting(env, None, 500.0).sink_to(FileSink(str(folder / "out"), "jsonl"), name="out")
        job = cluster.submit(env)
        job.ready().result(timeout=WAIT_S)
        order(job)
    return job


def test_a_job_that_was_stopped_with_a_savepoint_finishes_before_its_cluster_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The savepoint is there a moment before the job's end."""
    job = closed_behind(LocalCluster(1), tmp_path, lambda job: job.stop_with_savepoint().result(timeout=WAIT_S))
    assert job.status is JobStatus.FINISHED
    assert "is canceled" not in caplog.text


def test_a_job_that_is_being_stopped_finishes_before_its_cluster_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was canceled, with what had been acknowledged to it, and the log advised to stop it with a savepoint."""
    job = closed_behind(LocalCluster(1), tmp_path, lambda job: job.stop())
    if "is canceled" in caplog.text:  # on a busy machine closing does not wait for it long enough, and says so
        assert "it was being stopped: wait for its end behind job.stop(), with `await job`" in caplog.text
    else:
        assert job.status is JobStatus.FINISHED
