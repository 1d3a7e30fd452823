"""LocalLauncher where the Python that it starts is no Python with Understudy, or where nothing more can be started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from understudy import JobFailed, LocalCluster, StreamEnvironment
from understudy.messages import CheckpointConfig, JobId
from understudy.runtime.clusters import local_launcher
from understudy.runtime.clusters.local_launcher import LocalLauncher
from understudy.runtime.clusters.task_manager_process import TaskManagerLaunch
from understudy.runtime.clusters.template import Exited, describe_exit_code, is_ending, send

from .jobs import eventually

START = local_launcher.start_template
"""As users have it: the fixtures of this folder put another one in its place."""


def test_a_python_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Python is embedded in a server, which `sys.executable` names, or nothing at all."""
    monkeypatch.setattr(local_launcher, "start_template", START)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    said = (
        r"no TaskManager can be started: No such file.*; they run in the Python that sys.executable names.*such/python"
    )
    with pytest.raises(FileNotFoundError, match=said):
        LocalCluster().start()


def test_a_python_that_ends_before_it_has_started_anything_is_named_in_the_jobs_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(local_launcher, "start_template", START)
    monkeypatch.setattr(sys, "executable", str(python))
    env = StreamEnvironment()
    env.from_collection([1]).collect(name="out")
    with LocalCluster(slot_timeout_ms=3_600_000) as cluster:
        job = cluster.submit(env)
        with pytest.raises(
            JobFailed, match=rf"exited with code 3, before it had started anything \({python}\); they run"
        ):
            job.wait(timeout=400)


WARNED = """
from understudy import LocalCluster, StreamEnvironment

env = StreamEnvironment()
env.from_collection([1]).collect(name="out")
with LocalCluster() as cluster:
    print(cluster.submit(env).wait(timeout=400))
"""


def test_who_asks_python_for_all_warnings_hears_of_no_fork_beside_threads(tmp_path: Path) -> None:
    """From 3.12 on Python counts those of NumPy's BLAS and of Arrow's allocator, which are prepared for it."""
    (tmp_path / "job.py").write_text(WARNED)
    command, warnings = [sys.executable, "job.py"], {"PYTHONWARNINGS": "always::DeprecationWarning"}
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | warnings, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "fork" in line]) == (0, [])


