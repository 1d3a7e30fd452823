"""A driver that forks, as gunicorn with --preload and multiprocessing do: the cluster stays its parent's."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from understudy import LocalCluster

from ...prepared import Prepared
from .jobs import eventually

pytestmark = pytest.mark.every_run

QUIET = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)"
"""From Python 3.12 on a fork beside threads is warned of, rightly."""

PROGRAM = """
import os, signal, sys, time
from understudy import LocalCluster, StreamEnvironment

env = StreamEnvironment(checkpoint_interval_ms=200)
env.from_inlet("numbers", parallelism=1).map(lambda n: 2 * n, name="double").collect(name="doubles")
cluster = LocalCluster(task_managers=1).start()
job = cluster.submit(env, "forked")
job.ready().result(timeout=60)
inlet = job.inlet("numbers")
inlet.send(1).result(timeout=60)


def says(name, call):
    try:
        print(name, "did", call(), flush=True)
    except BaseException as error:
        print(name, type(error).__name__, error, flush=True)
"""


def run(prepared: Prepared, text: str, folder: Path) -> list[str]:
    """What it prints. SIGALRM ends a fork that hangs, which would hold its streams open."""
    (folder / "script.py").write_text(QUIET + PROGRAM + text)
    done = prepared.run("script.py", folder=folder, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    lines: list[str] = done.stdout.splitlines()
    return lines


def test_a_fork_hears_at_once_that_the_cluster_is_its_parents(prepared: Prepared, tmp_path: Path) -> None:
    lines = run(
        prepared,
        """
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    says("ask", lambda: job.ask("double", message="?", timeout=90).result())
    says("details", job.details)
    says("known inlet", lambda: inlet.send(2).result())
    says("new inlet", lambda: job.inlet("numbers").send(2).result())
    says("stop", lambda: job.stop().result())
    says("submit", lambda: cluster.submit(env))
    os._exit(0)
os.waitpid(pid, 0)
inlet.send(3).result(timeout=60)
job.stop()
job.wait(timeout=60)
print(sorted(job.results("doubles")), job.details().restarts)
cluster.close()
""",
        tmp_path,
    )
    assert lines[-1] == "[2, 6] 0"
    assert [line.split()[0] for line in lines[:-1]] == ["ask", "details", "known", "new", "stop", "submit"]
    for line in lines[:-1]:
        assert "is a fork of that" in line
        assert "Start a cluster after the fork" in line


@pytest.mark.parametrize("leaves", ["sys.exit(0)", "cluster.close(); sys.exit(0)"])
def test_a_fork_that_ends_takes_nothing_of_the_cluster_along(leaves: str, prepared: Prepared, tmp_path: Path) -> None:
    """Neither its processes nor its folder; and it does end."""
    lines = run(
        prepared,
        f"""
folder = cluster._work_dir
pid = os.fork()
if pid == 0:
    signal.alarm(30)
    {leaves}
assert os.waitpid(pid, 0)[1] == 0
assert os.path.isdir(folder)
inlet.send(3).result(timeout=60)
job.stop()
job.wait(timeout=60)
print(sorted(job.results("doubles")), job.details().restarts)
cluster.close()
""",
        tmp_path,
    )
    assert lines == ["[2, 6] 0"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the processes are found by /proc")
def test_processes_of_a_killed_driver_end_though_a_fork_of_it_lives() -> None:
    """The fork has inherited what the template ends of: the end of its connection."""
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PROGRAM
            + """
pid = os.fork()
if pid == 0:
    time.sleep(300)
    os._exit(0)
print(pid, flush=True)
time.sleep(300)
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    with driver, driver.stdout:
        fork = psutil.Process(int(driver.stdout.readline()))
        started = [each for each in psutil.Process(driver.pid).children(recursive=True) if each != fork]
        try:
            assert started
            driver.kill()
            driver.wait()
            eventually(lambda: not any(each.is_running() for each in started), "the end of the template")
            assert fork.is_running()
        finally:
            fork.kill()
            driver.kill()
            fork.wait(30)  # a busy machine ends it a moment later, and nothing may be left then


def test_a_cluster_says_why_it_cannot_be_pickled_and_how_another_process_reaches_it() -> None:
    with pytest.raises(TypeError, match=r"a LocalCluster belongs to the process .* RemoteCluster"):
        pickle.dumps(LocalCluster())


def test_without_asyncios_loop_an_awaited_cluster_says_which_one_it_wants() -> None:
    """As under trio, whose loop drives coroutines by itself."""
    starting = LocalCluster().start_async()
    with pytest.raises(RuntimeError, match=r"asyncio's event loop.*to_thread.run_sync"):
        starting.send(None)
