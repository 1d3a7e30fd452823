"""Processes that stand alone, as users start them: a TaskManager process that is killed costs no record, one whose
JobManager is away waits for it, and each ends as it is asked to.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.free_port import free_port
from understudy import FileSink, JobFailed, StandaloneCluster, asgi_app
from understudy.messages import JobStatus, JobSummary
from understudy.runtime.clusters.remote_errors import NoAnswer
from understudy.runtime.hosts.standing_process import running_processes
from understudy.runtime.web.server import WebServer
from understudy.state import CheckpointStorage
from understudy.state.keyring import VARIABLE as KEYS
from understudy.state.keyring import is_sealed

from ...prepared import Prepared
from ..clusters.jobs import Gate, Witness, counted, counting, counts_of, read_output
from ..clusters.test_web import ask
from ..clusters.test_web_restart import settled as restarted
from .conftest import WAIT_S
from .yard import Yard, yard

__all__ = ["yard"]

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cluster.md").read_text()


def test_a_killed_taskmanager_process_costs_no_record(yard: Yard) -> None:
    """Its slots are taken by another one: issue 17, a host's loss."""
    yard.start("jobmanager")
    first, second = yard.start("taskmanager"), yard.start("taskmanager")
    yard.until_registered(first)
    yard.until_registered(second)
    gate = Gate(yard.folder)
    with yard.cluster() as cluster:
        env = yard.environment(parallelism=2)
        counting(env, 2_000, 2_000.0, gate=gate).collect(name="out")
        job = cluster.submit(env, "numbers")
        witness = Witness(job)
        witness.checkpoints(2)
        hosts = cluster.hosts().hosts
        assert [len(host.task_managers) for host in hosts] == [1, 1], "spread over both"
        os.kill(first.pid, signal.SIGKILL)
        witness.status(JobStatus.RESTARTING)
        witness.status(JobStatus.RUNNING)
        witness.checkpoints(1)
        assert [(host.pid, len(host.task_managers)) for host in cluster.hosts().hosts] == [(second.pid, 2)]
        listed = yard.shell("list").out
        assert re.search(r"running .* 1 +0:00:\d\d ago: TaskManagerLost: TaskManager .* was lost: ", listed), listed
        logged = yard.shell("logs", "numbers").out
        assert re.search(r"WARNING jobmanager understudy\.job: job 'numbers' failed: TaskManagerLost: ", logged), logged
        gate.open()
        job.wait(WAIT_S)
        assert counts_of(job.results("out")) == counted(2_000)
    status = yard.shell("cluster", "status", "--json", "-D", "cluster.workers=localhost,localhost")
    assert status.code == 1
    assert [(each["role"], each["is_alive"]) for each in status.json["processes"]] == [
        ("jobmanager", True),
        ("taskmanager", True),
        ("taskmanager", False),
    ]


def test_a_job_is_restarted_from_the_page_without_the_process_that_submitted_it(yard: Yard) -> None:
    """The JobManager copies its code, which it signs again, and deletes what it has kept of ended jobs when it ends."""
    manager, worker = yard.start("jobmanager"), yard.start("taskmanager")
    yard.until_registered(worker)
    gate = Gate(yard.folder)
    with yard.cluster() as cluster:
        counting(env := yard.environment(), 2_000, 4_000.0, gate=gate).sink_to(
            FileSink(str(yard.folder / "files"), "jsonl"), name="files"
        )
        job = cluster.submit(env, "numbers")
        Witness(job).checkpoints(2)
        jid, path = job.job_id.removeprefix("job-"), job.stop_with_savepoint().result(timeout=WAIT_S)
        job.wait(WAIT_S)
    with yard.cluster() as cluster, WebServer(asgi_app(cluster)) as server:  # who has submitted it is gone
        new = restarted(server.url, jid, {"savepointPath": path})["jobid"]
        gate.open()
        yard.until(lambda: ask(server.url, f"jobs/{new}")["state"] == "FINISHED", "the end of the new job")
        assert read_output(yard.folder / "files", "jsonl") == counted(2_000)
        assert len(list((yard.folder / "storage").rglob("programs/*"))) == 2
        (program,) = (yard.folder / "storage").rglob(f"programs/{job.job_id}")
        program.write_bytes(program.read_bytes()[:-1])
        outcome = restarted(server.url, jid, {"savepointPath": path})
        assert "is spoilt" in outcome["failure-cause"]["stack-trace"]
    assert yard.end(manager)[0] == 0
    assert list((yard.folder / "storage").rglob("programs/*")) == []
    assert yard.end(worker)[0] == 0


