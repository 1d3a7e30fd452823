"""The folder of a process below the temporary folder, which others clean."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from understudy import LocalCluster, StreamEnvironment
from understudy.runtime.clusters.work_dir import made_work_dir, remove_work_dir, see_work_dir
from understudy.state.errors import UnwritableFolder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_it_is_locked_until_it_is_removed_so_that_systemd_tmpfiles_passes_it_over(temporary: Path) -> None:
    """tmpfiles.d(5): a folder on which somebody holds a BSD lock is not cleaned, nor what is below it."""
    work_dir = made_work_dir()
    look = os.open(work_dir, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(look, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_work_dir(work_dir)
        fcntl.flock(look, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(look)
    assert not list(temporary.iterdir())
    remove_work_dir(work_dir)


def test_where_a_file_system_locks_nothing_it_is_used_without(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    work_dir = made_work_dir()
    assert Path(work_dir).is_dir()
    remove_work_dir(work_dir)
    assert not list(temporary.iterdir())


def test_one_that_somebody_has_removed_is_made_again_and_the_log_says_so(
    temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work_dir = Path(made_work_dir())
    see_work_dir(str(work_dir))
    assert not caplog.messages
    work_dir.rmdir()
    see_work_dir(str(work_dir))
    assert stat.S_IMODE(work_dir.stat().st_mode) == 0o700
    [said] = caplog.messages
    assert f"{work_dir} was removed by somebody, and is made again" in said
    assert "TMPDIR" in said
    remove_work_dir(str(work_dir))


@pytest.mark.parametrize("what", ["open to others", "a link", "a file"])
def test_what_somebody_else_has_put_in_its_place_is_not_used(temporary: Path, what: str) -> None:
    """In a folder that all may write to, code of jobs must not come to lie in one of another user."""
    work_dir = Path(made_work_dir())
    work_dir.rmdir()
    if what == "a link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        work_dir.symlink_to(temporary / "elsewhere")
    elif what == "a file":
        work_dir.touch()
    else:
        work_dir.mkdir()
        work_dir.chmod(0o777)
    with pytest.raises(UnwritableFolder, match=f"{work_dir} is not the folder that this process made"):
        see_work_dir(str(work_dir))


def test_a_cluster_starts_taskmanagers_after_its_folder_was_removed(
    temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment(parallelism=1)
    env.from_collection([1, 2, 3]).collect(name="out")
    with LocalCluster(task_managers=1) as cluster, caplog.at_level(logging.WARNING):
        [work_dir] = temporary.glob("understudy-*")
        subprocess.run(["rm", "-rf", str(work_dir)], check=True)
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [1, 2, 3]
    assert "made again" in caplog.text
    assert not list(temporary.glob("understudy-*"))


KILLED = """
import os, signal
from understudy.runtime.clusters.work_dir import made_work_dir
print(made_work_dir(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_empty_folder_of_a_process_that_was_killed_is_removed_by_the_next_one(temporary: Path) -> None:
    def old(path: Path) -> Path:
        os.utime(path, (1, 1))
        return path

    env = {**os.environ, "TMPDIR": str(temporary)}
    left = Path(
        subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, env=env).stdout.strip()
    )
    assert left.is_dir(), "killed, so that nobody has removed it"
    empty = ["understudy-harness-01234567", "mine-01234567", "understudy-archives", "understudy-my.files.d"]
    young, full, opened, *others = (
        temporary / name for name in (*(f"understudy-{n}1234567.d" for n in range(3)), *empty)
    )
    for each in (young, full, opened, *others):
        each.mkdir(mode=0o700)
    opened.chmod(0o755)
    (full / "chk-1").touch()
    kept = [young, *map(old, [full, opened, *others, Path(made_work_dir())])]
    old(left)
    work_dir = made_work_dir()
    try:
        assert not left.exists()
        assert [each for each in kept if not each.exists()] == []
    finally:
        remove_work_dir(work_dir)
        remove_work_dir(str(kept[-1]))
