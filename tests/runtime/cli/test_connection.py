"""How the commands find a JobManager: by options, by environment, or because one runs here; and what they say when they
do not.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy import CurveKeys, JobFailed, JobHandle, LocalCluster, StreamEnvironment, no_restart
from understudy.runtime.clusters.announcement import FILE_NAME, Announced, find_announcements

from .conftest import WAIT_S, Running, Shell, eventually


@pytest.fixture
def cluster(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A JobManager without jobs, announced where the shell looks."""
    monkeypatch.setattr("tempfile.tempdir", str(shell.temporary))
    with LocalCluster() as started:
        started.announce()
        yield started


def key_of(cluster: LocalCluster, shell: Shell) -> str:
    path = shell.folder / "key"
    cluster.save_keys(path)
    return str(path)


def listed(shell: Shell, *arguments: str, **env: str) -> list[object]:
    done = shell("list", "--json", *arguments, **env)
    assert done.code == 0, done.err
    assert isinstance(done.json, list)
    return done.json


def test_the_only_one_that_runs_here_is_found(shell: Shell, cluster: LocalCluster) -> None:
    assert listed(shell) == []
    assert listed(shell, "--jobmanager", cluster.address) == [], "its key is found by its address"
    assert "--all" in shell("list").err
    said = shell("list", "--all").err
    assert "no job yet. Of jobs from before the JobManager was started it knows only those that had not ended" in said
    assert "--from-savepoint" in said, "it may have been started again after a kill"


def test_address_and_key_are_taken_from_options_and_from_the_environment(shell: Shell, cluster: LocalCluster) -> None:
    address, key = cluster.address, key_of(cluster, shell)
    elsewhere = {"TMPDIR": str(shell.folder)}
    assert listed(shell, "--jobmanager", address, "--key-file", key, **elsewhere) == []
    assert listed(shell, **elsewhere, UNDERSTUDY_JOBMANAGER=address, UNDERSTUDY_KEY_FILE=key) == []


def test_without_any_that_runs_it_is_said_how_to_name_one(shell: Shell) -> None:
    done = shell("list")
    assert done.code == 1
    assert "--jobmanager" in done.err
    assert str(shell.temporary) in done.err


def test_several_are_listed_and_none_is_chosen(shell: Shell, cluster: LocalCluster) -> None:
    with LocalCluster() as other:
        other.announce()
        done = shell("list")
        assert done.code == 1
        assert cluster.address in done.err
        assert other.address in done.err
        assert listed(shell, "--jobmanager", other.address) == []


class TestSettings:
    """With an understudy.yaml in the working directory."""

    def test_another_cluster_is_not_taken_for_the_one_they_name(self, shell: Shell, cluster: LocalCluster) -> None:
        CurveKeys.generate().save(shell.folder / "own")
        file = shell.folder / "understudy.yaml"
        file.write_text("jobmanager.port: 1\nsecurity.key-file: own\n")
        cluster.submit(endless(), "orders")
        for command in ("list", "cancel orders"):
            done = shell(*command.split())
            assert done.code == 1
            assert f"asks the cluster of {file}" in done.err
            assert cluster.address in done.err, "it may be the one that is meant, and is easily named"
            assert "no JobManager answers at tcp://127.0.0.1:1" in done.err
        (kept,) = shell("list", "--json", "--jobmanager", cluster.address).json
        assert kept["status"] not in ("canceling", "canceled")

    def test_of_a_cluster_with_successors_the_leader_is_asked_whatever_runs_here(self, shell: Shell) -> None:
        key = shell.folder / "own"
        CurveKeys.generate().save(key)
        (shell.folder / "understudy.yaml").write_text(
            "security.key-file: own\nstorage.dir: storage\nrecovery.mode: storage\n"
        )
        with contextlib.ExitStack() as stack:
            for port in (1, 2):  # a deposed one that stands still announces itself to the end
                folder = private_folder(shell.temporary / f"understudy-{port}")
                stack.enter_context(contextlib.closing(Announced(folder, f"tcp://127.0.0.1:{port}", key)))
            done = shell("list", "--timeout", "1")
        assert done.code == 1
        assert "no JobManager leads" in done.err


