"""A cluster of real processes whose understudy.yaml names a ZooKeeper with a user and certificates."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.free_port import free_port
from understudy import FileSink, StandaloneCluster
from understudy.messages import JobStatus

from ...systems.secured_zookeeper import PASSWORD, USER, ZOOKEEPER, SecuredZooKeeper, credentials, sasl
from ..clusters.jobs import Gate, Witness, counted, counting, read_output
from .conftest import WAIT_S, Shell
from .yard import Yard


@pytest.fixture
def yard(shell: Shell, secured_zookeeper: SecuredZooKeeper, shipped_by_value: None) -> Yard:
    yard = Yard(shell)
    settings = {
        "recovery.mode": "zookeeper",
        "high-availability.session-timeout-ms": "2000",
        f"{ZOOKEEPER}quorum": secured_zookeeper.secure,
        f"{ZOOKEEPER}path.root": f"/{shell.folder.name}-{os.getpid()}",
        f"{ZOOKEEPER}client.acl": "creator",
        **secured_zookeeper.tls(),
        **sasl(shell.folder / "user"),
    }
    with yard.file.open("a") as file:
        file.writelines(f"{key}: {value}\n" for key, value in settings.items())
    return yard


def test_a_job_is_exact_though_the_leader_is_killed(yard: Yard) -> None:
    leader, worker = yard.start("jobmanager"), yard.start("taskmanager")
    yard.until_registered(worker)
    port = str(free_port())
    other = ("-D", f"jobmanager.port={port}", "-D", f"run.dir={yard.folder / 'standby'}")
    standby = yard.shell.start("jobmanager", *other)
    for process in (leader, worker, standby):
        assert not any(PASSWORD in part for part in psutil.Process(process.pid).cmdline())
    gate, out = Gate(yard.folder), yard.folder / "out"
    with StandaloneCluster(yard.file) as cluster:
        env = yard.environment()
        counting(env, 1_000, 2_000.0, gate=gate).sink_to(FileSink(str(out), "jsonl"), name="out")
        job = cluster.submit(env, "numbers")
        Witness(job).checkpoints(2)
        os.kill(leader.pid, signal.SIGKILL)
        (found,) = cluster.jobs()  # of the next leader
        assert (found.job_id, cluster.address.rpartition(":")[2]) == (job.job_id, port)
        gate.open()
        job.wait(WAIT_S)
        assert job.status is JobStatus.FINISHED
        assert read_output(out, "jsonl") == counted(1_000)
    assert yard.shell("list").code == 0
    assert yard.end(standby)[0] == 0
    assert yard.end(worker)[0] == 0
    logs = "".join(path.read_text() for path in (yard.folder / "log").iterdir())
    assert PASSWORD not in logs


@pytest.mark.parametrize("role", ["jobmanager", "taskmanager", "list"])
def test_a_wrong_password_and_a_missing_file_end_each_command_with_what_to_do(yard: Yard, role: str) -> None:
    credentials(yard.folder / "user", f"{USER}:guessed")
    done = yard.shell(role)
    assert done.code == 1
    assert "refuses the user of" in done.err
    assert "Correct high-availability.zookeeper.auth-file" in done.err
    assert "guessed" not in done.err
    (yard.folder / "user").unlink()
    done = yard.shell(role)
    assert done.code == 1
    assert "high-availability.zookeeper.auth-file: " in done.err
    assert "cannot be read: No such file or directory" in done.err
