"""A JobManager of its own that is killed: the next one goes on with its jobs, and with what waits in their inlets."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.free_port import free_port
from understudy import FileSink, StandaloneCluster
from understudy.messages import JobStatus

from ...prepared import Command
from ..clusters.jobs import (
    Gate,
    Witness,
    counted,
    counting,
    read_output,
    read_records,
    visible_files,
)
from .conftest import WAIT_S, eventually
from .yard import SUCCESSION, Yard, yard

__all__ = ["yard"]


def led_and_followed(yard: Yard, **more: str) -> tuple[Command, Command, Command, int]:
    """A leader, a TaskManager process, the leader's successor and its port. `more`: of the settings of jobs."""
    settings = SUCCESSION | {f"jobs.{key.replace('_', '-')}": value for key, value in more.items()}
    mode = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    port = free_port()
    leader, worker = yard.start("jobmanager", *mode), yard.start("taskmanager", *mode)
    other = ("-D", f"jobmanager.port={port}", "-D", f"run.dir={yard.folder / 'standby'}")
    standby = yard.shell.start("jobmanager", *mode, *other)
    yard.until_registered(worker)
    return leader, worker, standby, port


def test_a_second_jobmanager_goes_on_with_the_jobs_of_one_that_was_killed(yard: Yard) -> None:
    """By files of the shared folder: docs/high-availability.md. The TaskManager process follows the leader, and so do
    the client and its handle, and the tasks: none of them restarts.
    """
    leader, worker, standby, port = led_and_followed(yard)
    gate, out = Gate(yard.folder), yard.folder / "out"
    with StandaloneCluster(yard.file, flags=SUCCESSION) as cluster:
        env = yard.environment()
        counting(env, 1_000, 2_000.0, gate=gate).sink_to(FileSink(str(out), "jsonl"), name="out")
        job = cluster.submit(env, "numbers")
        Witness(job).checkpoints(2)
        running = {task.attempt_id for task in job.details().tasks}
        os.kill(leader.pid, signal.SIGKILL)
        (found,) = cluster.jobs()  # of the next leader
        assert (found.job_id, cluster.address.rpartition(":")[2]) == (job.job_id, str(port))
        job.ready().result(WAIT_S)
        eventually(lambda: {task.attempt_id for task in job.details().tasks} == running, "the same attempts")
        gate.open()
        job.wait(WAIT_S)
        assert job.status is JobStatus.FINISHED
        assert job.details().restarts == 0
        logged = yard.shell("logs", "numbers", "--jobmanager", cluster.address)
        assert "job 'numbers' goes on under this JobManager: all its tasks run, and none restarts" in logged.out
        assert read_output(out, "jsonl") == counted(1_000)
    assert yard.end(standby)[0] == 0
    assert yard.end(worker)[0] == 0


def test_a_job_whose_tasks_a_new_leader_looks_for_is_being_taken_over(yard: Yard) -> None:
    leader, worker, standby, _ = led_and_followed(yard, adoption_timeout_ms="3600000")
    with yard.file.open("a") as file:
        file.write("".join(f"{key}: {value}\n" for key, value in SUCCESSION.items()))
    with yard.cluster() as cluster:
        counting(env := yard.environment(), None, 500.0).collect(name="out")
        job = cluster.submit(env, "numbers")
        Witness(job).checkpoints(1)
        os.kill(leader.pid, signal.SIGKILL)
        os.kill(worker.pid, signal.SIGKILL)
        listed = yard.shell("list")
        assert f"{job.job_id}  numbers  being taken over" in listed.out, listed
        assert f"job {job.job_id} (numbers) is being taken over, " in yard.shell("cluster", "status").err
        canceled = yard.shell("cancel", "numbers")
        assert (canceled.code, "is canceled" in canceled.err) == (0, True), canceled
    assert yard.end(standby)[0] == 0


def test_what_is_sent_into_an_inlet_counts_once_though_the_leader_is_killed(yard: Yard) -> None:
    """The inlet that was opened before, the handle's events, and a savepoint afterwards."""
    leader, worker, standby, _ = led_and_followed(yard)
    out = yard.folder / "out"
    with StandaloneCluster(yard.file, flags=SUCCESSION) as cluster:
        env = yard.environment()
        env.from_inlet("numbers").sink_to(FileSink(str(out), "jsonl"), name="out")
        job = cluster.submit(env, "sending")
        witness, inlet = Witness(job), job.inlet("numbers")
        before = [inlet.send({"n": number}) for number in range(100)]
        before[-1].result(WAIT_S)
        witness.checkpoints(2)
        after = [inlet.send({"n": number}) for number in range(100, 150)]
        os.kill(leader.pid, signal.SIGKILL)
        after += [inlet.send({"n": number}) for number in range(150, 200)]
        assert [each.result(WAIT_S) for each in (*before, *after)] == list(range(1, 201))
        path = job.stop_with_savepoint().result(WAIT_S)
        assert Path(path).exists()
        job.wait(WAIT_S)
        written = [each["n"] for file in visible_files(out) for each in read_records(file, "jsonl")]
        assert sorted(written) == list(range(200))
    assert yard.end(standby)[0] == 0
    assert yard.end(worker)[0] == 0