class TestSeveralJobManagers:
    """Two of them; `first` has jobs of the names a and both, `second` of the names b and both."""

    @pytest.fixture
    def jobs(self, shell: Shell, cluster: LocalCluster) -> Iterator[dict[str, JobHandle]]:
        with LocalCluster() as other:
            other.announce()
            yield {
                f"{name} at {where}": started.submit(endless(), name)
                for where, started, names in (("first", cluster, ("a", "both")), ("second", other, ("b", "both")))
                for name in names
            }

    def test_a_job_is_found_whichever_has_it(self, shell: Shell, jobs: dict[str, JobHandle]) -> None:
        for name, where in (("a", "first"), ("b", "second")):
            job = jobs[f"{name} at {where}"]
            done = shell("checkpoints", name, "--json")
            assert done.code == 0, done.err
            assert done.json["job_id"] == job.job_id
            assert shell("cancel", job.job_id, "--json").json["status"] == "canceled"
        job = jobs["both at second"]
        job.ready().result(timeout=WAIT_S)
        assert shell("savepoint", job.job_id, "--json").json["job_id"] == job.job_id
        assert shell("stop", job.job_id, "--json").json["status"] == "finished"
        done = shell("cancel", "both", "--json")
        assert done.json["job_id"] == jobs["both at first"].job_id, "of two, the one that has not ended"

    def test_one_of_several_is_chosen_by_its_job_manager(
        self, shell: Shell, cluster: LocalCluster, jobs: dict[str, JobHandle]
    ) -> None:
        done = shell("checkpoints", "both")
        assert done.code == 1
        assert "'both' means several jobs" in done.err
        for where in ("first", "second"):
            assert jobs[f"both at {where}"].job_id in done.err
        assert f"--jobmanager {cluster.address}" in done.err
        done = shell("checkpoints", "both", "--json", "--jobmanager", cluster.address)
        assert done.json["job_id"] == jobs["both at first"].job_id

    def test_what_none_has_is_told_with_what_they_have(self, shell: Shell, jobs: dict[str, JobHandle]) -> None:
        done = shell("stop", "nosuch")
        assert done.code == 1
        assert "no job of the 2 JobManagers that run here has the id" in done.err
        assert all(job.job_id in done.err for job in jobs.values())


def test_what_an_ended_job_has_left_is_said_with_its_checkpoints(shell: Shell, cluster: LocalCluster) -> None:
    """Of the paths in the table most are gone by then."""
    job = cluster.submit(endless(checkpoint_dir=str(shell.folder), retain_checkpoints="on_cancellation"), "leaving")
    eventually(lambda: job.details().completed_checkpoints > 0, "a checkpoint")
    assert "is kept" not in shell("checkpoints", "leaving").err
    job.cancel().result(timeout=WAIT_S)
    path = eventually(lambda: job.details().retained_checkpoint_path, "its end")
    said = shell("checkpoints", "leaving").err
    assert f"its checkpoint is kept; to go on from there: --from-savepoint {path}" in said


def test_no_path_is_shown_of_a_checkpoint_that_is_deleted(shell: Shell, cluster: LocalCluster) -> None:
    job = cluster.submit(endless(checkpoint_dir=str(shell.folder), retain_checkpoints="on_cancellation"), "several")
    eventually(lambda: job.details().completed_checkpoints > 2, "checkpoints")
    job.cancel().result(timeout=WAIT_S)
    newest, *earlier = [each for each in shell("checkpoints", "several", "--json").json["checkpoints"] if each["path"]]
    assert (newest["discarded"], {each["discarded"] for each in earlier}) == (False, {True})
    table = shell("checkpoints", "several").out
    assert newest["path"] in table
    assert not [each["path"] for each in earlier if f"{each['path']}\n" in table]
    assert table.count("deleted") == len(earlier)


def test_two_jobs_of_one_name_are_told_apart(cluster: LocalCluster, caplog: pytest.LogCaptureFixture) -> None:
    first = cluster.submit(endless(), "twin")
    assert "not the only one" not in caplog.text
    env = StreamEnvironment(restart_strategy=no_restart())
    env.from_collection([{"n": 1}]).map(lambda row: row["m"]).collect(name="out")
    second = cluster.submit(env, "twin")
    assert second.submitted.namesakes[0].startswith(f"{first.job_id}, ")
    assert f"job 'twin' ({second.job_id}) is not the only one of this name: {first.job_id}, " in caplog.text
    with pytest.raises(JobFailed):
        second.wait(timeout=WAIT_S)
    eventually(lambda: f"job 'twin' ({second.job_id[:12]}) failed: " in caplog.text, "its failure in the log")


def endless(**settings: Any) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_interval_ms=200, **settings)
    env.generate(int, records_per_second=100).collect(name="out")
    return env


def test_a_wrong_key_and_an_address_where_nobody_is_are_told_apart(shell: Shell, cluster: LocalCluster) -> None:
    wrong = shell.folder / "wrong"
    CurveKeys.generate().save(wrong)
    done = shell("list", "--jobmanager", cluster.address, "--key-file", str(wrong))
    assert done.code == 1
    assert f"{cluster.address} does not accept this key" in done.err
    done = shell("list", "--jobmanager", "tcp://127.0.0.1:1", "--key-file", str(wrong))
    assert done.code == 1
    assert "no JobManager answers at tcp://127.0.0.1:1" in done.err