def test_state_is_encrypted_with_the_keys_that_understudy_yaml_names(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By processes that do not have the variable; the commands about state read it with the file, too."""
    monkeypatch.setenv(KEYS, "")
    monkeypatch.delenv(KEYS)
    assert yard.shell("state", "new-key", "keys").code == 0
    with yard.file.open("a") as file:
        file.write("encryption.keys: keys\n")
    manager, worker = yard.start("jobmanager"), yard.start("taskmanager")
    yard.until_registered(worker)
    with yard.cluster() as cluster:
        env = yard.environment(retain_checkpoints="on_cancellation")
        counting(env, None, 500.0).collect(name="out")
        job = cluster.submit(env, "secret")
        Witness(job).checkpoints(2)
        path = job.stop_with_savepoint().result(timeout=WAIT_S)
        job.wait(WAIT_S)
    stored = [each for each in yard.folder.rglob("chk-*/*") if each.is_file()]
    assert stored
    assert all(is_sealed(each.read_bytes()) for each in stored)
    assert "count" in yard.shell("state", "ls", path).out
    yard.file.write_text(yard.file.read_text().replace("encryption.keys: keys", ""))
    refused = yard.shell("state", "ls", path)
    assert refused.code == 1
    assert "WrongEncryptionKey" in refused.err or "has no keys" in refused.err
    assert yard.end(manager)[0] == yard.end(worker)[0] == 0


def test_a_taskmanager_whose_jobmanager_is_away_waits_for_it_and_says_so_once(yard: Yard, prepared: Prepared) -> None:
    """Without a successor its job is lost; the next one is not, nor is that of docs/cluster.md."""
    manager, worker = yard.start("jobmanager"), yard.start("taskmanager")
    yard.until_registered(worker)
    with yard.cluster() as cluster:
        env = yard.environment()
        counting(env, None, 500.0).collect(name="out")
        lost = cluster.submit(env, "endless")
        Witness(lost).checkpoints(1)
        code, said = yard.end(manager)
        assert code == 0
        assert f"cancels 1 jobs, which end with their JobManager: {lost.job_id}" in said
    yard.until(lambda: "is away" in yard.log("taskmanager-1"), "the JobManager to be missed")
    manager = yard.start("jobmanager")
    yard.until(lambda: yard.log("taskmanager-1").count("registered with") == 2, "the second registration")
    assert yard.log("taskmanager-1").count("is away") == 1
    with yard.cluster() as cluster:
        env = yard.environment()
        counting(env, 100, None).collect(name="out")
        job = cluster.submit(env, "next")
        job.wait(WAIT_S)
        assert counts_of(job.results("out")) == counted(100)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (yard.folder / "page.py").write_text(program)
    done = prepared.run("page.py", folder=yard.folder)
    assert (done.stdout, done.returncode) == ("['a', 'aa', 'b']\n", 0), done.stderr
    assert yard.end(worker, signal.SIGINT)[0] == 0
    assert yard.end(manager, signal.SIGINT)[0] == 0
    assert list((yard.folder / "run").iterdir()) == []
    yard.shell.eventually_nothing_is_left()


def test_a_job_that_gets_no_slot_says_what_is_missing_and_what_to_do(yard: Yard) -> None:
    yard.start("jobmanager", "-D", "jobs.slot-timeout-ms=200")
    with yard.cluster() as cluster:
        env = yard.environment()
        env.from_collection([1]).collect(name="out")
        with pytest.raises(JobFailed) as failed:
            cluster.submit(env, "waiting").wait(WAIT_S)
    assert "no TaskManager process is here: start one with `understudy taskmanager`" in str(failed.value)
    assert str(failed.value).count("NoResourceAvailable") == 1


class SilentAboutJobs(StandaloneCluster):
    """Its JobManager takes jobs, and does not say in time which there are."""

    def jobs(self) -> tuple[JobSummary, ...]:
        raise NoAnswer("ListJobs to the JobManager: no answer")


def test_a_job_that_was_accepted_is_handed_out_whatever_becomes_of_advice_about_it(yard: Yard) -> None:
    """An error would say that it was not: whoever submits again runs it twice."""
    yard.start("jobmanager")
    with SilentAboutJobs(yard.file) as cluster:
        env = yard.environment()
        env.from_collection([1]).collect(name="out")
        job = cluster.submit(env, "numbers")
        assert job.details().name == "numbers"
        job.cancel()


def test_a_client_with_other_releases_than_the_cluster_is_warned(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it pickles is unpickled there; it was submitted without a word."""
    yard.start("jobmanager", "-D", "jobs.slot-timeout-ms=200")
    env = yard.environment()
    env.from_collection([1]).collect(name="out")
    with yard.cluster() as cluster:
        cluster.submit(env, "the same")
        assert "install the same" not in caplog.text
        ours = {"understudy": "9.9", "numpy": "1.0"}
        monkeypatch.setattr("understudy.runtime.hosts.standalone_cluster.own_releases", lambda: ours)
        cluster.submit(env, "another")
    assert re.search(r"the cluster runs understudy .* \(here 9\.9\), numpy .* \(here 1\.0\): install", caplog.text)


def test_a_job_that_waits_for_slots_says_who_holds_them_and_one_that_can_never_have_them_is_refused(yard: Yard) -> None:
    yard.start("jobmanager")
    yard.until_registered(yard.start("taskmanager"))
    first = yard.shell("submit", "job.py:build", "--name", "first", "-p", "2", "--ready")
    assert first.code == 0, first.err
    second = yard.shell.start("submit", "job.py:build", "--name", "second", "--ready")
    lines = iter(second.stderr.readline, "")  # the first job may have a checkpoint by now, of which a line says so
    assert any("is submitted" in line for line in lines)
    assert "what 'counted' collects is for a program that submits the job" in second.stderr.readline()
    waits = second.stderr.readline()
    assert waits.startswith(
        f"job 'second' is waiting for 1 slot: 0 are free of 2; job 'first' ({first.out.strip()}) holds 2; "
    )
    assert "`understudy taskmanager`" in waits
    assert yard.shell("cancel", "first").code == 0
    out, said = second.communicate(WAIT_S)
    assert (second.wait(), said) == (0, "job 'second' runs\n")
    refused = yard.shell("submit", "job.py:build", "-p", "3", "-D", "cluster.workers=localhost")
    assert refused.code == 1
    assert "needs 3 slots (3 TaskManagers), and the cluster has 2: cluster.workers names 1 process" in refused.err
    assert yard.shell("cancel", out.strip()).code == 0


def test_code_that_is_not_signed_with_the_clusters_key_is_not_run(yard: Yard) -> None:
    yard.start("jobmanager")
    with yard.cluster() as cluster:
        env = yard.environment()
        env.from_collection([1]).collect(name="out")
        job = cluster.submit(env, "forged")
        storage = CheckpointStorage(str(yard.folder / "storage"))
        (path,) = storage.list_files("programs")
        signed = storage.read_sealed(path)
        storage.write_sealed(path, signed[:-1] + bytes([signed[-1] ^ 1]))
        yard.start("taskmanager")
        with pytest.raises(JobFailed, match="not signed with this cluster's key, and was not looked into"):
            job.wait(WAIT_S)


def test_a_second_jobmanager_here_and_one_on_a_taken_port_are_refused(yard: Yard, tmp_path: Path) -> None:
    yard.start("jobmanager")
    second = yard.shell("jobmanager")
    assert (second.code, second.err.count("jobmanager runs here already")) == (1, 1)
    on_its_port = yard.shell("jobmanager", "-D", f"run.dir={tmp_path / 'other'}")
    assert (on_its_port.code, on_its_port.err.count("cannot listen at tcp://127.0.0.1")) == (1, 1)
    assert "jobmanager.port" in on_its_port.err


def test_the_settings_say_which_of_several_jobmanagers_is_meant(yard: Yard) -> None:
    """And name it where none was started here, as on another host."""
    yard.start("jobmanager")
    port = free_port()
    other = ("-D", f"jobmanager.port={port}", "-D", "run.dir=other", "-D", "security.key-file=another")
    assert yard.shell("cluster", "key", *other).code == 0
    yard.shell.start("jobmanager", *other)
    yard.until(lambda: [each.address for each in running_processes(yard.folder / "other") if each.address], "the other")
    assert yard.shell("list", "--json").json == []
    assert yard.shell("list", "--json", TMPDIR=str(yard.folder)).json == []
