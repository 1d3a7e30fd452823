"""Pid files, logs that rotate, and the end by a signal."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from understudy import CurveKeys, InsecureKeyFile, InvalidSettings, NoKeyFile, ProcessFailed
from understudy.runtime.hosts.background import stop_processes
from understudy.runtime.hosts.keys import load_keys, make_key, receive_key
from understudy.runtime.hosts.machines import Machines, Place
from understudy.runtime.hosts.settings import HostSettings
from understudy.runtime.hosts.settings_sources import load_settings
from understudy.runtime.hosts.standing_process import (
    PidFile,
    Role,
    Stop,
    log_to_file,
    other_cluster,
    running_processes,
)


@pytest.fixture
def own_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is changed of logging and streams is put back."""
    root = logging.getLogger()
    before, level = root.handlers.copy(), root.level
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    yield
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def test_a_pid_file_says_what_runs_as_long_as_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert running_processes(folder) == []
    with closing(PidFile(folder, "jobmanager", "/log")) as file:
        file.update(address="tcp://h:1")
        (state,) = running_processes(folder)
        assert (state.name, state.pid, state.address, state.is_ready) == ("jobmanager", os.getpid(), "tcp://h:1", False)
        assert state.log_file == "/log/jobmanager.log"
        with pytest.raises(ProcessFailed, match=rf"jobmanager runs here already \(process {os.getpid()}"):
            PidFile(folder, "jobmanager", "/log")
        file.update(is_ready=True)
        assert running_processes(folder)[0].is_ready
    assert running_processes(folder) == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("role", ["jobmanager", "taskmanager"])
def test_a_process_of_another_cluster_in_the_same_run_dir_is_neither_taken_for_ours_nor_ended(
    tmp_path: Path, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    loaded = load_settings(flags={"run.dir": str(tmp_path), "storage.dir": "/ours"}, environment={})
    settings = loaded.settings
    with closing(PidFile(tmp_path, role, "/log", "/theirs")) as file:
        with pytest.raises(
            ProcessFailed, match=r"its storage.dir is /theirs, and this one's is /ours.*log\.dir of its own"
        ):
            stop_processes(settings, role)
        (found,), missing = Machines(loaded).split([Place(role, "localhost")])
        assert (found.is_done, missing) == (False, [])
        assert "belongs to another cluster" in found.text
        file.update(is_ready=True)
        assert other_cluster(file.state, settings) != ""
    assert killed == []
    with closing(PidFile(tmp_path, role, "/log", "/ours")) as file:
        assert other_cluster(file.state, settings) == ""


def test_several_taskmanagers_of_one_host_have_numbers(tmp_path: Path) -> None:
    first, second = (PidFile(tmp_path, "taskmanager", "/log") for _ in range(2))
    assert [each.name for each in running_processes(tmp_path, "taskmanager")] == ["taskmanager-1", "taskmanager-2"]
    first.close()
    third = PidFile(tmp_path, "taskmanager", "/log")
    assert third.state.name == "taskmanager-1"
    assert running_processes(tmp_path, "jobmanager") == []
    second.close()
    third.close()


def test_the_file_of_a_killed_process_is_no_obstacle_and_goes(tmp_path: Path) -> None:
    code = (
        "import os, sys; from understudy.runtime.hosts.standing_process import PidFile; "
        "PidFile(sys.argv[1], 'jobmanager', '/log'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["jobmanager.json"]
    PidFile(tmp_path, "jobmanager", "/log").close()
    assert running_processes(tmp_path) == []
    (tmp_path / "taskmanager-1.json").write_text("what a killed one left")
    assert running_processes(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("own_logging")
def test_logs_and_prints_are_put_aside_when_they_are_full_and_the_oldest_go(tmp_path: Path) -> None:
    settings = HostSettings(log_max_bytes=10_000, log_files=3)
    log_to_file(settings, str(tmp_path / "jobmanager.log"), in_background=True)
    for number in range(1_000):
        logging.getLogger("myapp").info("line %d", number)
        print("printed, with some more text", number)
    sys.stdout.flush()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"jobmanager.{kind}{which}" for kind in ("log", "out") for which in ("", ".1", ".2"))
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert (tmp_path / "jobmanager.log").read_text().endswith("INFO myapp: line 999\n")
    assert (tmp_path / "jobmanager.out").read_text().endswith("printed, with some more text 999\n")


@pytest.mark.usefixtures("own_logging")
def test_in_the_foreground_logs_are_on_standard_error_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_file(HostSettings(log_level="WARNING"), str(tmp_path / "x.log"), in_background=False)
    logging.getLogger("myapp").info("not this")
    logging.getLogger("myapp").warning("this")
    assert "not this" not in capsys.readouterr().err
    assert (tmp_path / "x.log").read_text().endswith("WARNING myapp: this\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_handlers_are_put_back(number: signal.Signals) -> None:
    stop, before = Stop(), signal.getsignal(number)
    with stop.on_signals():
        os.kill(os.getpid(), number)
        assert stop.wait() == number.name
    assert signal.getsignal(number) == before


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    settings = HostSettings(key_file=str(tmp_path / "new" / "key"))
    with pytest.raises(NoKeyFile, match="`understudy cluster key`"):
        load_keys(settings)
    assert make_key(settings)
    keys = load_keys(settings)
    assert not make_key(settings)
    assert load_keys(settings) == keys
    (tmp_path / "new" / "key").chmod(0o640)
    with pytest.raises(InsecureKeyFile):
        load_keys(settings)


def test_a_key_that_is_sent_is_taken_unless_there_is_another_one(tmp_path: Path) -> None:
    here, there = (HostSettings(key_file=str(tmp_path / name / "key")) for name in ("here", "there"))
    make_key(here)
    text = Path(here.key_file).read_text()
    receive_key(there, text)
    receive_key(there, text)
    assert load_keys(there) == load_keys(here)
    CurveKeys.generate().save(tmp_path / "other")
    with pytest.raises(InvalidSettings, match="another cluster's key"):
        receive_key(there, (tmp_path / "other").read_text())
    assert load_keys(there) == load_keys(here)
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["key"]