@pytest.mark.parametrize("threads", range(4))
def test_where_no_more_threads_can_be_started_the_cluster_says_what_to_do_and_leaves_none(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under a low `ulimit -u`: whichever thread of the cluster is the first that cannot be."""
    before, start, left = set(threading.enumerate()), threading.Thread.start, iter(range(threads))

    def start_if_there_is_room(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_if_there_is_room)
        said = r"the cluster cannot start: can't start new thread; this user may have no more threads.*ulimit -u"
        with pytest.raises(RuntimeError, match=said):
            LocalCluster().start()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive(), thread.name


@dataclass
class NoProcess:
    """Of a template that only holds its line."""

    code: int = 0

    def wait(self) -> int:
        return self.code

    def kill(self) -> None:
        """It is gone."""


LAUNCH = TaskManagerLaunch(
    JobId("job"),
    0,
    slots=1,
    job_manager_address="",
    host="",
    curve=None,  # type: ignore[arg-type]
    program=b"",
    checkpoints=CheckpointConfig("memory://checkpoints"),
    state_backend="memory",
    buffer_timeout_ms=1,
    sys_path=(),
)


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), RuntimeError("can't start new thread")])
def test_a_task_manager_that_cannot_be_started_is_known_to_have_ended_once(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the job would wait for it. With the end of its template those that did start are gone, and no other."""
    lines: list[socket.socket] = []

    def start(control: socket.socket, *_: Any) -> NoProcess:
        lines.append(control.dup())
        return NoProcess()

    def for_process(*_: Any) -> None:
        raise error

    monkeypatch.setattr(local_launcher, "start_template", start)
    ended: list[Any] = []
    launcher = LocalLauncher(ended.append, str(tmp_path))
    try:
        launcher.prepare(LAUNCH)
        with monkeypatch.context() as patch:
            patch.setattr(launcher.output, "for_process", for_process)
            launcher.start(LAUNCH.job_id, 1)
        launcher.start(LAUNCH.job_id, 2)
    finally:
        lines[0].close()
        launcher._template._reader.join()
        launcher.close()
    assert [each.index for each in ended] == [1, 2]
    assert ended[0].reason.startswith(f"could not be started: {error}")
    assert ended[1].reason.startswith("its template process ended: exited with code 0, before it had started anything")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (signal.SIGKILL, ", and "),
        (signal.SIGINT, "; it got no more memory, or no more threads: see `ulimit -v`, `ulimit -u` and the limits of"),
    ],
)
def test_of_a_template_that_was_killed_no_other_python_is_advised(
    number: signal.Signals, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """OpenBLAS sends itself SIGINT where it gets no thread; Ctrl-C does not reach a template."""
    lines: list[socket.socket] = []

    def start(control: socket.socket, *_: Any) -> NoProcess:
        lines.append(control.dup())
        return NoProcess(-number)

    monkeypatch.setattr(local_launcher, "start_template", start)
    ended: list[Any] = []
    launcher = LocalLauncher(ended.append, str(tmp_path))
    try:
        launcher.prepare(LAUNCH)
        launcher.start(LAUNCH.job_id, 1)
        [child] = launcher._children.values()
        child.last_line.text = "row 7 of the user's"
    finally:
        lines[0].close()
        launcher._template._reader.join()
        launcher.close()
    killed = f"its template process ended: killed by {number.name}, before it had started anything ({sys.executable})"
    [reason] = [each.reason for each in ended]
    assert reason.startswith(killed + advice)
    assert number == signal.SIGINT or ("run in the Python" not in reason and "wrote last" not in reason)


@dataclass
class Counted:
    """What the kernel says of those that it has ended for want of memory."""

    said: str | None

    def kills(self) -> str | None:
        return self.said


@pytest.mark.parametrize(
    ("kills", "said"),
    [
        (
            None,
            "killed by SIGKILL, and not by Understudy: if nobody did it, memory ran out, and the kernel ended it (`dm",
        ),
        (
            "",
            "killed by SIGKILL, and neither by Understudy nor by the kernel for want of memory (oom_kill has not",
        ),
        (
            "oom_kill went",
            "killed by SIGKILL: probably memory ran out, and the kernel ended it (oom_kill went); give it more memory",
        ),
    ],
)
def test_of_a_kill_that_is_none_of_its_own_the_launcher_says_what_the_kernel_has_counted(
    kills: str | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    by_index = ended_as(monkeypatch, tmp_path, kills, code=-signal.SIGKILL)
    assert by_index[1].startswith(said)
    assert by_index[2] == "killed by SIGKILL"


def test_an_exit_code_is_the_users_to_choose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`os._exit(69)` in an operator was said to be a network that is down."""
    by_index = ended_as(monkeypatch, tmp_path, None, code=os.EX_UNAVAILABLE)
    assert by_index == {1: "exited with code 69", 2: "exited with code 69"}


def ended_as(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kills: str | None, code: int) -> dict[int, str]:
    """What is told of two TaskManagers whose template reports this end; of 2, that it was ordered."""
    lines: list[socket.socket] = []

    def start(control: socket.socket, *_: Any) -> NoProcess:
        lines.append(control.dup())
        return NoProcess()

    monkeypatch.setattr(local_launcher, "start_template", start)
    monkeypatch.setattr(local_launcher, "MemoryEvents", lambda: Counted(kills))
    ended: list[Any] = []
    launcher = LocalLauncher(ended.append, str(tmp_path))
    try:
        launcher.prepare(LAUNCH)
        for index in (1, 2):
            launcher.start(LAUNCH.job_id, index)
        for index in (1, 2):
            launcher.kill(LAUNCH.job_id, index)  # as soon as its connection has broken, before it is known why
        for token, child in launcher._children.copy().items():
            send(lines[0], Exited(token, describe_exit_code(code), was_ordered=child.index == 2, code=code))
    finally:
        lines[0].close()
        launcher._template._reader.join()
        launcher.close()
    return {each.index: each.reason for each in ended}


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say it")
def test_a_process_that_has_ended_is_known_before_it_is_waited_for() -> None:
    """One that the kernel kills for its memory loses its connections first, and is ordered to be killed then."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not is_ending(process.pid)
        process.kill()
        eventually(lambda: is_ending(process.pid), "its end")


def test_a_task_manager_that_cannot_reach_its_job_manager_is_known_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the loopback interface is down: "exited with code 0" was all that was said."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}/job-manager"
    launch = LocalCluster._launch

    def astray(cluster: LocalCluster, *given: Any) -> TaskManagerLaunch:
        return replace(launch(cluster, *given), job_manager_address=address)

    monkeypatch.setattr(LocalCluster, "_launch", astray)
    env = StreamEnvironment()
    env.from_collection([1]).collect(name="out")
    with LocalCluster() as cluster:
        job = cluster.submit(env)
        with pytest.raises(JobFailed, match=f"it could not connect to the JobManager at {address}: see whether"):
            job.wait(timeout=400)


def test_nobody_waits_for_a_template_that_reads_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is busy with imports for seconds, or stands still: the JobManager of all jobs stood still with it."""
    lines: list[socket.socket] = []

    def start(control: socket.socket, *_: Any) -> NoProcess:
        lines.append(control.dup())
        return NoProcess()

    def order() -> None:
        for index in (1, 2):
            launcher.start(LAUNCH.job_id, index)
            launcher.kill(LAUNCH.job_id, index)

    monkeypatch.setattr(local_launcher, "start_template", start)
    ended: list[Any] = []
    launcher = LocalLauncher(ended.append, str(tmp_path))
    thread = threading.Thread(target=order, daemon=True)
    try:
        launcher.prepare(replace(LAUNCH, program=bytes(16 * 1024 * 1024)))
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert ended == []
    finally:
        lines[0].close()
        launcher._template._reader.join()
        launcher.close()
    assert [each.index for each in ended] == [1, 2]


def test_a_template_that_was_stopped_is_killed_when_its_cluster_closes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local_launcher, "start_template", START)
    monkeypatch.setattr(local_launcher, "END_SECONDS", 0.1)
    launcher = LocalLauncher(lambda _: None, str(tmp_path))
    process: Any = launcher._template._process
    os.kill(process.pid, signal.SIGSTOP)
    launcher.close()
    assert process.wait() == -signal.SIGKILL
    assert "the process that starts TaskManagers has not ended after 0.1 s: killing it" in caplog.messages


@pytest.mark.parametrize("name", ["understudy-launcher-requests", "understudy-launcher"])
def test_ctrl_c_while_its_threads_start_ends_the_template(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before, start_thread, lines = set(threading.enumerate()), threading.Thread.start, list[socket.socket]()

    def start(control: socket.socket, *_: Any) -> NoProcess:
        lines.append(control.dup())
        return NoProcess()

    def interrupted(thread: threading.Thread) -> None:
        start_thread(thread)
        if thread.name == name:
            raise KeyboardInterrupt

    monkeypatch.setattr(local_launcher, "start_template", start)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            LocalLauncher(lambda _: None, str(tmp_path))
    with lines[0] as line:
        line.settimeout(60)
        assert line.recv(1) == b""
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive(), thread.name
