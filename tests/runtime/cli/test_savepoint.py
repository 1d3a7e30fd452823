"""`understudy savepoint`, `stop`, `cancel --with-savepoint` and `run --from-savepoint`, from one process to another."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from understudy.messages import JobId
from understudy.runtime.connectors import read_collected

from ...prepared import Command
from .conftest import WAIT_S, Done, Running, Shell

pytestmark = pytest.mark.every_run

KEYS = 4


def records_of(done: Done) -> list[tuple[int, int, int]]:
    """Key, how many of the key, index."""
    found = [tuple(int(part) for part in line.strip("()").split(",")) for line in done.out.splitlines()]
    return [(key, number, index) for key, number, index in found]


def assert_counts_go_on(*runs: Sequence[tuple[int, int, int]]) -> None:
    """Each record came once, in one of the runs, and its key was counted on from run to run."""
    together = [record for run in runs for record in run]
    assert sorted(index for _, _, index in together) == list(range(len(together)))
    assert all(number == index // KEYS + 1 for _, number, index in together)


def path_of(done: Done) -> str:
    """The only line on standard output."""
    assert done.code == 0, done.err
    (path,) = done.out.splitlines()
    return path


def from_here(shell: Shell, path: str) -> str:
    """As the shell completes it."""
    return str(Path(path).relative_to(shell.folder.resolve()))


def checkpointing(shell: Shell, *arguments: str) -> Running:
    """A job that has taken records and completed a checkpoint."""
    run = shell.run("job:build", *arguments)
    run.until_checkpoints()
    return run


def test_a_stopped_job_goes_on_from_its_savepoint_with_another_parallelism(shell: Shell) -> None:
    run = checkpointing(shell, "--name", "first")
    path = path_of(shell("stop", "first"))
    before = run.end()
    assert before.code == 0, before.err
    count = len(records_of(before)) + 1000
    after = shell("run", "job:build", "-q", "--from-savepoint", path, "-p", "2", "--", str(count), "5000")
    assert after.code == 0, after.err
    assert len(records_of(before)) > 0
    assert_counts_go_on(records_of(before), records_of(after))
    assert len(records_of(after)) == 1000
    assert len(list(shell.folder.rglob("chk-*/_metadata"))) == 1  # its user may want to start from it again


def test_a_drained_job_emits_its_last_results_and_finishes(shell: Shell) -> None:
    run = checkpointing(shell)
    done = shell("stop", "job", "--drain", "--savepoint", "drained", "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "finished"
    assert done.json["job_id"] == run.job_id
    assert "/savepoints/drained/" in done.json["savepoint_path"]
    assert_counts_go_on(records_of(run.end()))


def test_a_savepoint_leaves_the_job_running_and_can_be_disposed_of_once(shell: Shell) -> None:
    run = checkpointing(shell)
    path = path_of(shell("savepoint", run.job_id[:9]))
    assert Path(path).exists()
    disposed = shell("savepoint", "--dispose", from_here(shell, path), "--json")
    assert disposed.code == 0, disposed.err
    assert disposed.json == {"disposed": path}
    assert not Path(path).exists()
    again = shell("savepoint", "--dispose", path)
    assert again.code == 1
    assert path in again.err
    assert [job["status"] for job in shell("list", "--json").json] == ["running"]
    assert shell("savepoint", "--dispose", "/etc/passwd").code == 1
    assert run.process.poll() is None


def test_a_checkpoint_is_taken_now_and_its_path_is_all_that_is_printed(shell: Shell) -> None:
    run = checkpointing(shell, "--name", "first")
    path = path_of(shell("checkpoint", "first", "--full"))
    assert Path(path).parent.parent == shell.folder.resolve() / "checkpoints"
    said = json.loads(shell("checkpoint", "first", "--json").out)
    assert said["checkpoint_path"].endswith(f"/chk-{said['checkpoint_id']}")
    assert shell("cancel", "first").code == 0
    run.end()


def test_what_is_no_savepoint_any_more_is_no_beginning(shell: Shell) -> None:
    run = checkpointing(shell)
    disposed, broken = (path_of(shell("savepoint", "job")) for _ in range(2))
    assert shell("savepoint", "--dispose", disposed).code == 0
    file = next(path for path in (Path(broken), *Path(broken).rglob("*")) if path.is_file())
    file.write_bytes(file.read_bytes()[:-5])
    outside = shell.folder / "outside"
    outside.write_bytes(b"garbage")
    for path in (disposed, broken, str(outside)):
        done = shell("run", "job:build", "--from-savepoint", path)
        assert done.code == 1
        assert path in done.err
        assert "Traceback" not in done.err
        assert done.out == ""
    assert run.process.poll() is None


def test_a_job_is_cancelled_with_a_savepoint_that_it_can_go_on_from(shell: Shell) -> None:
    run = checkpointing(shell)
    path = path_of(shell("cancel", "job", "--with-savepoint"))
    ended = run.end()
    assert ended.code == 1
    assert "was canceled" in ended.err
    after = shell("run", "job:build", "-q", "--from-savepoint", from_here(shell, path), "--", "2000", "5000")
    assert after.code == 0, after.err
    assert all(number == index // KEYS + 1 for _, number, index in records_of(after))


def test_without_a_checkpoint_dir_a_savepoint_is_in_memory_and_says_so(shell: Shell) -> None:
    source = (shell.folder / "job.py").read_text()
    (shell.folder / "job.py").write_text(source.replace('checkpoint_dir="checkpoints",', ""))
    checkpointing(shell)
    done = shell("savepoint", "job")
    assert path_of(done).startswith("jobmanager://")
    assert "lost when its process ends" in done.err


def collected_by(shell: Shell, run: Running) -> list[tuple[int, int, int]]:
    """What a run that could not tell its results had committed."""
    (folder,) = shell.folder.glob(f"checkpoints/collected/{run.job_id}/*")
    return [(key, number, index) for key, number, index in read_collected(str(folder))]


def newest_checkpoint(shell: Shell, run: Running) -> Path:
    """As the documentation says: the newest folder that has its metadata."""
    complete = (path.parent for path in shell.folder.glob(f"checkpoints/{run.job_id}/chk-*/_metadata"))
    return max(complete, key=lambda folder: int(folder.name.removeprefix("chk-")))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_run_that_was_ended_goes_on_from_the_checkpoint_that_it_leaves(shell: Shell, number: signal.Signals) -> None:
    """Interrupted, because its environment asks for it; killed, in any case. What one run had not committed, the next
    commits: together it is exact.
    """
    run = checkpointing(shell, "--", "", "500", "on_cancellation")
    done = run.interrupt(number)
    newest = newest_checkpoint(shell, run)
    if number is signal.SIGINT:
        assert done.code == 130, done.err
        assert f"--from-savepoint {newest}/_metadata" in done.err
        assert len(list(shell.folder.rglob("_metadata"))) == 1
    arguments = ["--from-savepoint", from_here(shell, str(newest)), "--", "3000", "5000"]
    after = shell("run", "job:build", "-q", *arguments)
    assert after.code == 0, after.err
    assert_counts_go_on(collected_by(shell, run), records_of(after))
    assert newest_checkpoint(shell, run) == newest, "it is its user's"


def test_state_that_no_operator_takes_is_left_behind_only_if_that_is_allowed(shell: Shell) -> None:
    run = checkpointing(shell)
    path = path_of(shell("stop", "job"))
    count = str(len(records_of(run.end())) + 1000)
    source = (shell.folder / "job.py").read_text()
    (shell.folder / "job.py").write_text(source.replace('name="counting"', 'name="another"'))
    arguments = ["run", "job:build", "-q", "--from-savepoint", path]
    refused = shell(*arguments, "--", count, "5000")
    assert refused.code == 1
    assert "counting" in refused.err
    assert "(-n, --allow-non-restored-state)" in refused.err
    assert "allow_non_restored_state" not in refused.err
    assert "Traceback" not in refused.err
    allowed = shell(*arguments, "--allow-non-restored-state", "--", count, "5000")
    assert allowed.code == 0, allowed.err
    assert {number for _, number, _ in records_of(allowed)} >= {1}


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["savepoint"], 2, "wanted either JOB, to take a savepoint, or --dispose PATH"),
        (["savepoint", "job", "--dispose", "path"], 2, "wanted either JOB"),
        (["savepoint", "nosuch"], 1, "'nosuch'"),
        (["savepoint", "job", "/outside"], 1, "/outside"),
        (["stop", "nosuch"], 1, "'nosuch'"),
        (["stop"], 2, "JOB"),
        (["cancel", "nosuch"], 1, "'nosuch'"),
        (["checkpoints", "nosuch"], 1, "'nosuch'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_done_is_told_and_harms_no_job(
    running: Running, shared: Shell, arguments: list[str], code: int, told: str
) -> None:
    done = shared(*arguments)
    assert done.code == code
    assert told in " ".join(done.err.split())
    assert done.out == ""
    assert "Traceback" not in done.err
    assert [job["status"] for job in shared("list", "--json").json] == ["running"]


class TestASavepointThatTakesLong:
    """As long as there is a file `wait`."""

    @pytest.fixture
    def run(self, shell: Shell) -> Running:
        run = shell.run("job:sluggish")
        run.until_it_runs()
        return run

    def begin(self, shell: Shell, run: Running, *arguments: str) -> Command:
        """A client that waits for a savepoint in progress."""
        (shell.folder / "wait").touch()
        client = shell.start(*arguments)
        run.until(lambda client: client.checkpoints(JobId(run.job_id)).triggered, "the savepoint's beginning")
        return client

    def test_goes_on_without_the_client_that_wanted_it(self, shell: Shell, run: Running) -> None:
        client = self.begin(shell, run, "savepoint", "job")
        client.send_signal(signal.SIGINT)
        _, err = client.communicate(timeout=WAIT_S)
        assert client.returncode == 130, err
        assert "goes on" in err
        (shell.folder / "wait").unlink()
        run.until_checkpoints()
        assert [job["status"] for job in shell("list", "--json").json] == ["running"]

    def test_is_not_waited_for_longer_than_asked(self, shell: Shell, run: Running) -> None:
        (shell.folder / "wait").touch()
        done = shell("savepoint", "job", "--timeout", "3")
        assert done.code == 1
        assert "did not answer" in done.err

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
    @pytest.mark.parametrize("verb", ["savepoint", "stop"])
    def test_fails_with_the_jobmanager(self, shell: Shell, run: Running, verb: str, number: signal.Signals) -> None:
        client = self.begin(shell, run, verb, "job")
        run.process.send_signal(number)
        out, err = client.communicate(timeout=WAIT_S)
        assert client.returncode == 1, err
        assert err.startswith("Error: ")
        assert "Traceback" not in err
        assert out == ""
        (shell.folder / "wait").unlink()
        run.end()
        shell.eventually_nothing_is_left()