def test_a_jobmanager_that_stands_still_is_no_answer_in_time(shell: Shell) -> None:
    run = shell.run("job:build")
    os.kill(run.process.pid, signal.SIGSTOP)
    try:
        done = shell("list", "--timeout", "0.5")
    finally:
        os.kill(run.process.pid, signal.SIGCONT)
    assert done.code == 1
    assert "answer" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--jobmanager", "localhost:4711"], 2, "wanted tcp://host:port, found 'localhost:4711'"),
        (["--jobmanager", "tcp://127.0.0.1:1"], 2, "needs --key-file"),
        (["--key-file", "key"], 2, "--key-file needs --jobmanager"),
        (["--jobmanager", "tcp://127.0.0.1:1", "--key-file", "nosuch"], 1, "the key file nosuch cannot be read"),
        (["--jobmanager", "tcp://127.0.0.1:1", "--key-file", "open"], 1, "wanted 0600"),
        (["--jobmanager", "tcp://127.0.0.1:1", "--key-file", "garbage"], 1, "holds no key pair"),
        (["--timeout", "0"], 2, "--timeout"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_wrong_with_address_or_key_is_told(shell: Shell, arguments: list[str], code: int, told: str) -> None:
    for name, mode in (("open", 0o644), ("garbage", 0o600)):
        (shell.folder / name).write_text("garbage")
        (shell.folder / name).chmod(mode)
    done = shell("list", *arguments)
    assert told in " ".join(done.err.split())
    assert done.code == code
    assert "Traceback" not in done.err


class TestAnnouncements:
    """Files that tell where a JobManager is, and those that do not any more."""

    def test_what_a_killed_process_has_left_is_removed(self, shell: Shell) -> None:
        run = shell.run("job:build")
        kept = eventually(lambda: list(shell.temporary.glob(f"*/{FILE_NAME}")), "the announcement")[0].read_text()
        os.kill(run.process.pid, signal.SIGKILL)
        run.end()
        shell.eventually_nothing_is_left()
        stale = private_folder(shell.temporary / "understudy-stale")
        (stale / FILE_NAME).write_text(kept)
        (stale / "key").write_text("of nobody")
        assert find_announcements(shell.temporary).running == ()
        assert not stale.exists()

    def test_a_stale_one_takes_no_checkpoints_with_it(self, tmp_path: Path) -> None:
        stale = private_folder(tmp_path / "understudy-stale")
        (stale / FILE_NAME).write_text("garbage")
        (stale / "checkpoints").mkdir()
        assert find_announcements(tmp_path).running == ()
        assert [path.name for path in stale.iterdir()] == ["checkpoints"]

    def test_garbage_of_one_that_runs_is_told_of_and_hides_no_other(self, shell: Shell, cluster: LocalCluster) -> None:
        with LocalCluster() as other:
            other.announce()
            (path,) = [each for each in shell.temporary.glob(f"*/{FILE_NAME}") if other.address in each.read_text()]
            for garbage in ("", "\x00\x01", "[]", '{"address": 1}', '{"address": "x", "key_file": "k", "pid": 1}'):
                path.write_text(garbage)
                found = find_announcements(shell.temporary)
                assert [each.address for each in found.running] == [cluster.address]
                assert str(path) in found.unreadable[0]
            assert listed(shell) == []

    def test_a_folder_that_others_can_write_to_is_not_believed(self, shell: Shell, cluster: LocalCluster) -> None:
        (work_dir,) = shell.temporary.glob("understudy-*")
        work_dir.chmod(0o777)
        assert find_announcements(shell.temporary).running == ()
        work_dir.chmod(0o700)
        assert len(find_announcements(shell.temporary).running) == 1

    def test_a_link_to_a_folder_elsewhere_is_not_followed(self, shell: Shell, cluster: LocalCluster) -> None:
        (work_dir,) = shell.temporary.glob("understudy-*")
        beside = shell.folder / "beside"
        beside.mkdir()
        (beside / "understudy-link").symlink_to(work_dir)
        assert find_announcements(beside).running == ()

    def test_the_files_are_for_their_owner_only(self, shell: Shell) -> None:
        run: Running = shell.run("job:build")
        key = Path(run.key_file)
        assert key.stat().st_mode & 0o777 == 0o600
        assert (key.parent / FILE_NAME).stat().st_mode & 0o777 == 0o600
        assert key.parent.stat().st_mode & 0o777 == 0o700
        assert CurveKeys.load(key).secret.decode() not in (key.parent / FILE_NAME).read_text()


def private_folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path
